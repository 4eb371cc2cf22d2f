package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/term"
)

type result struct {
	ReferID string          `json:"referId"`
	State   string          `json:"state,omitempty"`
	Raw     json.RawMessage `json:"raw"`
}

const rawAnswer = `{"b": 1.50, "a":12345678901234567890, "b" : 1E400,"t":"\u003c\u202e` + "\u202e<\x7f" + `"}`

func answer() result { return result{"order-1<&>", "done", json.RawMessage(rawAnswer)} }

func printer(t *testing.T, out *term.Writer, o Options) *Printer {
	t.Helper()
	p, err := New(out, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestJSON(t *testing.T) {
	const long = `{
  "referId": "order-1<&>",
  "state": "done",
  "raw": {
    "b": 1.50,
    "a": 12345678901234567890,
    "b": 1E400,
    "t": "\u003c\u202e\u202e<\u007f"
  }
}
`
	const short = `{"referId":"order-1<&>","state":"done","raw":{"b":1.50,"a":12345678901234567890,"b":1E400,"t":"\u003c\u202e\u202e<\u007f"}}` + "\n"
	for format, want := range map[string]string{"json": long, "jsonl": short, "table": long} {
		for _, terminal := range []bool{false, true} {
			var got bytes.Buffer
			p := printer(t, term.New(nil, &got, &got, term.Facts{OutTerminal: terminal}).Out, Options{Format: format})
			if err := p.JSON(t.Context(), answer()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("%s, terminal %t: (-want +got)\n%s", format, terminal, diff)
			}
		}
	}
}

func TestJSONKeepsTheRawAnswer(t *testing.T) {
	out, got := file()
	if err := printer(t, out, Options{Format: "json"}).JSON(t.Context(), answer()); err != nil {
		t.Fatal(err)
	}
	var back result
	if err := json.Unmarshal(got.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, []byte(rawAnswer)); err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, back.Raw); err != nil {
		t.Fatal(err)
	}
	if w := term.EscapeJSON(nil, want.Bytes()); !bytes.Equal(compact.Bytes(), w) {
		t.Errorf("raw is %s; want %s", compact.Bytes(), w)
	}
}

func TestJSONOfWhatCannotBeEncoded(t *testing.T) {
	out, got := file()
	p := printer(t, out, Options{Format: "json"})
	if err := p.JSON(t.Context(), func() {}); err == nil || got.Len() != 0 {
		t.Errorf("err %v, output %q; want an error and nothing", err, got)
	}
	l := p.List(t.Context())
	for _, v := range []any{1, func() {}, 2} {
		_ = l.Add(v)
	}
	if err := l.Close(); err == nil {
		t.Error("Close after a failed Add: no error")
	}
	if want := "[\n  1\n]\n"; got.String() != want {
		t.Errorf("output %q; want %q, which is whole", got, want)
	}
}

func TestJQ(t *testing.T) {
	value := map[string]any{
		"name": "a\u202eb\nc", "list": []int{1, 2}, "n": json.RawMessage("12345678901234567890.10"), "i": json.RawMessage("123456789012345678901234567890"),
		"raw": json.RawMessage(`{"z":1,"z":2,"t":"` + "\u202e" + `"}`),
	}
	tests := []struct{ expr, want string }{
		{".name", "a\u202eb\nc\n"},
		{".list", "[1,2]\n"},
		{".list[]", "1\n2\n"},
		{".n, .i", "12345678901234567890.10\n123456789012345678901234567890\n"},
		{".i + 1", "123456789012345678901234567891\n"},
		{".raw", `{"t":"\u202e","z":2}` + "\n"},
		{".missing, true, null", "null\ntrue\nnull\n"},
		{"empty", ""},
		{"1, halt, 2", "1\n"},
		{"env | length, ($ENV | length)", "0\n0\n"},
		{`"<&>", ["<&>"]`, "<&>\n[\"<&>\"]\n"},
	}
	for _, tt := range tests {
		out, got := file()
		p := printer(t, out, Options{Format: "json", JQ: tt.expr})
		if err := p.JSON(t.Context(), value); err != nil {
			t.Errorf("%s: %v", tt.expr, err)
		}
		if got.String() != tt.want {
			t.Errorf("%s: got %q; want %q", tt.expr, got, tt.want)
		}
	}
}

func TestJQOnATerminalIsHarmless(t *testing.T) {
	out, got := screen(80, nil)
	p := printer(t, out, Options{Format: "json", JQ: ".[]"})
	if err := p.JSON(t.Context(), []string{"a\x1b[2J\r", "b\nc\td"}); err != nil {
		t.Fatal(err)
	}
	if want := `a\u{1b}[2J\u{d}` + "\nb\nc\td\n"; got.String() != want {
		t.Errorf("terminal got %q; want %q", got, want)
	}
}

func TestJQErrors(t *testing.T) {
	compile := []Options{
		{Format: "json", JQ: ".["},
		{Format: "json", JQ: "nothing_of_this_name"},
		{Format: "json", JQ: "input"},
		{Format: "json", JQ: `import "x" as x; .`},
		{Format: "csv", JQ: "."},
	}
	for _, o := range compile {
		out, got := file()
		_, err := New(out, o)
		e, ok := errors.AsType[*JQError](err)
		if !ok || e.Running || e.Expr != o.JQ || got.Len() > 0 {
			t.Errorf("%q: err %v, output %q; want a JQError that is not running", o.JQ, err, got)
		}
	}
	for _, expr := range []string{"1, .a.b", `"x" | error`, "1, (2 | halt_error)"} {
		out, got := file()
		err := printer(t, out, Options{Format: "json", JQ: expr}).JSON(t.Context(), map[string]any{"a": 1})
		if e, ok := errors.AsType[*JQError](err); !ok || !e.Running || e.Err == nil {
			t.Errorf("%q: err %v; want a running JQError", expr, err)
		}
		if expr[0] == '1' && got.String() != "1\n" {
			t.Errorf("%q: output %q; want what came before the failure", expr, got)
		}
	}
}

func TestJQEndsWithItsContext(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	out, _ := file()
	err := printer(t, out, Options{Format: "json", JQ: "last(repeat(1))"}).JSON(ctx, 1)
	if _, ok := errors.AsType[*JQError](err); ok || !errors.Is(err, why) {
		t.Errorf("err %v; want %v alone", err, why)
	}
}

func TestFormats(t *testing.T) {
	tests := []struct {
		o       Options
		want    Format
		machine bool
	}{
		{Options{}, Table, false},
		{Options{Format: "table"}, Table, false},
		{Options{Format: "csv"}, CSV, false},
		{Options{Format: "json"}, JSON, true},
		{Options{Format: "jsonl", JQ: "."}, JSONL, true},
		{Options{Format: "table", JQ: "."}, JSON, true},
	}
	for _, tt := range tests {
		out, _ := file()
		p := printer(t, out, tt.o)
		if p.Format() != tt.want || p.Machine() != tt.machine || p.Out() != out {
			t.Errorf("%+v: format %s, machine %t; want %s, %t", tt.o, p.Format(), p.Machine(), tt.want, tt.machine)
		}
	}
	if _, err := New(nil, Options{Format: "xml"}); err == nil {
		t.Error("no error for xml")
	}
}

func TestList(t *testing.T) {
	type row struct {
		A string          `json:"a"`
		B json.RawMessage `json:"b,omitempty"`
	}
	rows := []any{row{"x\u2028", nil}, row{"<", json.RawMessage(`{"n": 1.0}`)}, []int{}}
	tests := []struct {
		name string
		o    Options
		rows []any
		want string
	}{
		{"json", Options{Format: "json"}, rows, "[\n  {\n    \"a\": \"x\\u2028\"\n  },\n  {\n    \"a\": \"<\",\n    \"b\": {\n      \"n\": 1.0\n    }\n  },\n  []\n]\n"},
		{"json, one", Options{Format: "json"}, rows[2:], "[\n  []\n]\n"},
		{"json, none", Options{Format: "json"}, nil, "[]\n"},
		{"jsonl", Options{Format: "jsonl"}, rows, "{\"a\":\"x\\u2028\"}\n{\"a\":\"<\",\"b\":{\"n\":1.0}}\n[]\n"},
		{"jsonl, none", Options{Format: "jsonl"}, nil, ""},
		{"jq on the array", Options{Format: "json", JQ: "length, .[1].b.n, .[0].a"}, rows, "3\n1.0\nx\u2028\n"},
		{"jq on an empty array", Options{Format: "json", JQ: "."}, nil, "[]\n"},
		{"jq on each", Options{Format: "jsonl", JQ: "length"}, rows, "1\n2\n0\n"},
		{"jq, nothing left", Options{Format: "jsonl", JQ: "empty"}, rows, ""},
	}
	for _, tt := range tests {
		for _, live := range []bool{false, true} {
			tt.o.Live = live
			out, got := file()
			l := printer(t, out, tt.o).List(t.Context())
			for _, r := range tt.rows {
				if err := l.Add(r); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
			}
			if err := l.Close(); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got.String() != tt.want {
				t.Errorf("%s, live %t: got %q; want %q", tt.name, live, got, tt.want)
			}
		}
	}
}

func TestLiveListIsWrittenAtOnce(t *testing.T) {
	out, got := file()
	l := printer(t, out, Options{Format: "jsonl", Live: true}).List(t.Context())
	for i, want := range []string{"1\n", "1\n2\n"} {
		if err := l.Add(i + 1); err != nil || got.String() != want {
			t.Errorf("after element %d: %q, %v; want %q", i, got, err, want)
		}
	}
}

func TestLongListIsWrittenAsItGrows(t *testing.T) {
	out, got := file()
	l := printer(t, out, Options{Format: "json"}).List(t.Context())
	most := 0
	for i := range 100_000 {
		if err := l.Add(i); err != nil {
			t.Fatal(err)
		}
		most = max(most, len(l.sink.buf))
	}
	if most > 2*maxBuffered || got.Len() == 0 {
		t.Errorf("%d bytes were held back, %d written", most, got.Len())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var back []int
	if err := json.Unmarshal(got.Bytes(), &back); err != nil || len(back) != 100_000 {
		t.Errorf("%d elements came back, %v", len(back), err)
	}
}

func TestListEndsWhenItsReaderHasGone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	l := printer(t, term.Plain(w), Options{Format: "jsonl"}).List(t.Context())
	for range 100_000 {
		if err = l.Add(strings.Repeat("x", 100)); err != nil {
			break
		}
	}
	if !errors.Is(err, term.ErrClosed) {
		t.Errorf("Add: %v; want ErrClosed", err)
	}
	if err := l.Close(); !errors.Is(err, term.ErrClosed) {
		t.Errorf("Close: %v; want ErrClosed", err)
	}
}

func TestListJQFailures(t *testing.T) {
	out, got := file()
	l := printer(t, out, Options{Format: "jsonl", JQ: ".a"}).List(t.Context())
	if err := l.Add(map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, ok := errors.AsType[*JQError](l.Add(3)); !ok {
			t.Error("no JQError for .a of a number")
		}
	}
	if _, ok := errors.AsType[*JQError](l.Close()); !ok || got.String() != "1\n" {
		t.Errorf("Close after it: output %q; want the first result and the error again", got)
	}
	out, got = file()
	l = printer(t, out, Options{Format: "json", JQ: ".[0], .a"}).List(t.Context())
	if err := l.Add(7); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*JQError](l.Close()); !ok || got.String() != "7\n" {
		t.Errorf("output %q; want 7 and a JQError", got)
	}
}

