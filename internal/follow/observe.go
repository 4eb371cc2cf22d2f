package follow

import (
	"context"
	"encoding/json"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
)

const observePage = 2000

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
		recorders := recorders{inbox.Yes: verified, inbox.Unsigned: unverified, inbox.Unknown: unverified}
		to, err := o.read(ctx, from, last, recorders)
		if err != nil {
			return err
		}
		if _, err := o.Store.ObserveEvents(ctx, verified.Take(), unverified.Take(), from, to); err != nil {
			return err
		}
	}
}

type recorders map[inbox.Verified]*observed.Recorder

// read returns the number up to which it has read. Verdicts without a recorder are left out.
func (o *Observer) read(ctx context.Context, from, last int64, recorders recorders) (to int64, err error) {
	n, delivery := 0, int64(0)
	q := inbox.Query{After: from, Before: last + 1, Limit: observePage, Genuine: true, Marks: []inbox.Mark{inbox.Current}}
	for e, err := range o.Inbox.Events(ctx, q) {
		if err != nil {
			return 0, err
		}
		if n++; n == observePage {
			last = e.Seq
		}
		recorder := recorders[e.Verified]
		if recorder == nil || !json.Valid(e.Raw) {
			continue
		}
		met := observed.Event{Body: e.Raw}
		if e.Delivery != delivery {
			delivery = e.Delivery
			if met.Header, err = o.headers(ctx, delivery); err != nil {
				return 0, err
			}
		}
		recorder.Event(met, e.ReceivedAt)
	}
	return last, nil
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
