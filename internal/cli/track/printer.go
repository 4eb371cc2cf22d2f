package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// printer prints results as they come, as rows or timelines. It prints a single REF with its timeline at the end.
type printer struct {
	call     *command.Call
	names    view.StatusFormatter
	single   bool
	timeline bool
	keep     func(query.TargetResult) bool // selects results shown as rows; nil for all
	limit    int                           // maximum number of rows; 0 for all

	only       *query.TargetResult // the result, if single
	list       *render.List        // JSON output
	rows       *rows               // table or CSV
	more       int64               // rows beyond limit
	summary    *view.Summary
	staleNotes []string // first notes on responses older than events
	staleCount int64
	unverified unverified
}

func newPrinter(c *command.Call, p printer) (_ *printer, err error) {
	p.call, p.names = c, view.NewStatusFormatter(c.Config.Statuses)
	p.summary = view.NewSummary(p.names)
	asRows := c.Out.IsCSV() || c.Cmd.Flags().Changed("columns")
	switch {
	case c.Out.Machine():
		if !p.single {
			p.list = c.Out.BeginList()
		}
	case asRows && p.timeline:
		stops, e := command.BeginTable(c.Out, stopColumns(1))
		p.rows, err = &rows{stops: stops}, e
	case asRows, !p.single && !p.timeline:
		reader := view.Reader{IsPerson: c.Out.ForPeople(), Now: time.Now()}
		table, e := command.BeginTable(c.Out, p.names.AnswerColumns(reader))
		p.rows, err = &rows{table: table}, e
	}
	return &p, err
}

func (p *printer) add(e query.TargetResult) error {
	p.note(e.Result)
	p.summary.AddResult(e.Result)
	switch {
	case p.single:
		p.only = &e
		return nil
	case p.list != nil:
		return p.list.Add(p.names.Answer(e.Result, linesOf(e)))
	case p.rows != nil && p.keep != nil && !p.keep(e):
		return nil
	case p.rows != nil:
		lines := linesOf(e)
		if p.limit > 0 {
			shown := min(p.limit-p.rows.count, len(lines))
			p.more += int64(len(lines) - shown)
			lines = lines[:shown]
		}
		return p.rows.add(lines)
	}
	return errors.Join(printResult(p.call.Out, p.names, e.Result), p.call.Out.Line(""))
}

const notedOlder = 3

func (p *printer) note(res query.Result) {
	for _, t := range res.Trackings {
		if t.Unverified != nil {
			p.unverified.add(*t.Unverified)
		}
		if t.Older == nil {
			continue
		}
		if p.staleCount++; p.staleCount <= notedOlder {
			older := p.names.Status(t.Older.Status, t.Older.StatusLabel, t.Older.StatusTrack)
			p.staleNotes = append(p.staleNotes, fmt.Sprintf("The service's answer about %s is older than an event: "+
				"the answer says %s, the event %s", command.Quoted(t.Number), older, p.names.Phase(t)))
		}
	}
}

// end prints the rest and the summary. If failed is not nil, a single unknown REF has no output but the error.
func (p *printer) end(failed error) (err error) {
	switch {
	case p.single:
		err = p.printOnly(failed)
	case p.list != nil:
		err = p.list.Close()
	case p.rows != nil:
		err = p.rows.end(p.call.Out)
		if err == nil && p.more > 0 {
			err = p.call.Out.Line("… and %s more (--rows shows all)", command.Number(p.more))
		}
	}
	if err != nil || errors.Is(failed, term.ErrClosed) {
		return err
	}
	if !p.single {
		p.summary.Print(p.call)
	}
	if !p.single && p.rows != nil { // other formats show it with each tracking
		p.unverified.note(p.call.IO, p.names)
	}
	for _, text := range p.staleNotes {
		p.call.IO.Note("%s", text)
	}
	if p.staleCount > notedOlder {
		all := command.Plural(p.staleCount, "answer")
		p.call.IO.Note("%s in all are older than an event; -o json has them as olderAnswer", all)
	}
	return nil
}

func (p *printer) printOnly(failed error) error {
	if p.only == nil {
		return nil
	}
	res, out := &p.only.Result, p.call.Out
	switch {
	case failed != nil && !answered(*res):
		return nil
	case out.Machine():
		return out.Object(p.names.Answer(*res, linesOf(*p.only)))
	case p.rows != nil: // one table instead of a header and two tables
		return errors.Join(p.rows.add(linesOf(*p.only)), p.rows.end(out))
	case failed == nil || !absent(*res):
		return printResult(out, p.names, *res)
	}
	return nil // the error is the output
}

func answered(res query.Result) bool {
	return slices.ContainsFunc(res.Trackings, func(t query.Tracking) bool { return t.Phase != query.NotAsked })
}