func BenchmarkList(b *testing.B) {
	row := struct {
		File  string `json:"file"`
		Line  int    `json:"line"`
		Ref   string `json:"referId"`
		Num   string `json:"rawTrackingNumber"`
		State string `json:"state"`
	}{"orders.csv", 7, "order-1001", "1Z999AA10123456784", "accepted"}
	for _, format := range []string{"json", "jsonl"} {
		b.Run(format, func(b *testing.B) {
			out, _ := file()
			p, err := New(out, Options{Format: format})
			if err != nil {
				b.Fatal(err)
			}
			l := p.List(b.Context())
			for b.Loop() {
				if err := l.Add(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExamplePrinter_JSON() {
	p, err := New(term.Plain(os.Stdout), Options{Format: "json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = p.JSON(context.Background(), map[string]string{"state": "accepted"})
	// Output:
	// {
	//   "state": "accepted"
	// }
}

func TestJSONIsNotMadeToGrow(t *testing.T) {
	wide := strings.Repeat("[", 150) + strings.TrimSuffix(strings.Repeat("1,", 1<<16), ",") + strings.Repeat("]", 150)
	for _, s := range []string{strings.Repeat("[", 9000) + strings.Repeat("]", 9000), wide} {
		if got := Indented([]byte(s)); string(got) != s {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	}
	text := `{"a":"` + strings.Repeat(`\"[{,`, 1<<12) + `","b":[1,2]}`
	if got := Indented([]byte(text)); !strings.Contains(string(got), "\n  \"b\": [\n    1,\n    2\n  ]\n}") {
		t.Errorf("signs inside a text counted: %.200s", got)
	}
}
