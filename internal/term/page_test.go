//go:build !windows

package term

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

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
