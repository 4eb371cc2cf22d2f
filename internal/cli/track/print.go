package track

import (
	"cmp"
	"errors"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func printResult(out *command.Output, n view.StatusNames, res query.Result) error {
	for i, t := range res.Trackings {
		if i > 0 {
			if err := out.Line(""); err != nil {
				return err
			}
		}
		if err := printHeader(out, n, res, t); err != nil {
			return err
		}
		timeline := t.Timeline()
		if len(timeline) == 0 {
			continue
		}
		if err := out.Line(""); err != nil {
			return err
		}
		if err := printTimeline(out, timeline); err != nil {
			return err
		}
	}
	return nil
}

// printHeader shows a tracking above its timeline: on a terminal for people, else
// as fields that are stable for scripts.
func printHeader(out *command.Output, n view.StatusNames, res query.Result, t query.Tracking) error {
	if out.ForPeople() {
		return printLabel(out, n, t, time.Now())
	}
	return out.Fields(Header(n, res, t))
}

// Header is what scripts read of a tracking above its timeline: times and values
// as sent.
func Header(n view.StatusNames, res query.Result, t query.Tracking) []render.Field {
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
	if _, own := n.Own(t.Status, t.StatusLabel, t.StatusTrack); own { // the user's name
		add("Sent as", cmp.Or(t.StatusLabel, t.StatusTrack, "number alone"))
	}
	add("Reason", t.Reason)
	add("Latest event", t.LatestEvent)
	add("Created", t.Created)
	add("Updated", t.Updated)
	if d := t.Transit(); d > 0 {
		add("Transit time", view.Duration(d))
	}
	if t.Error != "" {
		add("Error", t.Error)
	}
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

// printTimeline prints checkpoints. Where something in them cannot be right, a
// column says what, and lines below the table say more.
func printTimeline(out *command.Output, entries []tracking.Entry) error {
	if out.ForPeople() {
		return drawTimeline(out, entries)
	}
	var notes []render.Field
	for _, e := range entries {
		if len(e.Anomalies) > 0 {
			notes = append(notes, render.Field{Name: "Note", Value: view.Checkpoint(e.Checkpoint) + ": " + view.Anomalies(e.Anomalies)})
		}
	}
	if notes == nil {
		return printEntries(out, entries, []render.Column{
			{Name: "LOCAL TIME"}, {Name: "UTC"}, {Name: "EVENT"}, {Name: "CITY"}, {Name: "STATE"}, {Name: "ZIP"},
		})
	}
	return errors.Join(printEntries(out, entries, []render.Column{
		{Name: "LOCAL TIME"}, {Name: "UTC"}, {Name: "EVENT"}, {Name: "CITY"}, {Name: "STATE"}, {Name: "ZIP"}, {Name: "NOTE"},
	}), out.Line(""), out.Fields(notes))
}

func printEntries(out *command.Output, entries []tracking.Entry, columns []render.Column) error {
	t := out.Table(columns...)
	for _, e := range entries {
		cells := []string{e.Local, e.UTC, e.Event, e.City, e.State, e.ZIP, view.AnomalyKinds(e.Anomalies)}
		if err := t.Row(cells[:len(columns)]...); err != nil {
			return err
		}
	}
	return t.Flush()
}

type rows struct {
	table *command.Table[*view.Line]
	count int64
}

func newRows(out *command.Output, n view.StatusNames) (*rows, error) {
	table, err := command.BeginTable(out, n.Columns(out.ForPeople(), time.Now()))
	return &rows{table: table}, err
}

func (r *rows) add(lines []view.Line) error {
	r.count += int64(len(lines))
	for i := range lines {
		if err := r.table.Add(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

func linesOf(e query.Ending) []view.Line {
	if len(e.Result.Trackings) == 0 {
		return []view.Line{view.FailedLine(e.Result)}
	}
	lines := make([]view.Line, len(e.Result.Trackings))
	for i, t := range e.Result.Trackings {
		lines[i] = view.Line{Tracking: t, Row: e.Target.RowOf(t)}
	}
	return lines
}

// end prints what is left. A table without rows has no header, but CSV has.
func (r *rows) end(out *command.Output) error {
	if r.count == 0 && !out.IsCSV() {
		return nil
	}
	return r.table.Flush()
}
