package listen

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/term"
)

// eventPrinter prints what was received, one line each.
type eventPrinter struct {
	out     *command.Output
	io      *term.IO
	names   view.StatusNames
	hide    func(json.RawMessage) json.RawMessage
	observe bool // a scheme is set, and not enforced

	stop      func() // called after exitAfter new events; 0 for never
	exitAfter int64

	// What was counted last: a delivery, or the last one before the start, and
	// the place of an event in it.
	lastDelivery int64
	lastIndex    int
	summary      summaryJSON
}

// newEventPrinter returns a printer of what is received from now on.
func newEventPrinter(c *command.Call, before inbox.Counts, exitAfter int64, stop func()) *eventPrinter {
	w := c.Config.Webhook
	return &eventPrinter{
		out: c.Out, io: c.IO, names: view.NewStatusNames(c.Config.Statuses), hide: c.SecretMasker(), observe: w.Scheme != "" && w.Verify == "observe",
		stop: stop, exitAfter: exitAfter, lastDelivery: before.Deliveries, lastIndex: math.MaxInt,
	}
}

// summaryJSON is the last object that `listen` prints.
type summaryJSON struct {
	Type             string `json:"type"` // summary
	Deliveries       int64  `json:"deliveries"`
	Events           int64  `json:"events"` // that were not known before
	Duplicates       int64  `json:"duplicates"`
	Conflicts        int64  `json:"conflicts"`
	Anomalies        int64  `json:"anomalies"`
	Refused          int64  `json:"refused"`
	WouldHaveRefused int64  `json:"wouldHaveRefused"` // of deliveries, when observing
}

// receivedJSON is an event as `listen` prints it.
type receivedJSON struct {
	view.Event
	WouldHaveRefused int64 `json:"wouldHaveRefused,omitempty"` // deliveries so far, this one included
	Of               int64 `json:"of,omitempty"`               // of so many
}

func (p *eventPrinter) print(n listen.Notification) error {
	p.count(n)
	if err := p.printNotification(n); err != nil {
		return err
	}
	if p.exitAfter > 0 && p.summary.Events >= p.exitAfter {
		p.stop()
	}
	return nil
}

// count counts what is new. What was verified again comes a second time, under
// the delivery that it came with.
func (p *eventPrinter) count(n listen.Notification) {
	if n.Type == listen.Refused {
		p.summary.Refused += 1 + n.Unreported
		return
	}
	e := n.Event
	if e.Delivery < p.lastDelivery || e.Delivery == p.lastDelivery && e.Index <= p.lastIndex {
		return
	}
	if e.Delivery > p.lastDelivery {
		p.summary.Deliveries++
		if p.observe && e.Verified == inbox.No {
			p.summary.WouldHaveRefused++
		}
	}
	p.lastDelivery, p.lastIndex = e.Delivery, e.Index
	switch n.Type {
	case listen.Duplicate:
		p.summary.Duplicates++
	case listen.Conflict:
		p.summary.Conflicts++
	case listen.Anomaly:
		p.summary.Anomalies++
	default:
		p.summary.Events++
	}
}

func (p *eventPrinter) printNotification(n listen.Notification) error {
	if n.Unreported > 0 {
		p.io.Warning("%d more refusals were not printed", n.Unreported)
	}
	switch {
	case p.out.Machine() && n.Type == listen.Refused:
		return p.out.Object(view.NewRefused(n.Refused))
	case p.out.Machine():
		j := receivedJSON{Event: view.NewEvent(view.MaskEvent(n.Event, p.hide))}
		j.Type = string(n.Type)
		if p.observe && n.Event.Verified == inbox.No {
			j.WouldHaveRefused, j.Of = p.summary.WouldHaveRefused, p.summary.Deliveries
		}
		return p.out.Object(j)
	case n.Type == listen.Refused:
		d := n.Refused
		return p.out.Line("%s  %s  %-24s  %s", view.Clock(d.ReceivedAt), p.out.Out().Style(term.Bad, "refused                     "), string(d.Reason), strings.TrimPrefix(view.RefusedID(d)+" ", " ")+"from "+d.RemoteAddr)
	default:
		return p.printEvent(n)
	}
}

// printEvent prints one event: time, kind, number, status, latest event, mark.
func (p *eventPrinter) printEvent(n listen.Notification) error {
	e := n.Event
	kind := e.Kind
	if n.Type != listen.Event {
		kind = string(n.Type) + " " + kind
	}
	what := e.LatestEvent
	if n.Type == listen.Anomaly {
		what = e.Anomaly
	}
	style := term.Caution
	if e.Verified == inbox.Yes {
		style = term.Good
	}
	mark := p.out.Out().Style(style, "verified: "+view.Trust(e))
	status := p.names.Status(e.Status, e.StatusLabel, e.StatusTrack)
	would := ""
	if p.observe && e.Verified == inbox.No {
		would = fmt.Sprintf("; would have refused %d of %d", p.summary.WouldHaveRefused, p.summary.Deliveries)
	}
	return p.out.Line("%s  %-28s  %-24s  %-18s  %s  %s%s", view.Clock(e.ReceivedAt), fitLine(kind), fitLine(e.TrackingNumber), fitLine(status), fitLine(what), mark, would)
}

// fitLine makes a value from outside fit a line.
func fitLine(value string) string { return term.Truncate(term.Visible(value), 80) }

// printSummary prints the counts of all that was received.
func (p *eventPrinter) printSummary() error {
	p.summary.Type = "summary"
	if p.out.Machine() {
		return p.out.Object(p.summary)
	}
	s := p.summary
	p.io.Note("deliveries %d, new events %d, duplicates %d, conflicts %d, anomalies %d, refused %d", s.Deliveries, s.Events, s.Duplicates, s.Conflicts, s.Anomalies, s.Refused)
	if s.WouldHaveRefused > 0 {
		p.io.Note("enforcing would have refused %d of %d deliveries", s.WouldHaveRefused, s.Deliveries)
	}
	return nil
}
