package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// messages runs say under o and returns what came to Err, which is no
// terminal.
func messages(t *testing.T, o Options, say func(*IO)) string {
	t.Helper()
	var out, err bytes.Buffer
	io := New(nil, &out, &err, Facts{})
	io.Configure(o)
	say(io)
	if out.Len() > 0 {
		t.Errorf("stdout got %q", out.String())
	}
	return err.String()
}

func sayAll(io *IO) {
	io.Note("read %d rows of %s", 3, "a\x1b[2J.csv")
	io.Detail("asked %s", "host")
	io.Hint("look at %s", "\u202ethis")
	io.Next("waybill runs resume 'a\nb'")
	io.Warning("made a store at %s", "/x\u2028")
}

func TestMessages(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"plain", Options{}, "read 3 rows of a\\u{1b}[2J.csv\nhint: look at \\u{202e}this\nnext: waybill runs resume 'a\\nb'\nwarning: made a store at /x\\u{2028}\n"},
		{"verbose", Options{Verbose: true}, "read 3 rows of a\\u{1b}[2J.csv\nasked host\nhint: look at \\u{202e}this\nnext: waybill runs resume 'a\\nb'\nwarning: made a store at /x\\u{2028}\n"},
		{"quiet", Options{Quiet: true, Verbose: true}, "warning: made a store at /x\\u{2028}\n"},
		{"JSON", Options{JSON: true}, `{"type":"note","message":"read 3 rows of a\u001b[2J.csv"}
{"type":"note","message":"look at \u202ethis","hint":"look at \u202ethis"}
{"type":"note","message":"next: waybill runs resume 'a\nb'","nextCommand":"waybill runs resume 'a\nb'"}
{"type":"warning","message":"made a store at /x\u2028"}
`},
		{"quiet JSON", Options{JSON: true, Quiet: true}, `{"type":"warning","message":"made a store at /x\u2028"}` + "\n"},
	}
	for _, tt := range tests {
		if got := messages(t, tt.o, sayAll); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func failure() Failure {
	return Failure{
		Code: "usage", Message: "2 rows are bad\nof 3", Hint: "mend them\nand say\nwaybill: again", Next: "waybill create 'a b.csv'",
		HTTPStatus: 429, RetryAfter: 1500 * time.Millisecond, More: 7,
		Errors: []Issue{
			{File: "a.csv", Line: 7, Column: 2, Header: "Tracking\x07", Value: "1.23E+15\x1b", Message: "a spreadsheet rounded it", Hint: "export as text"},
			{File: "a.csv", Line: 9, Message: "no number", Hint: "export as text"},
			{File: "b.csv", Message: "no rows", Value: strings.Repeat("x", 100)},
		},
	}
}

func TestFail(t *testing.T) {
	want := `a.csv:7:2: Tracking\u{7} "1.23E+15\u{1b}": a spreadsheet rounded it
a.csv:9: no number
  hint: export as text
b.csv: "` + strings.Repeat("x", 59) + `…": no rows
… and 7 more
waybill: 2 rows are bad
  of 3
retry after 2s, as the service asked
hint: mend them
  and say
  waybill: again
next: waybill create 'a b.csv'
`
	if got := messages(t, Options{Quiet: true}, func(io *IO) { io.Fail(failure()) }); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = "waybill: gone\n"
	if got := messages(t, Options{}, func(io *IO) { io.Fail(Failure{Code: "failed", Message: "gone"}) }); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	want = "warning: 1 left out\nhint: look\n"
	if got := messages(t, Options{}, func(io *IO) { io.WarningWith(Failure{Message: "1 left out", Hint: "look"}) }); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestFailAsJSON(t *testing.T) {
	want := `{"type":"error","code":"usage","message":"2 rows are bad\nof 3","hint":"mend them\nand say\nwaybill: again","nextCommand":"waybill create 'a b.csv'","httpStatus":429,"retryAfterSeconds":2,` +
		`"errors":[{"file":"a.csv","line":7,"column":2,"header":"Tracking\u0007","value":"1.23E+15\u001b","message":"a spreadsheet rounded it","hint":"export as text"},` +
		`{"file":"a.csv","line":9,"message":"no number","hint":"export as text"},` +
		`{"file":"b.csv","value":"` + strings.Repeat("x", 100) + `","message":"no rows"}],"errorsOmitted":7}` + "\n"
	if got := messages(t, Options{JSON: true}, func(io *IO) { io.Fail(failure()) }); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = `{"type":"error","code":"failed","message":"gone"}` + "\n"
	if got := messages(t, Options{JSON: true}, func(io *IO) { io.Fail(Failure{Code: "failed", Message: "gone"}) }); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	want = `{"type":"warning","message":"half\ufffd"}` + "\n"
	if got := messages(t, Options{JSON: true}, func(io *IO) { io.WarningWith(Failure{Message: "half\xff"}) }); got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestColouredMessages(t *testing.T) {
	var err bytes.Buffer
	io := New(nil, &err, &err, Facts{})
	io.Configure(Options{Color: "always"})
	io.Warning("%s and %s", io.Err.Style(Good, "fine"), "\x1b[32mforeign\x1b[0m")
	want := "\x1b[33mwarning:\x1b[0m \x1b[32mfine\x1b[0m and \\u{1b}[32mforeign\\u{1b}[0m\n"
	if got := err.String(); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	err.Reset()
	io.Configure(Options{Color: "always", JSON: true})
	io.Warning("%s", io.Err.Style(Good, "fine"))
	if got, want := err.String(), `{"type":"warning","message":"fine"}`+"\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func FuzzFail(f *testing.F) {
	f.Add("message", "hint", "next", "value", "header")
	f.Add("a\x1b[2J", "\u202e", "\n\r", "\xff\u009b", "\x00")
	f.Fuzz(func(t *testing.T, msg, hint, next, value, header string) {
		failure := Failure{Code: "failed", Message: msg, Hint: hint, Next: next, Errors: []Issue{{File: value, Line: 1, Header: header, Value: value, Message: msg, Hint: hint}}}
		human := messages(t, Options{}, func(io *IO) { io.Fail(failure) })
		if at := cleanPrefix(human, severalLines); at != len(human) {
			t.Errorf("message not clean at %d: %q", at, human)
		}
		line := messages(t, Options{JSON: true}, func(io *IO) { io.Fail(failure) })
		if strings.Count(line, "\n") != 1 || cleanPrefix(line, severalLines) != len(line) || !json.Valid([]byte(line)) {
			t.Errorf("not one clean line of JSON: %q", line)
		}
	})
}

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

func TestEncodeJSON(t *testing.T) {
	got, err := EncodeJSON(struct {
		Text string          `json:"text"`
		Raw  json.RawMessage `json:"raw"`
	}{"<a&b>\x1b\x7f\u202e\xff", json.RawMessage("{\"b\": 1.0e2,\n \"a\":\"\u200b\", \"b\":12345678901234567890123}")})
	want := `{"text":"<a&b>\u001b\u007f\u202e\ufffd","raw":{"b":1.0e2,"a":"\u200b","b":12345678901234567890123}}`
	if string(got) != want || err != nil {
		t.Errorf("got  %s, %v\nwant %s, nil", got, err, want)
	}
	if got, err := EncodeJSON(json.RawMessage("[\"\xff\u2028\"]")); string(got) != `["\ufffd\u2028"]` || err != nil {
		t.Errorf("raw bytes became %s, %v", got, err)
	}
	if got, err := EncodeJSON(func() {}); got != nil || err == nil {
		t.Errorf("a function became %q, %v; want an error", got, err)
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

func TestColor(t *testing.T) {
	type env = map[string]string
	tests := []struct {
		name     string
		asked    string
		env      env
		terminal bool
		want     bool
	}{
		{"terminal", "", nil, true, true},
		{"auto, terminal", "auto", env{"TERM": "xterm"}, true, true},
		{"pipe", "auto", nil, false, false},
		{"NO_COLOR of any value", "", env{"NO_COLOR": "yes"}, true, false},
		{"NO_COLOR=0", "", env{"NO_COLOR": "0"}, true, false},
		{"empty NO_COLOR is none", "", env{"NO_COLOR": ""}, true, true},
		{"CLICOLOR_FORCE", "", env{"CLICOLOR_FORCE": "1"}, false, true},
		{"CLICOLOR_FORCE=0 is none", "", env{"CLICOLOR_FORCE": "0"}, false, false},
		{"NO_COLOR before CLICOLOR_FORCE", "", env{"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, true, false},
		{"dumb", "", env{"TERM": "dumb"}, true, false},
		{"CLICOLOR_FORCE before dumb", "", env{"TERM": "dumb", "CLICOLOR_FORCE": "1"}, true, true},
		{"always before all", "always", env{"NO_COLOR": "1", "TERM": "dumb"}, false, true},
		{"never before all", "never", env{"CLICOLOR_FORCE": "1"}, true, false},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		io := New(nil, &out, &out, Facts{OutTerminal: tt.terminal, Env: tt.env})
		io.Configure(Options{Color: tt.asked})
		if got := io.Out.color; got != tt.want {
			t.Errorf("%s: colour %t; want %t", tt.name, got, tt.want)
		}
	}
}

func TestColorIsDecidedPerStream(t *testing.T) {
	io := New(nil, new(bytes.Buffer), new(bytes.Buffer), Facts{ErrTerminal: true})
	if io.Out.color || !io.Err.color {
		t.Errorf("colour out %t, err %t; want false, true", io.Out.color, io.Err.color)
	}
	if io.Out.IsTerminal() || !io.Err.IsTerminal() || io.Out.movable || !io.Err.movable || io.InTerminal() {
		t.Errorf("terminals: out %t %t, err %t %t, in %t; want only err", io.Out.IsTerminal(), io.Out.movable, io.Err.IsTerminal(), io.Err.movable, io.InTerminal())
	}
}

func TestWidth(t *testing.T) {
	tests := []struct {
		name  string
		facts Facts
		want  int
	}{
		{"no terminal", Facts{Env: map[string]string{"COLUMNS": "100"}}, 0},
		{"COLUMNS", Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": "60"}}, 60},
		{"bad COLUMNS", Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": "-3"}}, 80},
		{"nothing known", Facts{OutTerminal: true}, 80},
	}
	for _, tt := range tests {
		io := New(nil, new(bytes.Buffer), new(bytes.Buffer), tt.facts)
		if got := io.Out.Width(); got != tt.want {
			t.Errorf("%s: width %d; want %d", tt.name, got, tt.want)
		}
	}
}

func TestTruncate(t *testing.T) {
	tests := []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"abc", 1, "…"},
		{"abc", 0, ""},
		{"abc", -5, ""},
		{"", 3, ""},
	}
	for _, tt := range tests {
		got := Truncate(tt.in, tt.width)
		if got != tt.want {
			t.Errorf("Truncate(%q, %d) = %q; want %q", tt.in, tt.width, got, tt.want)
		}
		if w := DisplayWidth(got); w > max(tt.width, 0) {
			t.Errorf("Truncate(%q, %d) takes %d columns", tt.in, tt.width, w)
		}
	}
}
