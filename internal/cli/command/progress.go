package command

import (
	"fmt"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Progress shows how many of a number are done, the rate, and the time left. Its
// methods may be called by several goroutines.
type Progress struct {
	bar   *term.Progress
	unit  string
	total int64
	began time.Time

	mu    sync.Mutex
	done  int64
	extra func() string
}

// NewProgress begins to show progress; 0 is an unknown total, without a time
// left, and shown from the first [Progress.Add] on.
func NewProgress(io *term.IO, label, unit string, total int64) *Progress {
	p := &Progress{bar: io.Progress(label), unit: unit, total: total, began: time.Now()}
	if total > 0 {
		p.Add(0)
	}
	return p
}

// Add counts n more as done.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	text, fields := fmt.Sprintf("%d %s", p.done, p.unit), map[string]any{"done": p.done}
	if p.total > 0 {
		text = fmt.Sprintf("%d of %d %s", p.done, p.total, p.unit)
		fields["total"] = p.total
	}
	if p.extra != nil {
		text += p.extra()
	}
	if took := time.Since(p.began).Seconds(); p.done > 0 && took > 0.5 {
		rate := float64(p.done) / took
		text += fmt.Sprintf(", %.0f/s", rate)
		if left := p.total - p.done; left >= 0 && p.total > 0 {
			text += fmt.Sprintf(", %s left", ShortDuration(time.Duration(float64(left)/rate*float64(time.Second))))
		}
		fields["perSecond"] = int64(rate)
	}
	p.bar.Set(text, fields)
}

// Stop removes the progress from the terminal.
func (p *Progress) Stop() { p.bar.Stop() }

// CreateProgress shows how many rows and batches were accepted.
type CreateProgress struct {
	*Progress
	batches int64
}

// NewCreateProgress begins to show the progress of a run.
func NewCreateProgress(io *term.IO, rows int64) *CreateProgress {
	p := &CreateProgress{Progress: NewProgress(io, "creating", "rows", rows)}
	p.extra = func() string { return ", " + Plural(p.batches, "call") }
	return p
}

// Settled counts a batch whose outcome is on disk. Rows that are sent again or are
// unknown are not done.
func (p *CreateProgress) Settled(b ledger.Batch, r *tracking.Reply) {
	if r.Outcome != tracking.OutcomeAccepted && (r.Outcome != tracking.OutcomeRows || len(b.Rows) > 1) {
		return
	}
	p.mu.Lock()
	p.batches++
	p.mu.Unlock()
	p.Add(int64(len(b.Rows)))
}

// Resolved counts unknown rows that the service has.
func (p *CreateProgress) Resolved(state ledger.State, rows int64) {
	if state == ledger.Accepted {
		p.Add(rows)
	}
}
