//go:build !windows

package term

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/term"
)

// A page fits the terminal, is drawn again when that is resized, and leaves it as it
// was; what was written meanwhile comes then, the last of it at the page's bottom.
func TestPage(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := open(t, 40, nil)
	before, err := term.GetState(int(d.tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Out, "what was there\n")
	p := d.Progress("waiting")
	d.await(t, "spinner", frames(2, "waiting"))
	var n atomic.Int64
	page := d.Page(func(w *Writer, height int) {
		_ = w.Printf("%s of %d columns\n", w.Style(Good, "frame "+fmt.Sprint(n.Add(1))), w.Width())
		for i := range 100 {
			_ = w.Printf("line %d of %d %s\n", i, height, strings.Repeat("x", 100))
		}
	})
	d.await(t, "a page", frames(1, "line 22 of 24"))
	d.Note("first note")
	d.Note("last note")
	d.await(t, "the note at the bottom", frames(1, "\nlast note\x1b[K\x1b[J"))
	if err := pty.Setsize(d.tty, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	d.await(t, "a smaller page", frames(1, " of 20 c"))
	page.Stop()
	page.Stop()
	d.await(t, "spinner after the page", func(raw string) bool {
		_, after, ok := strings.Cut(raw, leavePage)
		return ok && strings.Contains(after, "waiting")
	})
	p.Stop()
	after, err := term.GetState(int(d.tty.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the terminal's modes are %+v, %v; were %+v", after, err, before)
	}
	raw := d.end(t)
	start, rest, _ := strings.Cut(raw, enterPage)
	shown, end, ok := strings.Cut(rest, leavePage)
	if !ok || strings.Contains(end, enterPage) {
		t.Fatalf("a page did not end: %q", raw)
	}
	if got, want := strings.Join(drawn(t, start+end, 40), "\n"), "what was there\nfirst note\nlast note\n"; got != want {
		t.Errorf("the terminal shows %q; want %q", got, want)
	}
	for i, frame := range strings.Split(shown, homeHere)[1:] {
		lines := strings.Split(frame, "\r\n")
		if len(lines) > 24 {
			t.Errorf("frame %d has %d lines", i, len(lines))
		}
		for _, l := range lines {
			if n := DisplayWidth(uncoloured(Styled(l))); n > 40 {
				t.Errorf("frame %d has a line of %d columns: %q", i, n, l)
			}
		}
	}
	last := shown[strings.LastIndex(shown, homeHere):]
	if lines := strings.Split(last, "\r\n"); len(lines) != 10 || DisplayWidth(uncoloured(Styled(lines[3]))) != 20 {
		t.Errorf("the last frame is %q; want 10 lines of 20 columns", last)
	}
}

// A page is drawn four times a second, and written only if that changes it.
func TestPageIsDrawnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		drawn := 0
		page := New(nil, &out, &out, Facts{OutTerminal: true}).Page(func(w *Writer, _ int) {
			_ = w.Printf("frame %d\n", drawn/2)
			drawn++
		})
		time.Sleep(2*time.Second + time.Millisecond)
		page.Stop()
		time.Sleep(time.Minute)
		if n := strings.Count(out.take(), homeHere); drawn != 9 || n != 5 {
			t.Errorf("drawn %d times, written %d times; want 9 and 5", drawn, n)
		}
	})
}

// A failure takes the page off before it is shown.
func TestFailureEndsAPage(t *testing.T) {
	d := open(t, 40, nil)
	d.Page(func(w *Writer, _ int) { _ = w.Printf("a page\n") })
	d.Fail(Failure{Message: "gone"})
	if raw := d.end(t); !strings.Contains(raw, leavePage+"\x1b[31mwaybill:\x1b[0m gone\n") {
		t.Errorf("got %q", raw)
	}
}

