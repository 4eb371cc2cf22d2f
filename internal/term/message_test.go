package term

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// messages runs say under o and returns what came to Err, which is no
// terminal.
func messages(t *testing.T, o Options, say func(*IO)) string {
	t.Helper()
	var out, err bytes.Buffer
	io := New(nil, &out, &err, Facts{})
	if e := io.Configure(o); e != nil {
		t.Fatal(e)
	}
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
	if e := io.Configure(Options{Color: "always"}); e != nil {
		t.Fatal(e)
	}
	io.Warning("%s and %s", io.Err.Style(Good, "fine"), "\x1b[32mforeign\x1b[0m")
	want := "\x1b[33mwarning:\x1b[0m \x1b[32mfine\x1b[0m and \\u{1b}[32mforeign\\u{1b}[0m\n"
	if got := err.String(); got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	err.Reset()
	if e := io.Configure(Options{Color: "always", JSON: true}); e != nil {
		t.Fatal(e)
	}
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
		if at := cleanPrefix(human, true); at != len(human) {
			t.Errorf("message not clean at %d: %q", at, human)
		}
		line := messages(t, Options{JSON: true}, func(io *IO) { io.Fail(failure) })
		if strings.Count(line, "\n") != 1 || cleanPrefix(line, true) != len(line) || !json.Valid([]byte(line)) {
			t.Errorf("not one clean line of JSON: %q", line)
		}
	})
}
