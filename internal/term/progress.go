package term

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/briandowns/spinner"
)

// How often progress is shown.
const (
	frameEvery = 100 * time.Millisecond
	lineEvery  = 5 * time.Second
)

// Progress shows how far something has come, on Err: as a spinner on a
// terminal whose cursor may be moved, else as a line every few seconds if
// it has changed. It is safe for concurrent use, with everything else that is
// written too.
type Progress struct {
	io    *IO
	label string
	last  atomic.Pointer[update]

	once sync.Once
	end  func() // undoes the start; nil if nothing is shown
}

type update struct {
	text   string
	fields map[string]any
}

// Progress begins to show progress under a label, such as "sending". With
// quiet, and with JSON that is not verbose, nothing is shown. If several are
// begun, a terminal shows the newest. The caller stops it.
func (t *IO) Progress(label string) *Progress {
	p := &Progress{io: t, label: label}
	p.last.Store(&update{})
	switch {
	case t.options.Quiet, t.options.JSON && !t.options.Verbose:
		return p
	case t.options.JSON:
		p.end = p.lines(p.object)
	case t.Err.movable && t.Err.file != nil:
		p.end = p.spin()
	default:
		p.end = p.lines(p.line)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live = append(t.live, p)
	return p
}

// Set replaces what is shown. It costs little and may be called for every
// row. Text may be foreign. Fields are members of the JSON form, nil for none;
// the map must not be changed afterwards.
func (p *Progress) Set(text string, fields map[string]any) {
	p.last.Store(&update{text, fields})
}

// Stop ends it: nothing more is written for it, and nothing of it stays on
// the terminal. It may be called more than once.
func (p *Progress) Stop() {
	p.once.Do(func() {
		if p.end == nil {
			return
		}
		p.end()
		p.io.mu.Lock()
		defer p.io.mu.Unlock()
		p.io.live = slices.DeleteFunc(p.io.live, func(q *Progress) bool { return q == p })
	})
}

// text is label and text in one visible line.
func (p *Progress) text() string {
	text := p.last.Load().text
	switch {
	case text == "":
		return Visible(p.label)
	case p.label == "":
		return Visible(text)
	}
	return Visible(p.label + ": " + text)
}

// spin starts a spinner and returns what ends it. The goroutine of the
// spinner ends within a frame after that, and writes nothing meanwhile.
func (p *Progress) spin() func() {
	w := p.io.Err
	s := spinner.New(spinner.CharSets[9], frameEvery, spinner.WithWriterFile(w.file))
	s.HideCursor = false // it would stay hidden after a kill
	s.Writer = spinnerOutput{w, p}
	s.PreUpdate = func(s *spinner.Spinner) { // called with s locked
		// One column is the spinner's, one a space, and the last stays free: a
		// terminal may go to the next line after it. Two are for the ^C that a
		// terminal shows: in the next line it would stay.
		s.Suffix = " " + Truncate(p.text(), w.Width()-5)
	}
	w.screen.show(p)
	s.Start()
	return func() {
		s.Stop()
		w.screen.remove(w, p)
	}
}

// lines starts to write what has changed, now and then, and returns what ends
// it.
func (p *Progress) lines(write func(*update)) func() {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lineEvery)
		defer tick.Stop()
		var last *update
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				if now := p.last.Load(); last == nil || now.text != last.text {
					write(now)
					last = now
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (p *Progress) line(*update) { p.io.human(p.text() + "\n") }

func (p *Progress) object(n *update) {
	o := make(map[string]any, len(n.fields)+3)
	maps.Copy(o, n.fields)
	o["type"] = "progress"
	if p.label != "" {
		o["label"] = p.label
	}
	if n.text != "" {
		o["message"] = n.text
	}
	p.io.object(o)
}
