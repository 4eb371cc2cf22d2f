package term

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
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
