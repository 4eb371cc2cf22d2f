package term

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// screen is what several streams share if they are terminals: one cursor. It
// keeps text and a spinner's line apart: the line goes before text comes, and
// is drawn again when the cursor stands at the start of a line. A stream that
// is no terminal has a screen of its own, for its lock.
type screen struct {
	mu      sync.Mutex
	spinner bool // a spinner's line is shown and the cursor stands after it
	midline bool // text without a newline stands before the cursor
	live    []*Progress
	paged   bool   // a [Page] is shown
	held    []byte // text that waits for its end
}

const eraseLine = "\r\x1b[K"

// put writes text p to w, in the place of a spinner's line. The screen is
// locked.
func (s *screen) put(w io.Writer, p []byte) (int, error) {
	if s.paged {
		s.hold(p)
		return len(p), nil
	}
	erased := 0
	if s.spinner {
		erased = len(eraseLine)
		p = append([]byte(eraseLine), p...)
		s.spinner = false
	}
	s.midline = p[len(p)-1] != '\n'
	n, err := w.Write(p)
	return max(n-erased, 0), err
}

func (s *screen) show(p *Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = append(s.live, p)
}

// remove takes p and its line off the screen of w. An earlier progress that is
// not stopped is shown again.
func (s *screen) remove(w *Writer, p *Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(q *Progress) bool { return q == p })
	if s.spinner {
		s.spinner = false
		w.raw(eraseLine)
	}
}

// draw shows a spinner's line if p is the one to show and nothing stands
// before the cursor.
func (s *screen) draw(w *Writer, p *Progress, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midline || s.paged || len(s.live) == 0 || s.live[len(s.live)-1] != p {
		return
	}
	s.spinner = true
	w.raw("\r" + line + "\x1b[K")
}

// raw writes one of our own sequences or a spinner's line to a terminal. The
// screen is locked.
func (w *Writer) raw(s string) {
	if w.err == nil {
		_, err := io.WriteString(w.w, s)
		w.err = closedError(err)
	}
}

// spinnerOutput is what the spinner writes to. Of all it writes only the text counts:
// the screen knows best what to erase, and the spinner's own reckoning takes
// bytes for columns and goes up over lines that are not its own.
type spinnerOutput struct {
	w *Writer
	p *Progress
}

// Write implements [io.Writer]; b is one frame or one erasure.
func (c spinnerOutput) Write(b []byte) (int, error) {
	line := strings.ReplaceAll(sequences.ReplaceAllString(string(b), ""), "\r", "")
	if text := strings.TrimRight(line, " "); text != "" {
		c.w.screen.draw(c.w, c.p, text)
	}
	return len(b), nil
}

// sequences are the escape sequences that styles and a spinner write.
var sequences = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
