package command

import (
	"fmt"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Progress shows how many of a number are done, at which rate, and how
// long the rest will take.
type Progress struct {
	bar   *term.Progress
	unit  string
	total int64
	began time.Time

	mu    sync.Mutex
	done  int64
	extra func() string
}

func NewProgress(io *term.IO, label, unit string, total int64) *Progress {
	p := &Progress{bar: io.Progress(label), unit: unit, total: total, began: time.Now()}
	if total > 0 {
		p.Add(0)
	}
	return p
}

func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	text := fmt.Sprintf("%d of %d %s", p.done, p.total, p.unit)
	if p.extra != nil {
		text += p.extra()
	}
	fields := map[string]any{"done": p.done, "total": p.total}
	if took := time.Since(p.began).Seconds(); p.done > 0 && took > 0.5 {
		rate := float64(p.done) / took
		text += fmt.Sprintf(", %.0f/s, %s left", rate, ShortDuration(time.Duration(float64(p.total-p.done)/rate*float64(time.Second))))
		fields["perSecond"] = int64(rate)
	}
	p.bar.Set(text, fields)
}

func (p *Progress) Stop() { p.bar.Stop() }

func ShortDuration(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute / 6).String()
}

// CreateProgress shows rows and batches on their way.
type CreateProgress struct {
	*Progress
	batches int64
}

func NewCreateProgress(io *term.IO, rows int64) *CreateProgress {
	p := &CreateProgress{Progress: NewProgress(io, "creating", "rows", rows)}
	p.extra = func() string { return fmt.Sprintf(", %d batches", p.batches) }
	return p
}

// Settled counts a batch whose outcome is on disk. Rows that go again, or that
// nobody knows of, are not done.
func (p *CreateProgress) Settled(b ledger.Batch, r *tracking.Reply) {
	if r.Outcome != tracking.OutcomeAccepted && (r.Outcome != tracking.OutcomeRows || len(b.Rows) > 1) {
		return
	}
	p.mu.Lock()
	p.batches++
	p.mu.Unlock()
	p.Add(int64(len(b.Rows)))
}

// Resolved counts rows that the service turned out to have.
func (p *CreateProgress) Resolved(state ledger.State, rows int64) {
	if state == ledger.Accepted {
		p.Add(rows)
	}
}
