package term

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

type word string

func TestPrintf(t *testing.T) {
	type args = []any
	tests := []struct {
		format string
		args   args
		want   string
	}{
		{"plain\n", nil, "plain\n"},
		{"%s|%q|%v|%-4s|\n", args{"a\x1b", "b\u202e", "c\nd", "e"}, "a\\u{1b}|\"b\\u202e\"|c\\nd|e   |\n"},
		{"%s %v\n", args{word("x\u200by"), []string{"p\rq"}}, `x\u{200b}y [p\u{d}q]` + "\n"},
		{"%v %s\n", args{errors.New("bad\x07"), []byte("b\xff")}, `bad\u{7} b\x{ff}` + "\n"},
		{"%d %5d %.1f %t %*d\n", args{int64(7), 12, 1.25, true, 3, 4}, "7    12 1.2 true   4\n"},
		{"%v %d %v\n", args{2 * time.Second, 3 * time.Nanosecond, nil}, "2s 3 <nil>\n"},
	}
	for _, tt := range tests {
		for name, terminal := range map[string]bool{"terminal": true, "file": false} {
			var out strings.Builder
			io := New(nil, &out, &out, Facts{OutTerminal: terminal})
			if err := io.Out.Printf(tt.format, tt.args...); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("%s: Printf(%q, %q) wrote %q; want %q", name, tt.format, tt.args, got, tt.want)
			}
		}
	}
}

func TestStyle(t *testing.T) {
	styles := []Style{Heading, Good, Bad, Caution, Faint, Accent}
	coloured, plain := Writer{color: true}, Writer{}
	for _, s := range styles {
		got := string(coloured.Style(s, "a\x1b[0m"))
		if want := s.sequence() + `a\u{1b}[0m` + "\x1b[0m"; got != want || s.sequence() == "" {
			t.Errorf("style %d: %q; want %q", s, got, want)
		}
		if got := plain.Style(s, "a\n"); got != `a\n` {
			t.Errorf("style %d without colour: %q; want %q", s, got, `a\n`)
		}
		if got := coloured.Style(s, ""); got != "" {
			t.Errorf("style %d of nothing: %q", s, got)
		}
	}
	if got := coloured.Style(Normal, "a"); got != "a" {
		t.Errorf("normal style: %q; want a", got)
	}
}

func TestReaderGoneAway(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	out := Plain(w)
	for range 2 {
		if n, err := out.Write([]byte("x")); n != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("Write = %d, %v; want 0 and ErrClosed", n, err)
		}
	}
	if err := out.Printf("x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Printf: %v; want ErrClosed", err)
	}
}

// failing fails the write that it is told to, counted from 1.
type failing struct {
	at  int
	n   int
	err error
	got strings.Builder
}

func (f *failing) Write(p []byte) (int, error) {
	if f.n++; f.n == f.at {
		return 0, f.err
	}
	return f.got.Write(p)
}

func TestWriteErrorsStay(t *testing.T) {
	full := errors.New("no space left on device")
	for _, terminal := range []bool{false, true} {
		f := &failing{at: 2, err: full}
		out := New(nil, f, io.Discard, Facts{OutTerminal: terminal}).Out
		if _, err := out.Write([]byte("one\n")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if n, err := out.Write([]byte("two\n")); n != 0 || !errors.Is(err, full) || errors.Is(err, ErrClosed) {
				t.Errorf("terminal %t: Write = %d, %v; want 0, %v", terminal, n, err, full)
			}
		}
		if got := f.got.String(); got != "one\n" {
			t.Errorf("terminal %t: wrote %q after the failure", terminal, got)
		}
	}
}

type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) / 2, nil }

func TestShortWriteIsAnError(t *testing.T) {
	if _, err := Plain(short{}).Write([]byte("abcd")); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("err = %v; want a short write", err)
	}
}

func TestWritesOfSeveralGoroutinesStayWhole(t *testing.T) {
	io, out, _ := terminal(nil)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				io.Note("a note with %s", "words")
				_ = io.Out.Printf("a line with %s\n", "words")
			}
		})
	}
	wg.Wait()
	for line := range strings.Lines(out.String()) {
		if line != "a line with words\n" {
			t.Fatalf("line %q", line)
		}
	}
}

// writes collects what is written, a write each.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestHold(t *testing.T) {
	line, long := strings.Repeat("x", maxWaiting/4), strings.Repeat("y", maxWaiting+1)
	var out writes
	w := Plain(&out)
	write := func(texts ...string) {
		t.Helper()
		for _, s := range texts {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("Write of %d bytes: %d, %v", len(s), n, err)
			}
		}
	}
	w.Hold()
	write("a", "b")
	w.Hold()
	write(line, line, line, line, "c", long, "d")
	if err := w.Release(); err != nil {
		t.Error(err)
	}
	write("e")
	if err := w.Release(); err != nil {
		t.Error(err)
	}
	if want := (writes{"ab" + line + line + line, line + "c", long, "d", "e"}); !slices.Equal(out, want) {
		t.Errorf("%d writes; want %d", len(out), len(want))
	}
	// A terminal gets all at once, and Close writes what waits.
	for terminal, want := range map[bool]writes{true: {"a", "b"}, false: {"ab"}} {
		var out writes
		io := New(nil, &out, &out, Facts{OutTerminal: terminal})
		io.Out.Hold()
		for _, s := range []string{"a", "b"} {
			if err := io.Out.Printf("%s", s); err != nil {
				t.Error(err)
			}
		}
		if err := io.Close(); err != nil || !slices.Equal(out, want) {
			t.Errorf("terminal %v: %q, %v; want %q", terminal, out, err, want)
		}
	}
}

