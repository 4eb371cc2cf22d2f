package track

import (
	"context"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
)

const notedUnverified = 3

// unverified are events that did not verify, about trackings of a list.
type unverified struct {
	first []inbox.Event
	more  int
}

// add adds an event, once.
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

func (u *unverified) note(io *term.IO, n view.StatusNames) {
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
