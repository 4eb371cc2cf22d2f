package follow

import (
	"context"
	"encoding/json"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
)

// observePage is how many events are read for one transaction.
const observePage = 2000

// deliveries is what an observer needs of the inbox.
type deliveries interface {
	events
	Delivery(ctx context.Context, seq int64) (inbox.Delivery, error)
}

// Observer adds to the register of what was met what stored deliveries hold. It reads
// on from where it, or another process, stopped: whoever takes deliveries does not
// wait for it, and what was stored is not lost to it until its bytes are pruned.
//
// Events count once, when they are verified or while nothing can verify them; those
// that did not verify, and synthetic ones, do not count.
type Observer struct {
	Inbox deliveries
	Store observed.Store
}

// CatchUp reads all events that are there. If there are none it costs one read.
func (o *Observer) CatchUp(ctx context.Context) error {
	for {
		from, last, err := o.Store.EventsObserved(ctx)
		if err != nil || from >= last {
			return err
		}
		verified, unverified := observed.NewRecorder(), observed.NewRecorder()
		to, n, delivery := last, 0, int64(0)
		q := inbox.Query{After: from, Before: last + 1, Limit: observePage, Genuine: true, Marks: []inbox.Mark{inbox.Current}}
		for e, err := range o.Inbox.Events(ctx, q) {
			if err != nil {
				return err
			}
			if n++; n == observePage {
				to = e.Seq
			}
			if e.Verified == inbox.No || !json.Valid(e.Raw) {
				continue
			}
			ev := observed.Event{Body: e.Raw}
			if e.Delivery != delivery {
				delivery = e.Delivery
				if ev.Header, err = o.headers(ctx, delivery); err != nil {
					return err
				}
			}
			r := unverified
			if e.Verified == inbox.Yes {
				r = verified
			}
			r.Event(ev, e.ReceivedAt)
		}
		if _, err := o.Store.ObserveEvents(ctx, verified.Take(), unverified.Take(), from, to); err != nil {
			return err
		}
	}
}

func (o *Observer) headers(ctx context.Context, delivery int64) (map[string][]string, error) {
	d, err := o.Inbox.Delivery(ctx, delivery)
	if err != nil {
		return nil, err
	}
	header := map[string][]string{}
	for _, f := range d.Header {
		header[f.Name] = append(header[f.Name], f.Value)
	}
	return header, nil
}
