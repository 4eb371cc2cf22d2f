package term

import (
	"bytes"
	"cmp"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Escape sequences of a page. The alternate screen keeps the previous content of the terminal, and leaving restores it.
const (
	enterPage = "\x1b[?1049h\x1b[2J"
	leavePage = "\x1b[?1049l"
	homeHere  = "\x1b[H"
	eraseDown = "\x1b[J"
)

const (
	pageEvery     = 250 * time.Millisecond
	defaultHeight = 24
	maxBuffered   = 64 << 10 // bytes of messages held until the page ends
)

// Page is the whole terminal of Out, drawn anew as things change. Other text waits: its last line is at the bottom.
// Stop restores the terminal and writes the text that waited.
type Page struct {
	running
	draw       func(w *Writer, height int)
	last       string // frame on the terminal
	wide, high int    // its size
}

// CanRedraw reports whether Out is a terminal that can show a [Page].
func (t *IO) CanRedraw() bool { return t.Out.movable && t.Out.file != nil }

// Page begins to show a page. draw writes at most height lines to w; it is called at once, then by another goroutine.
// The caller stops the page.
func (t *IO) Page(draw func(w *Writer, height int)) *Page {
	p := &Page{running: running{io: t}, draw: draw}
	t.Out.screen.begin(t.Out)
	p.redraw()
	stop := every(pageEvery, p.redraw)
	p.begin(func() {
		stop()
		t.Out.screen.end(t.Out)
	})
	return p
}

func (p *Page) redraw() {
	out := p.io.Out
	wide := out.Width()
	_, high := out.size()
	high = cmp.Or(high, defaultHeight)
	message := out.screen.lastBuffered()
	lines := high
	if message != "" {
		lines--
	}
	var b bytes.Buffer
	w := &Writer{w: &b, terminal: true, color: out.color, width: wide, screen: &screen{}}
	p.draw(w, lines)
	all := strings.SplitN(strings.TrimSuffix(b.String(), "\n"), "\n", lines+1)
	all = all[:min(len(all), lines)]
	if message != "" {
		all = append(all, slices.Repeat([]string{""}, lines-len(all))...)
		all = append(all, message)
	}
	for i, l := range all {
		all[i] = cut(l, wide) + "\x1b[K"
	}
	frame := homeHere + strings.Join(all, "\r\n") + eraseDown
	if wide == p.wide && high == p.high && frame == p.last {
		return
	}
	out.screen.mu.Lock()
	defer out.screen.mu.Unlock()
	if wide != p.wide || high != p.high {
		out.raw("\x1b[2J")
	}
	out.raw(frame)
	p.last, p.wide, p.high = frame, wide, high
}

// cut truncates a styled line to the width of a terminal.
func cut(line string, width int) string {
	var b strings.Builder
	for line != "" {
		if own := ownSequence([]byte(line)); own != nil {
			b.Write(own)
			line = line[len(own):]
			continue
		}
		n := strings.IndexByte(line[1:], '\x1b') + 1
		n = cmp.Or(n, len(line))
		text := Truncate(line[:n], width)
		b.WriteString(text)
		width -= DisplayWidth(text)
		line = line[n:]
	}
	return b.String()
}

func (s *screen) begin(w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spinner {
		s.spinner = false
		w.raw(eraseLine)
	}
	s.paged = true
	w.raw(enterPage)
}

func (s *screen) end(w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paged = false
	w.raw(leavePage)
	if len(s.buffered) > 0 && w.err == nil {
		_, err := s.put(w.w, s.buffered)
		w.err = closedError(err)
	}
	s.buffered = nil
}

// hold keeps text until the page ends; above maxBuffered only the last lines. The screen is locked.
func (s *screen) hold(p []byte) {
	s.buffered = append(s.buffered, p...)
	if over := len(s.buffered) - maxBuffered; over > 0 {
		s.buffered = slices.Clone(s.buffered[over+bytes.IndexByte(s.buffered[over:], '\n')+1:])
	}
}

func (s *screen) lastBuffered() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := bytes.TrimRight(s.buffered, "\n")
	return string(text[bytes.LastIndexByte(text, '\n')+1:])
}

// screen is the cursor that Out and Err share on a terminal. It erases a spinner's line before text is written, and
// redraws it only at the start of a line. A stream that is not a terminal has its own screen, for the lock.
type screen struct {
	mu       sync.Mutex
	spinner  bool // a spinner's line is shown, and the cursor is after it
	midline  bool // the cursor follows text without a newline
	live     []*Progress
	paged    bool   // a [Page] is shown
	buffered []byte // text held until the page ends
}

const eraseLine = "\r\x1b[K"

// put erases a spinner's line and writes text to w. The screen is locked.
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

// remove removes p and its line from the screen of w. An earlier progress that still runs is shown again.
func (s *screen) remove(w *Writer, p *Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(q *Progress) bool { return q == p })
	if s.spinner {
		s.spinner = false
		w.raw(eraseLine)
	}
}

// draw shows a spinner's line if p is the newest progress and the cursor is at the start of a line.
func (s *screen) draw(w *Writer, p *Progress, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midline || s.paged || len(s.live) == 0 || s.live[len(s.live)-1] != p {
		return
	}
	s.spinner = true
	w.raw("\r" + line + "\x1b[K")
}

// raw writes an escape sequence of our own or a spinner's line to a terminal. The screen is locked.
func (w *Writer) raw(s string) {
	if w.err == nil {
		_, err := io.WriteString(w.w, s)
		w.err = closedError(err)
	}
}

// spinnerOutput passes on only the text of a spinner. The screen erases it: the spinner counts bytes as columns and
// moves up over other lines.
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

var sequences = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
