package listen

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
)

// maxQueued is how many attempts wait to be printed; more are only counted.
const maxQueued = 1024

type attemptJSON struct {
	Type           string            `json:"type"`   // forward
	Target         string            `json:"target"` // without what may be a token
	Filter         string            `json:"filter"`
	Delivery       int64             `json:"delivery"`
	Attempt        int               `json:"attempt"`
	Outcome        inbox.Disposition `json:"outcome"` // sent, retry or dead
	Status         int               `json:"status"`  // 0 if no answer came
	ElapsedSeconds float64           `json:"elapsedSeconds"`
	Problem        string            `json:"problem,omitempty"`
	NextAttemptAt  *time.Time        `json:"nextAttemptAt,omitempty"`
	FailingSince   *time.Time        `json:"failingSince"`            // of the target; null if it is fine
	FailedSeconds  float64           `json:"failedSeconds,omitempty"` // how long the target had failed before this
	Reply          string            `json:"reply,omitempty"`         // start of the answer
}

// attemptPrinter prints attempts to forward in the order in which they ended.
type attemptPrinter struct {
	out   *command.Output
	io    *term.IO
	queue chan forward.AttemptReport
	sent  atomic.Int64 // deliveries that their target accepted
	lost  atomic.Int64 // attempts that were not printed
}

func newAttemptPrinter(c *command.Call) *attemptPrinter {
	return &attemptPrinter{out: c.Out, io: c.IO, queue: make(chan forward.AttemptReport, maxQueued)}
}

// enqueue keeps an attempt to be printed. It never blocks: forwarding does not
// wait for the reader of the output.
func (p *attemptPrinter) enqueue(n forward.AttemptReport) {
	if n.Disposition == inbox.Sent {
		p.sent.Add(1)
	}
	select {
	case p.queue <- n:
	default:
		p.lost.Add(1)
	}
}

// run prints the queue until it is closed, and after an error reads it only.
// printing is held while something is printed.
func (p *attemptPrinter) run(printing sync.Locker) error {
	var failed error
	for n := range p.queue {
		if failed == nil {
			printing.Lock()
			failed = p.print(n)
			printing.Unlock()
		}
	}
	return failed
}

// print prints one attempt, and before it how many were lost.
func (p *attemptPrinter) print(n forward.AttemptReport) error {
	if lost := p.lost.Swap(0); lost > 0 {
		p.io.Warning("not printed: %s to forward before this one", command.Plural(lost, "attempt"))
	}
	if !p.out.Machine() {
		return p.printLine(n)
	}
	j := attemptJSON{
		Type: "forward", Target: n.Target.Show(), Filter: n.Target.Filter.String(), Delivery: n.Delivery, Attempt: n.Attempt, Outcome: n.Disposition,
		Status: n.Status, ElapsedSeconds: n.Elapsed.Round(time.Millisecond).Seconds(), Problem: n.Problem,
		NextAttemptAt: view.TimeOrNull(n.Due), FailingSince: view.TimeOrNull(n.FailingSince), FailedSeconds: n.FailedFor.Round(time.Millisecond).Seconds(), Reply: string(n.Reply),
	}
	return p.out.Object(j)
}

func (p *attemptPrinter) printLine(n forward.AttemptReport) error {
	what, style, how := "forwarded", term.Good, fmt.Sprintf("%d in %v", n.Status, n.Elapsed.Round(time.Millisecond))
	if n.FailedFor > 0 {
		how += fmt.Sprintf("; it works again after %v", n.FailedFor.Round(time.Second))
	}
	switch n.Disposition {
	case inbox.Retry:
		what, style = "not forwarded", term.Caution
		how = fmt.Sprintf("%s; next attempt in %v", n.Problem, max(time.Until(n.Due), 0).Round(time.Second))
		if n.Attempt > 1 {
			how += ", failing since " + view.Clock(n.FailingSince)
		}
	case inbox.GivenUp:
		what, style = "given up", term.Bad
		how = n.Problem + "; see `waybill events list --dead`"
	case inbox.Sent, inbox.Returned:
	}
	if n.Attempt > 1 {
		how = fmt.Sprintf("attempt %d: %s", n.Attempt, how)
	}
	out := p.out.Out()
	err := p.out.Line("%s", textLine(out, view.Clock(time.Now()), strconv.FormatInt(n.Delivery, 10), style, what, "to "+n.Target.Show()+": "+how))
	if len(n.Reply) > 0 {
		p.io.Detail("answer to %d: %s", n.Delivery, strings.TrimRight(string(n.Reply), "\r\n"))
	}
	return err
}
