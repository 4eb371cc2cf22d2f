package term

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/briandowns/spinner"
)

// Intervals at which progress is shown.
const (
	frameEvery = 100 * time.Millisecond
	lineEvery  = 5 * time.Second
)

// Progress shows the progress of work on Err: as a spinner on a terminal whose cursor can be moved, else as a line
// every few seconds if it has changed. It is safe for concurrent use.
type Progress struct {
	running
	label string
	last  atomic.Pointer[func() Report]
}

// Report is the content of a progress at one moment. Texts may be foreign.
type Report struct {
	Parts  []Part         // one line; at least one, which may be empty
	Fields map[string]any // members of the JSON form, nil for none
}

// Part is a part of a line, which is cut to the width of the terminal.
type Part struct {
	Text string
	Next bool // separated from the part before by ` · ` instead of a comma
	// Rank is 0 for a part that stays, possibly cut; of the others, the highest rank is left out first.
	Rank int
	// Ticking says that the part changes with time alone, which causes no new line.
	Ticking bool
}

const unlimited = math.MaxInt

func line(parts []Part, width int) string {
	parts = slices.Clone(parts)
	for {
		var b strings.Builder
		least := 0
		for i, p := range parts {
			switch {
			case i > 0 && p.Next:
				b.WriteString(" · ")
			case i > 0:
				b.WriteString(", ")
			}
			b.WriteString(p.Text)
			if p.Rank > 0 && p.Rank >= parts[least].Rank {
				least = i
			}
		}
		if width == unlimited || DisplayWidth(b.String()) <= width {
			return b.String()
		}
		if len(parts) == 0 || parts[least].Rank == 0 {
			return Truncate(b.String(), width)
		}
		parts = slices.Delete(parts, least, least+1)
	}
}

// Progress begins to show progress with a label, such as "sending". It shows nothing if quiet, or if JSON and not
// verbose. A terminal shows only the newest progress. The caller stops it.
func (t *IO) Progress(label string) *Progress {
	p := &Progress{running: running{io: t}, label: label}
	p.Show(func() Report { return Report{Parts: []Part{{}}} })
	switch {
	case t.options.Quiet, t.options.JSON && !t.options.Verbose:
	case t.options.JSON:
		p.begin(p.lines(p.object))
	case t.Err.movable && t.Err.file != nil:
		p.begin(p.spin())
	default:
		p.begin(p.lines(p.line))
	}
	return p
}

// Show replaces the content with the result of report, which another goroutine calls for each write.
func (p *Progress) Show(report func() Report) { p.last.Store(&report) }

// Line returns the text that a terminal of a width shows next to the spinner, which takes two columns. The last column
// stays free, as a terminal may wrap after it. Two more are for the ^C that a terminal shows: on the next line it would
// not be erased.
func (p *Progress) Line(width int) string { return line(p.labelled((*p.last.Load())().Parts), width-5) }

func (p *Progress) labelled(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Text = Visible(parts[i].Text)
	}
	switch first := &parts[0]; {
	case first.Text == "":
		first.Text = Visible(p.label)
	case p.label != "":
		first.Text = Visible(p.label) + ": " + first.Text
	}
	return parts
}

// spin starts a spinner and returns a function that ends it. Its goroutine then ends within a frame and writes nothing.
func (p *Progress) spin() func() {
	w := p.io.Err
	s := spinner.New(spinner.CharSets[9], frameEvery, spinner.WithWriterFile(w.file))
	s.HideCursor = false // a hidden cursor would stay hidden after a kill
	s.Writer = spinnerOutput{w, p}
	s.PreUpdate = func(s *spinner.Spinner) { // called with s locked
		s.Suffix = " " + p.Line(w.Width())
	}
	w.screen.show(p)
	s.Start()
	return func() {
		s.Stop()
		w.screen.remove(w, p)
	}
}

// lines starts a goroutine that writes changes every lineEvery, and returns a function that ends it.
func (p *Progress) lines(write func(Report)) func() {
	first, last := true, ""
	return every(lineEvery, func() {
		now := (*p.last.Load())()
		steady := slices.DeleteFunc(slices.Clone(now.Parts), func(p Part) bool { return p.Ticking })
		if text := line(steady, unlimited); first || text != last {
			write(now)
			first, last = false, text
		}
	})
}

// every calls do at each tick until stop is called. stop waits for the last call to end.
func every(pause time.Duration, do func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				do()
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

func (p *Progress) line(r Report) { p.io.human(line(p.labelled(r.Parts), unlimited) + "\n") }

func (p *Progress) object(r Report) {
	o := make(map[string]any, len(r.Fields)+3)
	maps.Copy(o, r.Fields)
	o["type"] = "progress"
	if p.label != "" {
		o["label"] = p.label
	}
	if text := line(r.Parts, unlimited); text != "" {
		o["message"] = text
	}
	p.io.object(o)
}
