package listen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

type eventPrinter struct {
	out     *command.Output
	io      *term.IO
	names   view.StatusFormatter
	hide    func(json.RawMessage) json.RawMessage
	observe bool // a scheme is set and not enforced

	unforwarded bool // no note was printed yet that unverified events are not forwarded

	stop      func() // called after exitAfter new events; never if that is 0
	exitAfter int64

	// The event counted last, or the last one before the start: its delivery, and its position in that.
	lastDelivery int64
	lastIndex    int
	genuine      int64 // deliveries that were not made up
	summary      summaryJSON
}

func newEventPrinter(c *command.Call, before inbox.Counts, o listenOptions, stop func()) *eventPrinter {
	w := c.Config.Webhook
	return &eventPrinter{
		out: c.Out, io: c.IO, names: view.NewStatusFormatter(c.Config.Statuses), hide: c.SecretMasker(),
		observe: w.Scheme != "" && w.Verify == "observe", unforwarded: o.Forward.withholds(),
		stop: stop, exitAfter: o.ExitAfter, lastDelivery: before.Deliveries, lastIndex: math.MaxInt,
	}
}

type summaryJSON struct {
	Type             string `json:"type"` // summary
	Deliveries       int64  `json:"deliveries"`
	Events           int64  `json:"events"` // that were not known before
	Duplicates       int64  `json:"duplicates"`
	Conflicts        int64  `json:"conflicts"`
	Anomalies        int64  `json:"anomalies"`
	Refused          int64  `json:"refused"`
	WouldHaveRefused int64  `json:"wouldHaveRefused"`    // of deliveries that were not made up, when observing
	Received         int64  `json:"received"`            // of them, by this listener; other processes received the rest
	Forwarded        *int64 `json:"forwarded,omitempty"` // by this listener, counted by target; null if it has none
}

func (p *eventPrinter) print(n listen.Notification) error {
	if n.More {
		p.out.Out().Hold()
	}
	err := p.countAndPrint(n)
	if err != nil || !n.More {
		err = cmp.Or(err, p.out.Out().Release())
	}
	if err != nil {
		return err
	}
	if p.unforwarded && n.Type != listen.Refused && !n.Event.Verified.Counts() {
		p.unforwarded = false
		p.warnUnforwarded(n.Event)
	}
	if p.exitAfter > 0 && p.summary.Events >= p.exitAfter {
		p.stop()
	}
	return nil
}

func (p *eventPrinter) warnUnforwarded(e inbox.Event) {
	why, hint := "it did not verify", "`waybill signature explain "+e.ID()+"` says why"
	if e.Verified == inbox.Unknown {
		why, hint = "no signature scheme is set, so it can't be verified", "`waybill signature learn` finds the scheme"
	}
	p.io.WarningWith(term.Failure{
		Message: "event " + e.ID() + " is stored, not forwarded: " + why,
		Hint:    hint + "; `listen --forward-unverified` forwards it all the same",
	})
}

