package command

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Progress shows how many items are done and left, the rate, elapsed time and time left. It is safe for concurrent use.
type Progress struct {
	bar      *term.Progress
	unit     string
	total    int64
	began    time.Time
	deadline time.Time // when the command gives up; zero for never
	// extra returns further texts, most important first, and JSON members; nil for none.
	extra func() (texts []string, all map[string]any)

	mu      sync.Mutex
	done    int64
	failed  int64     // neither done nor left
	problem error     // why requests fail; nil if they succeed
	retry   time.Time // when the service allows the next request; zero for soon
	samples []sample  // of the last rateWindow
}

type sample struct {
	at   time.Time
	done int64
}

const rateWindow = 30 * time.Second

// NewProgress starts to show progress. If total is 0, it is unknown, and progress shows from the first [Progress.Add].
func NewProgress(io *term.IO, label, unit string, total int64) *Progress {
	return NewWaitProgress(io, label, unit, total, time.Time{}, nil)
}

// newProgress returns a progress that shows only its label.
func newProgress(io *term.IO, label, unit string, total int64) *Progress {
	now := time.Now()
	return &Progress{bar: io.Progress(label), unit: unit, total: total, began: now, samples: []sample{{at: now}}}
}

// NewWaitProgress starts to show a wait until deadline, with the texts and JSON members of extra, see [Progress].
func NewWaitProgress(
	io *term.IO, label, unit string, total int64, deadline time.Time, extra func() ([]string, map[string]any),
) *Progress {
	p := newProgress(io, label, unit, total)
	p.deadline, p.extra = deadline, extra
	p.bar.Show(p.report)
	return p
}

// Add counts n more items as done.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sample()
	p.done += n
}

// Done returns the number of items done.
func (p *Progress) Done() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// AddKnown counts n items that were done earlier or by another process: the rate ignores them.
func (p *Progress) AddKnown(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	for i := range p.samples {
		p.samples[i].done += n
	}
}

// AddFailed counts n items as failed: neither done nor left.
func (p *Progress) AddFailed(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed += n
}

// SetUnit names the items.
func (p *Progress) SetUnit(unit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unit = unit
}

// Failing shows why requests fail; nil clears it.
func (p *Progress) Failing(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problem, p.retry = err, time.Time{}
	if pause := tracking.FailureOf(err).RetryAfter; pause > 0 {
		p.retry = time.Now().Add(pause)
	}
}

// trouble returns the text shown while requests fail. p is locked.
func (p *Progress) trouble() []term.Part {
	text := p.problem.Error()
	var short interface{ Short() string }
	if errors.As(p.problem, &short) {
		text = short.Short()
	}
	next := "retrying"
	if left := time.Until(p.retry); left > 0 {
		next = "next in " + ShortDuration(left)
	}
	return []term.Part{{Text: text, Next: true, Rank: rankProblem}, {Text: next, Rank: rankProblem, Ticking: true}}
}

// sample takes a sample, once a second, and drops old ones. p is locked.
func (p *Progress) sample() {
	now := time.Now()
	if now.Sub(p.samples[len(p.samples)-1].at) >= time.Second {
		p.samples = append(p.samples, sample{now, p.done})
	}
	for len(p.samples) > 1 && now.Sub(p.samples[0].at) > rateWindow {
		p.samples = p.samples[1:]
	}
}

// A shorter sample, or fewer than one in minShare of all items, is too little to estimate the time left.
const (
	minSample = 2 * time.Second
	minShare  = 100
)

// canEstimate reports whether the samples suffice to estimate the time left. p is locked.
func (p *Progress) canEstimate() bool {
	took, done := time.Since(p.samples[0].at), p.done-p.samples[0].done
	return took >= rateWindow-time.Second || took >= minSample && done*minShare >= p.total
}

// perSecond returns the rate, or 0 if unknown. p is locked.
func (p *Progress) perSecond() float64 {
	took := time.Since(p.samples[0].at).Seconds()
	if took < 0.5 {
		return 0
	}
	return float64(p.done-p.samples[0].done) / took
}

// Ranks of the parts of a progress: the highest is dropped first on a narrow terminal.
const (
	rankProblem = iota + 1
	rankTimeLeft
	rankLeft
	rankTimeout
	rankElapsed
	rankRate
	rankExtra
)

