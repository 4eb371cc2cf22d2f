package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

func TestValues(t *testing.T) {
	raw := []byte(` {"a":1 , "\u0061" : [ {"]":"\"}"}, [] ], "b" :"x\\" ,"a":null}`)
	type member struct {
		name, raw string
	}
	var got []member
	for v := range jsonscan.Values(raw, 1) {
		got = append(got, member{string(v.Name), string(v.Raw)})
		if !bytes.Equal(raw[v.At:v.At+len(v.Raw)], v.Raw) || !bytes.Equal(raw[v.NameAt:v.NameAt+len(v.Name)], v.Name) {
			t.Errorf("%s and its name are not at %d and %d", v.Raw, v.At, v.NameAt)
		}
	}
	want := []member{{`"a"`, `1`}, {`"\u0061"`, `[ {"]":"\"}"}, [] ]`}, {`"b"`, `"x\\"`}, {`"a"`, `null`}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
	for range jsonscan.Values(raw, 1) {
		break // a walk may end early
	}
}

func TestText(t *testing.T) {
	for _, tt := range []struct {
		literal, want string
		valid         bool
	}{
		{`""`, "", true},
		{`"a\"\\\/\u00e9\n"`, "a\"\\/é\n", true},
		{`"\ud83d\ude00"`, "😀", true},
		{`"\uFFFD\n"`, "\ufffd\n", true},
		{"\"\ufffd\"", "\ufffd", true},
		{`"\u0000"`, "\x00", true},
		{`"a\ud83d"`, "a\ufffd", false},
		{`"\ude00\ud83d"`, "\ufffd\ufffd", false},
		{`"\ud83d\u0041"`, "\ufffdA", false},
		{`"\ud83dxxxxxxx"`, "\ufffdxxxxxxx", false},
		{"\"a\xff\"", "a\ufffd", false},
	} {
		if got, valid := jsonscan.Text([]byte(tt.literal)); got != tt.want || valid != tt.valid {
			t.Errorf("%s: got %q, %v; want %q, %v", tt.literal, got, valid, tt.want, tt.valid)
		}
	}
}

// plain returns the value as package encoding/json would decode it.
func plain(t *testing.T, raw []byte) any {
	switch raw[0] {
	case '{':
		m := map[string]any{}
		for v := range jsonscan.Values(raw, 0) {
			name, _ := jsonscan.Text(v.Name)
			m[name] = plain(t, v.Raw)
		}
		return m
	case '[':
		l := []any{}
		for v := range jsonscan.Values(raw, 0) {
			l = append(l, plain(t, v.Raw))
		}
		return l
	case '"':
		s, _ := jsonscan.Text(raw)
		return s
	}
	return decode(t, raw)
}

func decode(t *testing.T, raw []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

func FuzzWhole(f *testing.F) {
	for _, s := range []string{
		`{}`, ` [ ] `, `null`, `-1.5e+9`, `"a\"\\"`, `{"a":[1,{"b":null}],"a":2}`, "{\"\\u0061\" :\t\"\xff\"}", `[[],{},"",0]`, `[1 ,2]`, `{"a":1}x`, ``,
		`"\ud800\udc00\ud800"`, `{"":{"/~":[true]}}`, strings.Repeat("[", 150) + strings.Repeat("]", 150),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		v := jsonscan.Whole(raw)
		if !bytes.Equal(v.Raw, bytes.Trim(raw, " \t\r\n")) {
			t.Fatalf("whole %q; want %q", v.Raw, raw)
		}
		if got, want := plain(t, v.Raw), decode(t, raw); !reflect.DeepEqual(got, want) {
			t.Errorf("%q read as %#v; want %#v", raw, got, want)
		}
		follow(t, raw, v, jsonscan.Pointer{})
		if again := copied(nil, raw, v.At); !bytes.Equal(again, v.Raw) {
			t.Errorf("a walk through all levels saw %q; want %q", again, v.Raw)
		}
	})
}

// follow checks that the pointer to each value finds it.
func follow(t *testing.T, raw []byte, v jsonscan.Value, p jsonscan.Pointer) {
	if got, times := p.Find(raw); times == 1 && !bytes.Equal(got, v.Raw) {
		t.Errorf("%q: %s finds %q; want %q", raw, p, got, v.Raw)
	}
	if again, ok := jsonscan.ParsePointer(p.String()); !ok || !reflect.DeepEqual(again, p) {
		t.Errorf("%q is read as %q, %v", p, again, ok)
	}
	if v.Raw[0] != '{' || len(p) > 20 {
		return
	}
	for m := range jsonscan.Values(v.Raw, 0) {
		name, valid := jsonscan.Text(m.Name)
		if m.Named(name) != valid {
			t.Errorf("%s named %q: got %v", m.Name, name, !valid)
		}
		if valid {
			follow(t, raw, m, append(slices.Clip(p), name))
		}
	}
}

// copied appends the value at i to dst, from a walk with [jsonscan.Each].
func copied(dst, raw []byte, i int) []byte {
	if raw[i] != '{' && raw[i] != '[' {
		end, _ := jsonscan.SkipValue(raw, i)
		return append(dst, raw[i:end]...)
	}
	at := i
	end := jsonscan.Each(raw, i, func(_ []byte, _, value int) int {
		dst = append(dst, raw[at:value]...)
		at, _ = jsonscan.SkipValue(raw, value)
		dst = copied(dst, raw, value)
		return at
	})
	return append(dst, raw[at:end]...)
}

func TestPointer(t *testing.T) {
	const raw = ` {"a/b":{"~":[10,20]},"":1,"a":1,"a":2,"m":{"x":3},"m":{"x":3},"q\"\\":4,"` + "\xff" + `":5,"n":null}`
	for _, tt := range []struct {
		pointer, want string
		times         int
	}{
		{"/a~1b/~0/1", "20", 1},
		{"/a~1b/~0/2", "", 0},
		{"/a~1b/~0/01", "", 0},
		{"/a~1b/~0/-1", "", 0},
		{"/a~1b/~0/-", "", 0},
		{"/a~1b/~0/0/x", "", 0},
		{"/", "1", 1},
		{"/a", "1", 2},
		{"/m/x", "3", 2},
		{`/q"\`, "4", 1},
		{`/q\"\\`, "", 0},
		{"/\ufffd", "", 0},
		{"/n", "null", 1},
		{"/A", "", 0},
	} {
		p, ok := jsonscan.ParsePointer(tt.pointer)
		if got, times := p.Find([]byte(raw)); !ok || string(got) != tt.want || times != tt.times {
			t.Errorf("%s: got %q, %d times (a pointer: %v); want %q, %d times", tt.pointer, got, times, ok, tt.want, tt.times)
		}
		if p.String() != tt.pointer {
			t.Errorf("%s is written as %s", tt.pointer, p)
		}
	}
	if p, ok := jsonscan.ParsePointer(""); !ok || len(p) != 0 {
		t.Errorf("the empty pointer: %q, %v", p, ok)
	}
	for _, s := range []string{"a", "a/b", "/~", "/~2", "/a~", "/~~0", "/\xff", "#/a"} {
		if p, ok := jsonscan.ParsePointer(s); ok {
			t.Errorf("%q was taken for the pointer %q", s, p)
		}
	}
}

func FuzzParsePointer(f *testing.F) {
	f.Add("/a~1b/~0/01")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := jsonscan.ParsePointer(s)
		if ok && (p.String() != s || !utf8.ValidString(s)) {
			t.Errorf("%q was read as %q", s, p)
		}
	})
}

func FuzzContains(f *testing.F) {
	f.Add("An Tür 5", "🚚")
	f.Add(`a\u00fc"`, "\x00\x7f\u2028")
	f.Fuzz(func(t *testing.T, before, text string) {
		if !utf8.ValidString(before) || !utf8.ValidString(text) {
			return
		}
		short, err := json.Marshal(before + text)
		if err != nil {
			t.Fatal(err)
		}
		var long strings.Builder
		for _, unit := range utf16.Encode([]rune(before + text)) {
			fmt.Fprintf(&long, `\u%04X`, unit)
		}
		for _, body := range []string{before + text, string(short), long.String()} {
			if !jsonscan.Contains([]byte(body), bytes.ToLower([]byte(text))) {
				t.Errorf("%q is not found in %q", text, body)
			}
		}
	})
}
