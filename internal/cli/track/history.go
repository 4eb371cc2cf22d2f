package track

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// newHistory returns what adds to a result what was said of its trackings before,
// as far as there is a store. unanswered adds to a result without trackings
// those of the store.
func newHistory(ctx context.Context, c *command.Call) func(res *query.Result, unanswered bool) error {
	hide := sync.OnceValue(c.SecretMasker)
	return func(res *query.Result, unanswered bool) error {
		db, err := c.StoreIfAny(ctx)
		if err != nil || db == nil {
			return err
		}
		h := &query.History{
			Account: c.Account(ctx), Trackings: db.Trackings, Answers: db.Versions, Inbox: db.Inbox,
			Mask: func(e inbox.Event) inbox.Event { return view.MaskEvent(e, hide()) },
		}
		if unanswered {
			if err := h.AddRows(ctx, res); err != nil {
				return err
			}
		}
		return h.Add(ctx, res)
	}
}

// printHistory prints the versions of a result's trackings, newest first: as one
// list in JSON, as a row for each change in CSV and with --columns, else a block for
// each version under the tracking's header.
func (p *printer) printHistory(res query.Result) error {
	out, n := p.call.Out, p.names
	switch {
	case out.Machine():
		return printVersions(out, res)
	case p.changes != nil:
		return p.printChanges(res)
	}
	for i, t := range res.Trackings {
		if i > 0 {
			if err := out.Line(""); err != nil {
				return err
			}
		}
		if err := printHeader(out, n, res, t); err != nil {
			return err
		}
		for _, v := range slices.Backward(t.Versions) {
			if err := errors.Join(out.Line(""), printVersion(out, n, v)); err != nil {
				return err
			}
		}
	}
	return nil
}

// printVersion prints when a version was received, its status, and each change.
func printVersion(out *command.Output, n view.StatusNames, v query.Version) error {
	if out.ForPeople() {
		return drawVersion(out, n, v)
	}
	received := render.LocalTime(v.Learnt) + ", " + view.VersionSource(v)
	if v.Last.After(v.Learnt) {
		received += ", the same until " + render.LocalTime(v.Last)
	}
	fields := []render.Field{{Name: "Received", Value: received}, {Name: "Status", Value: n.VersionStatus(v)}}
	for _, change := range n.Changes(v, view.Checkpoint) {
		fields = append(fields, render.Field{Name: "Change", Value: change})
	}
	return out.Fields(fields)
}

// drawVersion prints a version on a terminal.
func drawVersion(out *command.Output, n view.StatusNames, v query.Version) error {
	source := view.VersionSource(v)
	if v.Last.After(v.Learnt) {
		source += ", the same until " + render.LocalMinute(v.Last)
	}
	t := query.Tracking{Tracking: v.Tracking, Phase: v.Phase}
	err := printParts(out, "  ", part{render.LocalMinute(v.Learnt), term.Heading}, part{n.Phase(t), n.PhaseStyle(t)}, part{source, term.Faint})
	const indent = "  "
	for _, change := range n.Changes(v, view.LocalCheckpoint) {
		for _, line := range render.Wrap(term.Visible(change), out.Out().Width()-len(indent)) {
			err = errors.Join(err, out.Line(indent+"%s", line))
		}
	}
	return err
}

func printVersions(out *command.Output, res query.Result) error {
	list := out.BeginList()
	for _, t := range res.Trackings {
		for _, v := range slices.Backward(t.Versions) {
			if err := list.Add(view.NewVersion(t, v)); err != nil {
				return errors.Join(err, list.Close())
			}
		}
	}
	return list.Close()
}

// changeLine is a change as a row of a table.
type changeLine struct {
	number, change string
	version        query.Version
}

// changeColumns returns the columns of --history.
func changeColumns(n view.StatusNames) []command.Column[changeLine] {
	return []command.Column[changeLine]{
		{Column: render.Column{Name: "RECEIVED"}, Time: func(l changeLine) time.Time { return l.version.Learnt }},
		{Column: render.Column{Name: "NUMBER", ID: true}, Cell: func(l changeLine) string { return l.number }},
		{Column: render.Column{Name: "SOURCE"}, Cell: func(l changeLine) string { return view.VersionSource(l.version) }},
		{Column: render.Column{Name: "STATUS", Tally: true}, Cell: func(l changeLine) string { return n.VersionStatus(l.version) }},
		{Column: render.Column{Name: "CHANGE"}, Cell: func(l changeLine) string { return l.change }},
	}
}

func (p *printer) printChanges(res query.Result) error {
	for _, t := range res.Trackings {
		for _, v := range slices.Backward(t.Versions) {
			for _, change := range p.names.Changes(v, view.Checkpoint) {
				if err := p.changes.Add(changeLine{t.Number, change, v}); err != nil {
					return err
				}
			}
		}
	}
	return p.changes.Flush()
}
