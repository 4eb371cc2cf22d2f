package track

import (
	"context"
	"errors"
	"slices"
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

// printHistory prints the versions of a result's trackings, newest first: as one
// list in JSON and CSV, else a block for each version under the tracking's header.
func printHistory(out *command.Output, n view.StatusNames, res query.Result) error {
	switch {
	case out.Machine():
		return printVersions(out, res)
	case out.IsCSV():
		return printChanges(out, n, res)
	}
	for i, t := range res.Trackings {
		if i > 0 {
			if err := out.Line(""); err != nil {
				return err
			}
		}
		if err := out.Fields(header(n, res, t)); err != nil {
			return err
		}
		for _, v := range slices.Backward(t.Versions) {
			if err := errors.Join(out.Line(""), out.Fields(versionFields(n, v))); err != nil {
				return err
			}
		}
	}
	return nil
}

// versionFields is what is shown of a version: when it was learnt, its status,
// and each change.
func versionFields(n view.StatusNames, v query.Version) []render.Field {
	learnt := render.LocalTime(v.Learnt) + ", " + view.VersionSource(v)
	if v.Last.After(v.Learnt) {
		learnt += ", the same until " + render.LocalTime(v.Last)
	}
	fields := []render.Field{{Name: "Learnt", Value: learnt}, {Name: "Status", Value: n.VersionStatus(v)}}
	for _, change := range n.Changes(v) {
		fields = append(fields, render.Field{Name: "Change", Value: change})
	}
	return fields
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

// printChanges prints one row for each change.
func printChanges(out *command.Output, n view.StatusNames, res query.Result) error {
	rows := out.Table(render.Column{Name: "LEARNT"}, render.Column{Name: "NUMBER", ID: true}, render.Column{Name: "FROM"},
		render.Column{Name: "STATUS"}, render.Column{Name: "CHANGE"})
	for _, t := range res.Trackings {
		for _, v := range slices.Backward(t.Versions) {
			for _, change := range n.Changes(v) {
				if err := rows.Row(render.LocalTime(v.Learnt), t.Number, view.VersionSource(v), n.VersionStatus(v), change); err != nil {
					return err
				}
			}
		}
	}
	return rows.Flush()
}