func (p *Progress) report() term.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == 0 && p.total == 0 {
		return term.Report{Parts: []term.Part{{}}}
	}
	p.sample()
	elapsed, rate := time.Since(p.began), p.perSecond()
	fields := map[string]any{"done": p.done, "elapsedSeconds": int64(elapsed.Seconds())}
	parts := []term.Part{{Text: Number(p.done) + " " + p.unit}}
	add := func(part term.Part, name string, number int64) {
		parts = append(parts, part)
		fields[name] = number
	}
	left := p.total - p.done - p.failed
	if p.total > 0 {
		parts[0].Text = Number(p.done) + " of " + Number(p.total) + " " + p.unit
		fields["total"] = p.total
	}
	if left > 0 {
		add(term.Part{Text: Number(left) + " left", Rank: rankLeft}, "left", left)
	}
	if p.problem != nil {
		parts = append(parts, p.trouble()...)
		fields["problem"] = p.problem.Error()
	}
	if rate >= 0.5 {
		add(term.Part{Text: fmt.Sprintf("%s/s", Number(int64(rate+0.5))), Next: true, Rank: rankRate, Ticking: true},
			"perSecond", int64(rate+0.5))
	}
	if elapsed >= time.Second {
		parts = append(parts, term.Part{Text: Stopwatch(elapsed) + " elapsed", Next: true, Rank: rankElapsed, Ticking: true})
	}
	if left > 0 && rate > 0 && p.canEstimate() {
		end := time.Duration(float64(left) / rate * float64(time.Second))
		add(term.Part{Text: "about " + roughly(end) + " left", Rank: rankTimeLeft, Ticking: true}, "leftSeconds",
			int64(end.Seconds()))
	}
	if !p.deadline.IsZero() {
		end := max(time.Until(p.deadline), 0).Round(time.Second)
		add(term.Part{Text: "times out in " + Stopwatch(end), Rank: rankTimeout, Ticking: true}, "timeoutSeconds",
			int64(end.Seconds()))
	}
	if p.extra != nil {
		texts, more := p.extra()
		for i, text := range texts {
			parts = append(parts, term.Part{Text: text, Next: true, Rank: rankExtra + i})
		}
		maps.Copy(fields, more)
	}
	return term.Report{Parts: parts, Fields: fields}
}

// Line returns the text for a terminal of that width.
func (p *Progress) Line(width int) string { return p.bar.Line(width) }

// Stop removes the progress from the terminal.
func (p *Progress) Stop() { p.bar.Stop() }

// CreateProgress shows the number of accepted rows, sent requests and checked rows of unknown outcome.
type CreateProgress struct {
	*Progress
	io       *term.IO
	requests int64     // sent so far
	checking *Progress // nil unless rows are being checked
}

// NewCreateProgress starts to show the progress of a run with that many rows and requests.
func NewCreateProgress(io *term.IO, rows, requests int64) *CreateProgress {
	p := &CreateProgress{Progress: newProgress(io, "Creating", "rows", rows), io: io}
	p.extra = func() ([]string, map[string]any) {
		text := Plural(p.requests, "request")
		if p.requests <= requests {
			text = Number(p.requests) + " of " + Plural(requests, "request")
		}
		return []string{text}, map[string]any{"requests": p.requests, "requestsTotal": max(p.requests, requests)}
	}
	if rows > 0 {
		p.bar.Show(p.report)
	}
	return p
}

// Checking starts to show how many of rows with unknown outcome were checked; 0 ends it.
func (p *CreateProgress) Checking(rows int64) {
	if p.checking != nil {
		p.checking.Stop()
		p.checking = nil
	}
	if rows > 0 {
		p.checking = NewProgress(p.io, "Checking", "rows of unknown outcome", rows)
	}
}

// Checked counts a checked row. Call it between two calls of Checking.
func (p *CreateProgress) Checked() { p.checking.Add(1) }

// Recorded counts a recorded batch. Rows that are to be sent again or unknown do not count as done.
func (p *CreateProgress) Recorded(b ledger.Batch, r *tracking.Reply) {
	if r.Outcome != tracking.OutcomeNotSent {
		p.mu.Lock()
		p.requests++
		p.mu.Unlock()
	}
	if r.Outcome == tracking.OutcomeAccepted || r.Outcome == tracking.OutcomeRows && len(b.Rows) == 1 {
		p.Add(int64(len(b.Rows)))
	}
}

// Resolved counts unknown rows that turned out to be accepted.
func (p *CreateProgress) Resolved(state ledger.State, rows int64) {
	if state == ledger.Accepted {
		p.Add(rows)
	}
}

// Counted raises the number of rows done to recorded, which includes rows that other processes have recorded.
func (p *CreateProgress) Counted(recorded int64) {
	p.AddKnown(max(min(recorded, p.total)-p.Done(), 0))
}