// count counts n and reports whether it is new: an event that verified later comes twice.
func (p *eventPrinter) count(n listen.Notification) bool {
	if n.Type == listen.Refused {
		p.summary.Refused += 1 + n.Unreported
		return true
	}
	e := n.Event
	if e.Delivery < p.lastDelivery || e.Delivery == p.lastDelivery && e.Index <= p.lastIndex {
		return false
	}
	if e.Delivery > p.lastDelivery {
		p.summary.Deliveries++
		if !e.Synthetic {
			p.genuine++
		}
		if p.wouldRefuse(e) {
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
	return true
}

func (p *eventPrinter) wouldRefuse(e inbox.Event) bool {
	return p.observe && e.Verified == inbox.No && !e.Synthetic
}

func (p *eventPrinter) countAndPrint(n listen.Notification) error {
	isNew := p.count(n)
	if n.Unreported > 0 {
		p.io.Warning("not printed: %s", command.Plural(n.Unreported, "more refusal"))
	}
	switch {
	case p.out.Machine() && n.Type == listen.Refused:
		return p.out.Object(view.NewRefused(n.Refused))
	case p.out.Machine():
		return p.printObject(n)
	case n.Type == listen.Refused:
		return p.printRefused(n.Refused)
	}
	trust := view.Trust(n.Event)
	if !isNew && n.Event.Verified == inbox.Yes {
		trust += ", verified now"
	}
	return p.printEvent(n, trust)
}

func (p *eventPrinter) printObject(n listen.Notification) error {
	e := n.Event
	e.Data = p.hide(e.Data)
	j := view.NewEvent(e)
	j.Type = string(n.Type)
	if p.wouldRefuse(n.Event) {
		j.WouldHaveRefused, j.Of = p.summary.WouldHaveRefused, p.genuine
	}
	return p.out.Object(j)
}

// printEvent prints one event as a line. trust says whether the event is verified.
func (p *eventPrinter) printEvent(n listen.Notification, trust string) error {
	e, out := n.Event, p.out.Out()
	kind := e.Kind
	status, latest, style := p.names.EventTexts(e)
	if n.Type != listen.Event {
		kind = string(n.Type) + " " + kind
	}
	if n.Type == listen.Anomaly {
		latest = e.Anomaly
	}
	would := ""
	if p.wouldRefuse(e) {
		would = fmt.Sprintf("would have refused %d of %d", p.summary.WouldHaveRefused, p.genuine)
	}
	columns := out.Width()
	l := layoutFor(columns)
	cells := []lineCell{
		{text: view.Clock(e.ReceivedAt), width: clockWidth},
		{text: e.ID(), width: l.id, keep: true},
		{text: e.TrackingNumber, width: l.number, keep: true},
		{text: kind, width: l.kind, keep: columns == 0},
		{text: status, width: l.status, keep: columns == 0, style: style},
		{text: trust, width: l.verified, style: trustStyle(e)},
		{text: latest, width: l.latest},
	}
	if columns == 0 {
		if would != "" {
			would = "; " + would
		}
		return p.out.Line("%s  %s%s", line(out, cells...), out.Style(trustStyle(e), "verified: "+trust), would)
	}
	err := p.out.Line("%s", line(out, cells...))
	if err == nil && would != "" {
		err = p.out.Line("%s", textLine(out, "", "", term.Caution, would, ""))
	}
	return err
}

func trustStyle(e inbox.Event) term.Style {
	if e.Verified == inbox.Yes && !e.Synthetic {
		return term.Good
	}
	return term.Caution
}

func (p *eventPrinter) printRefused(d inbox.Delivery) error {
	out := p.out.Out()
	l := layoutFor(out.Width())
	id := cmp.Or(view.RefusedID(d), "refused")
	fromWidth := max(l.kind, len("from 127.0.0.1:12345"))
	idWidth, from, why := l.id+len(gap)+l.number, "from "+d.RemoteAddr, "no: "+string(d.Reason)
	if columns := out.Width(); columns > 0 && columns < medium {
		idWidth, fromWidth = len("refused:12"), len("127.0.0.1:12345")
		if columns < narrow {
			from, why = d.RemoteAddr, string(d.Reason)
		}
	}
	cells := []lineCell{
		{text: view.Clock(d.ReceivedAt), width: clockWidth},
		{text: id, width: idWidth, keep: true, style: term.Bad},
		{text: from, width: max(fromWidth, term.DisplayWidth(from))},
		{text: "", width: l.status},
		{text: why, width: max(l.verified, term.DisplayWidth(why)), style: term.Bad},
	}
	return p.out.Line("%s", line(out, cells...))
}

func (p *eventPrinter) printSummary(received int64, forwarded *int64) error {
	p.summary.Type, p.summary.Received, p.summary.Forwarded = "summary", received, forwarded
	if p.out.Machine() {
		return p.out.Object(p.summary)
	}
	s, text := p.summary, "Received "+command.Plural(received, "delivery")
	addIfAny := func(n int64, words string) {
		if n > 0 {
			text += words
		}
	}
	others := s.Deliveries - received
	addIfAny(others, ", printed "+command.Number(others)+" of other processes,")
	addIfAny(s.Deliveries, " with "+command.Plural(s.Events, "new event"))
	addIfAny(s.Duplicates, ", "+command.Plural(s.Duplicates, "duplicate"))
	addIfAny(s.Conflicts, ", "+command.Plural(s.Conflicts, "conflict"))
	addIfAny(s.Anomalies, fmt.Sprintf(", %d unreadable", s.Anomalies))
	addIfAny(s.Refused, fmt.Sprintf("; refused %d", s.Refused))
	if forwarded != nil {
		text += "; forwarded " + command.Number(*forwarded)
	}
	p.io.Note("%s", text)
	if s.WouldHaveRefused > 0 {
		p.io.Note("Enforcing would have refused %d of %s", s.WouldHaveRefused, command.Plural(p.genuine, "delivery"))
	}
	return nil
}

// Widths in columns of a terminal.
const (
	clockWidth  = len("15:04:05")
	maxCell     = 80 // of a foreign value
	leastCell   = 6  // to which a cell is cut to make room for an identifier
	gap         = "  "
	wide        = 140
	medium      = 110
	narrow      = 80
	leastNumber = 18 // length of 1Z999AA10123456784
)

// layout holds the widths of the cells of an event's line: 0 omits a cell; all cells but the last are padded.
type layout struct {
	id, number, kind, status, verified, latest int
}

// layoutFor returns the layout for a terminal; a narrow one lacks status and latest event. 0 means no terminal.
func layoutFor(columns int) layout {
	switch {
	case columns == 0:
		return layout{id: 6, number: 24, kind: 28, status: 18, latest: maxCell}
	case columns >= wide:
		return layout{id: 7, number: 22, kind: 26, status: 22, verified: 24, latest: columns - 121}
	case columns >= medium:
		return layout{id: 7, number: 20, kind: columns - 88, status: 19, verified: 24}
	case columns >= narrow:
		return layout{id: 6, number: leastNumber, kind: columns - 62, verified: 22}
	default:
		return layout{id: 6, number: leastNumber, kind: max(columns-50, leastCell), verified: 10}
	}
}

type lineCell struct {
	text  string // foreign or not
	width int    // 0 omits the cell
	keep  bool   // an identifier, never cut: later cells give way
	style term.Style
}

// line pads cells, and cuts all but identifiers. An identifier wider than its cell takes the room from later cells.
func line(out *term.Writer, cells ...lineCell) term.Styled {
	return term.Styled(strings.TrimRight(padded(out, cells...), " "))
}

func padded(out *term.Writer, cells ...lineCell) string {
	var b strings.Builder
	missing := 0 // columns by which earlier cells are too wide
	for _, c := range cells {
		if c.width == 0 {
			continue
		}
		limit := maxCell
		if !c.keep {
			limit = min(c.width, max(c.width-missing, leastCell))
			missing -= c.width - limit
		}
		text := term.Truncate(term.Visible(c.text), limit)
		used, room := term.DisplayWidth(text), min(c.width, limit)
		missing += max(used-room, 0)
		b.WriteString(string(out.Style(c.style, text)) + strings.Repeat(" ", max(room-used, 0)) + gap)
	}
	return b.String()
}

func printHead(out *command.Output) error {
	if out.Machine() || !out.Out().IsTerminal() {
		return nil
	}
	l := layoutFor(out.Out().Width())
	head := func(text string, width int) lineCell { return lineCell{text: text, width: width, style: term.Heading} }
	return out.Line("%s",
		line(out.Out(), head("TIME", clockWidth), head("ID", l.id), head("NUMBER", l.number), head("EVENT", l.kind),
			head("STATUS", l.status), head("VERIFIED", l.verified), head("LATEST EVENT", l.latest)))
}

// textLine returns a text after a time and an ID, with first styled. It is wrapped on a terminal.
func textLine(out *term.Writer, clock, id string, style term.Style, first, rest string) term.Styled {
	l := layoutFor(out.Width())
	start := padded(out, lineCell{text: clock, width: clockWidth}, lineCell{text: id, width: l.id, keep: true})
	lines := render.Wrap(term.Visible(first+" "+rest), out.Width()-len(start))
	lines[0] = string(out.Style(style, first)) + strings.TrimRight(strings.TrimPrefix(lines[0], first), " ")
	return term.Styled(start + strings.Join(lines, "\n"+strings.Repeat(" ", len(start))))
}

// maxQueued is the number of attempts that may wait to be printed; further ones are only counted.
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

type attemptPrinter struct {
	out   *command.Output
	io    *term.IO
	queue chan forward.AttemptReport
	sent  atomic.Int64 // deliveries that their target accepted
	lost  atomic.Int64 // attempts that were not printed
}

// enqueue queues an attempt for printing. It never blocks: forwarding must not wait for the reader of the output.
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

// run prints the queue until it is closed; after an error it discards the queue. It holds printing while it prints.
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

func (p *attemptPrinter) print(n forward.AttemptReport) error {
	if lost := p.lost.Swap(0); lost > 0 {
		p.io.Warning("not printed: %s to forward before this one", command.Plural(lost, "attempt"))
	}
	if !p.out.Machine() {
		return p.printLine(n)
	}
	return p.out.Object(attemptJSON{
		Type: "forward", Target: n.Target.Show(), Filter: n.Target.Filter.String(), Delivery: n.Delivery, Attempt: n.Attempt,
		Outcome: n.Disposition, Status: n.Status, ElapsedSeconds: n.Took.Round(time.Millisecond).Seconds(),
		Problem: n.Problem, NextAttemptAt: view.TimeOrNull(n.Due), FailingSince: view.TimeOrNull(n.FailingSince),
		FailedSeconds: n.FailedFor.Round(time.Millisecond).Seconds(), Reply: string(n.Reply),
	})
}

func (p *attemptPrinter) printLine(n forward.AttemptReport) error {
	what, style, how := "forwarded", term.Good, fmt.Sprintf("%d in %v", n.Status, n.Took.Round(time.Millisecond))
	if n.FailedFor > 0 {
		how += fmt.Sprintf("; it works again after %v", n.FailedFor.Round(time.Second))
	}
	switch n.Disposition {
	case inbox.Retry:
		what, style = "not forwarded", term.Caution
		how = n.Problem + "; trying again now"
		if pause := time.Until(n.Due).Round(time.Second); pause > 0 {
			how = fmt.Sprintf("%s; trying again in %v", n.Problem, pause)
		}
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
	err := p.out.Line("%s",
		textLine(out, view.Clock(time.Now()), strconv.FormatInt(n.Delivery, 10), style, what, "to "+n.Target.Show()+": "+how))
	if len(n.Reply) > 0 {
		p.io.Detail("answer to %d: %s", n.Delivery, strings.TrimRight(string(n.Reply), "\r\n"))
	}
	return err
}
