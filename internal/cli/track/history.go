package track

import (
	"context"
	"errors"
	"sync"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
)

// newHistory returns what adds to a result what was said of its trackings before,
// as far as there is a store. unanswered adds to a result without trackings
// those of the store.
func newHistory(ctx context.Context, c *command.Call) func(res *query.Result, unanswered bool) error {
	ctx = context.WithoutCancel(ctx) // what an interrupted command has is printed whole
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

// printHistory prints the versions of a result's trackings, newest first: in JSON
// one list, else a table for each tracking, one row for each change.
func printHistory(out *command.Output, n view.StatusNames, res query.Result) error {
	switch {
	case out.Machine():
		return printVersions(out, res)
	case out.IsCSV():
		rows := newHistoryRows(out)
		for _, t := range res.Trackings {
			if err := addHistory(rows, n, t); err != nil {
				return err
			}
		}
		return rows.Flush()
	}
	for i, t := range res.Trackings {
		if i > 0 {
			if err := out.Line(""); err != nil {
				return err
			}
		}
		if err := errors.Join(out.Fields(header(n, res, t)), out.Line("")); err != nil {
			return err
		}
		rows := newHistoryRows(out)
		if err := errors.Join(addHistory(rows, n, t), rows.Flush()); err != nil {
			return err
		}
	}
	return nil
}

func printVersions(out *command.Output, res query.Result) error {
	list := out.BeginList()
	for _, t := range res.Trackings {
		for i := range t.Versions {
			if err := list.Add(view.NewVersion(t, t.Versions[len(t.Versions)-1-i])); err != nil {
				return errors.Join(err, list.Close())
			}
		}
	}
	return list.Close()
}

func newHistoryRows(out *command.Output) *render.Rows {
	return out.Table(
		render.Column{Name: "LEARNT"}, render.Column{Name: "NUMBER", ID: true, From: 130}, render.Column{Name: "FROM", From: 66},
		render.Column{Name: "CHANGE", Flex: true}, render.Column{Name: "STATUS", From: 100})
}

// addHistory adds the changes of a tracking's versions, the newest first.
func addHistory(rows *render.Rows, n view.StatusNames, t query.Tracking) error {
	for i := range t.Versions {
		v := t.Versions[len(t.Versions)-1-i]
		for _, change := range n.Changes(v) {
			if err := rows.Row(render.LocalTime(v.Learnt), t.Number, view.VersionSource(v), change, n.VersionStatus(v)); err != nil {
				return err
			}
		}
	}
	return nil
}