func printResult(out *command.Output, n view.StatusFormatter, res query.Result) (err error) {
	for i, t := range res.Trackings {
		if i > 0 {
			err = out.Line("")
		}
		if out.ForPeople() {
			err = errors.Join(err, printLabel(out, n, t, time.Now()))
		} else {
			err = errors.Join(err, out.Fields(Header(n, res, t)))
		}
		if timeline := t.Timeline(); len(timeline) > 0 {
			err = errors.Join(err, out.Line(""), printTimeline(out, t, timeline))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Header returns the fields above a timeline for scripts: times and values as sent.
func Header(n view.StatusFormatter, res query.Result, t query.Tracking) []render.Field {
	var fields []render.Field
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, render.Field{Name: name, Value: value})
		}
	}
	add("Reference", t.ReferID)
	add("Number", t.Number)
	add("Carrier", cmp.Or(t.CarrierCode, t.SentCarrier))
	add("Status", n.Phase(t))
	if _, own := n.Custom(t.Status, t.StatusLabel, t.StatusTrack); own { // the label shown is the user's name
		add("Sent as", cmp.Or(t.StatusLabel, t.StatusTrack, "number alone"))
	}
	add("Reason", t.Reason)
	add("Latest event", t.LatestEvent)
	add("Created", t.Created)
	add("Updated", t.Updated)
	if d := t.Transit(); d > 0 {
		add("Transit time", view.Duration(d))
	}
	add("Error", t.Error)
	if t.Source == ledger.FromEvent {
		add("Source", "verified event, received "+render.LocalTime(t.Learnt))
	}
	if !res.Asked.IsZero() && t.Phase != query.Rejected && t.Phase != query.NotSent {
		add("Asked", render.LocalTime(res.Asked))
	}
	if t.Unverified != nil {
		add("Unverified", n.Unverified(*t.Unverified)+"; it changes nothing")
	}
	return fields
}

// printTimeline prints checkpoints. Anomalies have a column and are explained below the table.
func printTimeline(out *command.Output, t query.Tracking, entries []tracking.Entry) error {
	if out.ForPeople() {
		return drawTimeline(out, entries)
	}
	var notes []render.Field
	var stops []checkpoint
	for _, e := range entries {
		stops = append(stops, checkpoint{&t, e})
		if len(e.Anomalies) > 0 {
			note := view.Checkpoint(e.Checkpoint) + ": " + view.Anomalies(e.Anomalies)
			notes = append(notes, render.Field{Name: "Note", Value: note})
		}
	}
	err := command.PrintTable(out, stopColumns(len(notes)), stops...)
	if notes == nil {
		return err
	}
	return errors.Join(err, out.Line(""), out.Fields(notes))
}

type checkpoint struct {
	of *query.Tracking
	tracking.Entry
}

func stopColumns(noted int) []command.Column[checkpoint] {
	return []command.Column[checkpoint]{
		view.CSVIdentifier("REFERENCE", "referId", func(c checkpoint) string { return c.of.ReferID }),
		view.CSVIdentifier("NUMBER", "trackingNumber", func(c checkpoint) string { return c.of.Number }),
		{Name: "LOCAL TIME", CSV: "eventTimestamp", Cell: func(c checkpoint) string { return c.Local }},
		{Name: "UTC", CSV: "GMTTimestamp", Cell: func(c checkpoint) string { return c.UTC }},
		{Name: "EVENT", CSV: "eventType", Cell: func(c checkpoint) string { return c.Event }},
		{Name: "CITY", CSV: "eventCity", Cell: func(c checkpoint) string { return c.City }},
		{Name: "STATE", CSV: "eventState", Cell: func(c checkpoint) string { return c.State }},
		{Name: "ZIP", CSV: "eventZIPCode", Cell: func(c checkpoint) string { return c.ZIP }},
		{
			Name: "NOTE", CSV: "anomalies", Extra: noted == 0,
			Cell: func(c checkpoint) string { return view.AnomalyKinds(c.Anomalies) },
		},
	}
}

type rows struct {
	table *command.Table[*view.Line]
	stops *command.Table[checkpoint]
	count int
}

func (r *rows) add(lines []view.Line) error {
	r.count += len(lines)
	for i := range lines {
		if r.stops == nil {
			if err := r.table.Add(&lines[i]); err != nil {
				return err
			}
			continue
		}
		for _, e := range lines[i].Timeline() {
			if err := r.stops.Add(checkpoint{&lines[i].Tracking, e}); err != nil {
				return err
			}
		}
	}
	return nil
}

func linesOf(e query.TargetResult) []view.Line {
	if len(e.Result.Trackings) == 0 {
		return []view.Line{view.FailedLine(e.Result)}
	}
	lines := make([]view.Line, len(e.Result.Trackings))
	for i, t := range e.Result.Trackings {
		lines[i] = view.Line{Tracking: t, Row: e.Target.RowOf(t)}
	}
	return lines
}

// end prints the rest. CSV without rows has a header, a table has none.
func (r *rows) end(out *command.Output) error {
	if r.count == 0 && !out.IsCSV() {
		return nil
	}
	if r.stops != nil {
		return r.stops.Flush()
	}
	return r.table.Flush()
}

const notedUnverified = 3

type unverified struct {
	first []inbox.Event
	more  int
}

func (u *unverified) add(e inbox.Event) {
	switch {
	case slices.ContainsFunc(u.first, func(known inbox.Event) bool { return known.Seq == e.Seq }):
	case len(u.first) < notedUnverified:
		u.first = append(u.first, e)
	default:
		u.more++
	}
}

func (u *unverified) load(ctx context.Context, db *app.Store) (err error) {
	for i, e := range u.first {
		if u.first[i], err = db.Inbox.Event(ctx, e.Seq); err != nil {
			return err
		}
	}
	return nil
}

func (u *unverified) note(io *term.IO, n view.StatusFormatter) {
	if len(u.first) == 0 {
		return
	}
	for _, e := range u.first {
		io.Note("An unverified event about %s changes nothing: %s", e.TrackingNumber, n.Unverified(e))
	}
	also := "To list unverified events"
	switch {
	case u.more == 1:
		also = "1 more tracking has unverified events: to list them"
	case u.more > 1:
		also = fmt.Sprintf("%s more trackings have unverified events: to list them", command.Number(int64(u.more)))
	}
	io.Note("%s, run `waybill events list --verified no` and `--verified unknown`", also)
}