// Terminals that can only print get no page, and neither does what is none.
func TestOnlySomeCanRedraw(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want bool
	}{{nil, true}, {map[string]string{"TERM": "dumb"}, false}} {
		d := open(t, 40, tt.env)
		if got := d.CanRedraw(); got != tt.want {
			t.Errorf("%v: %v; want %v", tt.env, got, tt.want)
		}
		d.end(t)
	}
	if New(nil, new(lockedBuffer), new(lockedBuffer), Facts{}).CanRedraw() {
		t.Error("a pipe can be redrawn")
	}
}

func TestAsk(t *testing.T) {
	var shown bytes.Buffer
	io := New(strings.NewReader(" one \r\n\ntwo"), &bytes.Buffer{}, &shown, Facts{InTerminal: true, ErrTerminal: true})
	for _, want := range []string{"one", ""} {
		if got, err := io.Ask(t.Context(), "Name [%s]:", "a\x1bb"); got != want || err != nil {
			t.Errorf("answer %q, %v; want %q", got, err, want)
		}
	}
	if got, err := io.Ask(t.Context(), "Name:"); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("answer %q, %v; want ErrNoAnswer for a line without end", got, err)
	}
	if want := `Name [a\u{1b}b]: Name [a\u{1b}b]: Name: ` + "\n"; shown.String() != want {
		t.Errorf("shown %q; want %q", shown.String(), want)
	}
}

func TestConfirm(t *testing.T) {
	for typed, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "no\n": false, "what\ny\n": true} {
		io := New(strings.NewReader(typed), &bytes.Buffer{}, &bytes.Buffer{}, Facts{InTerminal: true, ErrTerminal: true})
		if got, err := io.Confirm(t.Context(), "Write?"); got != want || err != nil {
			t.Errorf("%q is %v, %v; want %v", typed, got, err, want)
		}
	}
}

func TestInteractive(t *testing.T) {
	on := Facts{InTerminal: true, ErrTerminal: true}
	for _, tt := range []struct {
		facts Facts
		json  bool
		want  bool
	}{{on, false, true}, {on, true, false}, {Facts{InTerminal: true}, false, false}, {Facts{ErrTerminal: true}, false, false}} {
		io := New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, tt.facts)
		io.Configure(Options{JSON: tt.json})
		if got := io.Interactive(); got != tt.want {
			t.Errorf("%+v, JSON %v: %v; want %v", tt.facts, tt.json, got, tt.want)
		}
	}
}

// A secret is typed when its question shows, and nothing of it comes back; the
// terminal is as before after an answer and after an interruption.
func TestAskSecretHidesWhatIsTyped(t *testing.T) {
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	defer ptmx.Close()
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	io := New(tty, tty, tty, Facts{InTerminal: true, OutTerminal: true, ErrTerminal: true})
	shown := make(chan string)
	go func() { // what the terminal shows, up to the second question
		var all []byte
		for buf := make([]byte, 64); !bytes.HasSuffix(all, []byte("Again: ")); {
			n, err := ptmx.Read(buf)
			if err != nil {
				break
			}
			if all = append(all, buf[:n]...); string(all) == "Key: " {
				if _, err := ptmx.WriteString("s3crX\x7fet\r"); err != nil { // as typed, with a correction
					break
				}
			}
		}
		shown <- string(all)
	}()
	if got, err := io.AskSecret(t.Context(), "Key:"); got != "s3cret" || err != nil {
		t.Errorf("answer %q, %v", got, err)
	}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	all := make(chan string, 1)
	go func() {
		all <- <-shown
		cancel(interrupted)
	}()
	if got, err := io.AskSecret(ctx, "Again:"); !errors.Is(err, interrupted) {
		t.Errorf("answer %q, %v; want the interruption", got, err)
	}
	if got, want := <-all, "Key: \r\nAgain: "; got != want {
		t.Errorf("the terminal shows %q; want %q", got, want)
	}
	after, err := term.GetState(int(tty.Fd()))
	if err != nil || *after != *before {
		t.Errorf("the modes of the terminal are %+v, %v; were %+v", after, err, before)
	}
}