func TestHoldReportsAFailedWrite(t *testing.T) {
	r, pipe := io.Pipe()
	_ = r.Close()
	w := Plain(pipe)
	w.Hold()
	if _, err := w.Write([]byte("a")); err != nil {
		t.Errorf("held: %v", err)
	}
	for range 2 {
		if err := w.Release(); !errors.Is(err, ErrClosed) {
			t.Errorf("Release: %v; want ErrClosed", err)
		}
	}
	if _, err := w.Write([]byte("b")); !errors.Is(err, ErrClosed) {
		t.Errorf("after it: %v; want ErrClosed", err)
	}
}

// terminal returns streams whose terminals are buffers.
func terminal(env map[string]string) (t *IO, out, err *bytes.Buffer) {
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	t = New(strings.NewReader(""), out, err, Facts{OutTerminal: true, ErrTerminal: true, Env: env})
	return t, out, err
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); n != len(s) || err != nil {
		t.Fatalf("Write(%q) = %d, %v; want %d, nil", s, n, err, len(s))
	}
}

func TestFilter(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"text", []string{"a\tb\n", "ü 日本\n"}, "a\tb\nü 日本\n"},
		{"escape", []string{"\x1b[2J\r\x9b"}, `\u{1b}[2J\u{d}\x{9b}`},
		{"own colour is foreign too", []string{"\x1b[31mred\x1b[0m"}, `\u{1b}[31mred\u{1b}[0m`},
		{"C1 split", []string{"\xc2", "\x9b31m"}, `\x{c2}\x{9b}31m`},
		{"tag split", []string{"\xf3\xa0", "\x81\x81"}, `\x{f3}\x{a0}\x{81}\x{81}`},
		{"started and not finished", []string{"a\xe2\x82", "b"}, `a\x{e2}\x{82}b`},
		{"finished by the end", []string{"a\xe2\x82"}, `a\x{e2}\x{82}`},
		{"started twice", []string{"\xe2", "\xe2\x82\xac"}, `\x{e2}€`},
		{"empty writes", []string{"", "é", ""}, "é"},
	}
	for _, tt := range tests {
		io, out, _ := terminal(nil)
		for _, w := range tt.writes {
			write(t, io.Out, w)
		}
		if err := io.Close(); err != nil {
			t.Errorf("%s: Close: %v", tt.name, err)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: terminal got %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestFilterLetsOwnStylesThroughWhereTheyBelong(t *testing.T) {
	text := "\x1b[32mok\x1b[0m \x1b[5mno\x1b[0m \x1b[32\u202e\n"
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"colour", nil, "\x1b[32mok\x1b[0m \\u{1b}[5mno\x1b[0m \\u{1b}[32\\u{202e}\n"},
		{"no colour", map[string]string{"NO_COLOR": "1"}, "ok \\u{1b}[5mno \\u{1b}[32\\u{202e}\n"},
	}
	for _, tt := range tests {
		io, out, _ := terminal(tt.env)
		if _, err := io.Out.WriteStyled([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: terminal got %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestStyledWriteEndsAnUnfinishedCharacter(t *testing.T) {
	io, out, _ := terminal(nil)
	write(t, io.Out, "a\xe2\x82")
	if err := io.Out.Printf("%s\n", io.Out.Style(Good, "ok")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a\\x{e2}\\x{82}\x1b[32mok\x1b[0m\n"; got != want {
		t.Errorf("terminal got %q; want %q", got, want)
	}
}

func TestBytesPassUnchangedWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	io := New(nil, &out, &out, Facts{})
	text := "\x1b[31m\x00\xff\u202e\r\n\xe2"
	write(t, io.Out, text)
	if err := io.Close(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != text {
		t.Errorf("got %q; want %q", got, text)
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"abc\n", "\x1b]52;c;QQ\x07", "\xc2\x9b", "é日😀", "\xf0\x9f\x98", "\u202e\u2028", "\x1b[31mx\x1b[0m"} {
		f.Add([]byte(s), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, p []byte, a, b uint8) {
		i := min(int(a), len(p))
		j := min(i+int(b), len(p))
		whole, inParts := string(plain(p)), string(plain(p[:i]))+string(plain(p[i:j]))+string(plain(p[j:]))
		if want := VisibleText(string(p)); whole != want {
			t.Errorf("filter made %q of %q; want %q", whole, p, want)
		}
		for _, shown := range []string{whole, inParts} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool {
				return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
			}) {
				t.Errorf("filter let a control character through: %q of %q", shown, p)
			}
		}
		styled := string(styled(p, true))
		for _, own := range []Style{Heading, Good, Bad, Caution, Faint, Accent} {
			styled = strings.ReplaceAll(styled, own.sequence(), "")
		}
		styled = strings.ReplaceAll(styled, resetSequence, "")
		if strings.ContainsRune(styled, '\x1b') {
			t.Errorf("styled write let %q through of %q", styled, p)
		}
	})
}

func TestVisible(t *testing.T) {
	tests := []struct{ in, line, text string }{
		{"", "", ""},
		{"plain ASCII ~", "plain ASCII ~", "plain ASCII ~"},
		{"Größe 日本 👍🏽 é", "Größe 日本 👍🏽 é", "Größe 日本 👍🏽 é"},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"a\rb", `a\u{d}b`, `a\u{d}b`},
		{"\x00\x07\x1b[31m\x7f", `\u{0}\u{7}\u{1b}[31m\u{7f}`, `\u{0}\u{7}\u{1b}[31m\u{7f}`},
		{"\x1b]52;c;AAAA\x07", `\u{1b}]52;c;AAAA\u{7}`, `\u{1b}]52;c;AAAA\u{7}`},
		{"\u0080\u009b31m\u0085", `\u{80}\u{9b}31m\u{85}`, `\u{80}\u{9b}31m\u{85}`},
		{"\x80\x9b\xff", `\x{80}\x{9b}\x{ff}`, `\x{80}\x{9b}\x{ff}`},
		{"a\xe2\x82", `a\x{e2}\x{82}`, `a\x{e2}\x{82}`},
		{"\xed\xa0\x80", `\x{ed}\x{a0}\x{80}`, `\x{ed}\x{a0}\x{80}`},
		{"\xc0\x9b", `\x{c0}\x{9b}`, `\x{c0}\x{9b}`},
		{"\u202eabc\u202c", `\u{202e}abc\u{202c}`, `\u{202e}abc\u{202c}`},
		{"\u061c\u200e\u200f\u2066\u2069", `\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}`, `\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}`},
		{"\u200b\u200d\u2060\ufeff", `\u{200b}\u{200d}\u{2060}\u{feff}`, `\u{200b}\u{200d}\u{2060}\u{feff}`},
		{"\u2028\u2029\u00ad", `\u{2028}\u{2029}\u{ad}`, `\u{2028}\u{2029}\u{ad}`},
		{"\U000e0041\U000e0001\U000e01ef", `\u{e0041}\u{e0001}\u{e01ef}`, `\u{e0041}\u{e0001}\u{e01ef}`},
		{"\u3164\u115f\u034f\ufe00", `\u{3164}\u{115f}\u{34f}\u{fe00}`, `\u{3164}\u{115f}\u{34f}\u{fe00}`},
		{"❤\ufe0f", "❤\ufe0f", "❤\ufe0f"},
		{"\u00a0 \ufffd", "\u00a0 \ufffd", "\u00a0 \ufffd"},
		{"\ue000 \uf8ff \U000f0000 \U0010fffd", `\u{e000} \u{f8ff} \u{f0000} \u{10fffd}`, `\u{e000} \u{f8ff} \u{f0000} \u{10fffd}`},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.line {
			t.Errorf("Visible(%q) = %q; want %q", tt.in, got, tt.line)
		}
		if got := VisibleText(tt.in); got != tt.text {
			t.Errorf("VisibleText(%q) = %q; want %q", tt.in, got, tt.text)
		}
	}
}

// TestHiddenRunes compares the shortcuts of hidden with what it is made of.
func TestHiddenRunes(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point) &&
			r != '\ufe0f'
		if got := hidden(r); got != want && utf8.ValidRune(r) {
			t.Errorf("hidden(%U) = %t; want %t", r, got, want)
		}
	}
}

func TestVisibleCleanTextCostsNothing(t *testing.T) {
	for _, s := range []string{"1Z999AA10123456784", "Größe 日本語 Ελλάδα", strings.Repeat("x", 4096)} {
		if n := testing.AllocsPerRun(100, func() { _ = Visible(s) }); n != 0 {
			t.Errorf("Visible(%.20q): %v allocations; want none", s, n)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"abc", "a\nb", "\x1b[2J", "\xff\xfe", "\u202e", "日本", `\u{1b}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, text := Visible(s), VisibleText(s)
		if at := cleanPrefix(line, oneLine); at != len(line) {
			t.Errorf("Visible(%q) = %q: not clean at %d", s, line, at)
		}
		if at := cleanPrefix(text, severalLines); at != len(text) {
			t.Errorf("VisibleText(%q) = %q: not clean at %d", s, text, at)
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("Visible(%q) = %q holds a control character or bad UTF-8", s, line)
		}
		if again := Visible(line); again != line {
			t.Errorf("Visible twice: %q, then %q", line, again)
		}
		if want := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text); line != want {
			t.Errorf("Visible(%q) = %q; want as VisibleText %q", s, line, want)
		}
	})
}
