package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestEscapeJSON(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"a":[1,2.50,"b"]}`, `{"a":[1,2.50,"b"]}`},
		{"{\n  \"a\": 1\r\n}", "{\n  \"a\": 1\r\n}"},
		{`"<>&ü日"`, `"<>&ü日"`},
		{"\"\x7f\u0085\u009b\"", `"\u007f\u0085\u009b"`},
		{"\"\u202e\u200b\ufeff\u2028\u00ad\"", `"\u202e\u200b\ufeff\u2028\u00ad"`},
		{"\"\U000e0041\"", `"\udb40\udc41"`},
		{"\"\xff\xe2\x82\"", `"\ufffd\ufffd\ufffd"`},
		{`"\u001b\ud800\n"`, `"\u001b\ud800\n"`},
		{"\"\\\u202e\"", `"\\u202e"`}, // not valid JSON; it must not get worse than a text
	}
	for _, tt := range tests {
		if got := string(EscapeJSON([]byte("> "), []byte(tt.in))); got != "> "+tt.want {
			t.Errorf("EscapeJSON(%q) = %q; want %q", tt.in, got, "> "+tt.want)
		}
	}
}

func TestAppendJSON(t *testing.T) {
	got, err := AppendJSON([]byte("x"), struct {
		Text string          `json:"text"`
		Raw  json.RawMessage `json:"raw"`
	}{"<a&b>\x1b\x7f\u202e\xff", json.RawMessage("{\"b\": 1.0e2,\n \"a\":\"\u200b\", \"b\":12345678901234567890123}")})
	want := `x{"text":"<a&b>\u001b\u007f\u202e\ufffd","raw":{"b":1.0e2,"a":"\u200b","b":12345678901234567890123}}`
	if string(got) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s, nil", got, err, want)
	}
	if got, err := AppendJSON(nil, json.RawMessage("[\"\xff\u2028\"]")); string(got) != `["\ufffd\u2028"]` || err != nil {
		t.Errorf("raw bytes became %s, %v", got, err)
	}
	if got, err := AppendJSON([]byte("x"), func() {}); string(got) != "x" || err == nil {
		t.Errorf("a function became %q, %v; want x and an error", got, err)
	}
}

func FuzzEscapeJSON(f *testing.F) {
	for _, s := range []string{`{"a":"b"}`, "\"\u202e\x7f\"", "[\"\U000e0041\",1e5]", `"\u200b\ud83d\ude00"`, "\"\xff\"", "{\"\u2028\":{}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if !json.Valid(src) {
			return
		}
		got := EscapeJSON(nil, src)
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("EscapeJSON(%q) = %q: not JSON", src, got)
		}
		if strings.ContainsFunc(string(got), func(r rune) bool {
			return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune(" \n\r\t", r)
		}) {
			t.Errorf("EscapeJSON(%q) = %q holds a control character", src, got)
		}
		if diff := cmp.Diff(decoded(t, src), decoded(t, got)); diff != "" {
			t.Errorf("EscapeJSON(%q) = %q: value changed\n%s", src, got, diff)
		}
		if again := EscapeJSON(nil, got); !bytes.Equal(again, got) {
			t.Errorf("twice: %q, then %q", got, again)
		}
	})
}

func decoded(t *testing.T, p []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %q: %v", p, err)
	}
	return v
}
