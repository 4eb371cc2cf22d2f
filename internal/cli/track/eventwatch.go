package track

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// eventPause is how long a verified event, which any process may have
// received, goes unnoticed at most.
const eventPause = time.Second

// eventWatch keeps what is known of the trackings that are waited for, so that
// events can end the waiting.
type eventWatch struct {
	c     *command.Call
	asker *query.Asker
	cond  Condition
	db    *app.Store // nil until there is one; only run uses it after openEventWatch
	seq   int64      // the last event that was read; likewise

	mu      sync.Mutex
	results map[tracking.Query]query.Result     // the last of each
	first   map[tracking.Query][]query.Tracking // for change: what was known of each at first
	updated map[tracking.Query]bool             // an event came about it since it was checked
	ofKind  map[string]bool                     // for event: numbers and routerIds of which one came
}

// openEventWatch follows what was received until now.
func openEventWatch(ctx context.Context, c *command.Call, asker *query.Asker, cond Condition) (*eventWatch, error) {
	w := &eventWatch{
		c: c, asker: asker, cond: cond,
		results: map[tracking.Query]query.Result{}, first: map[tracking.Query][]query.Tracking{}, updated: map[tracking.Query]bool{}, ofKind: map[string]bool{},
	}
	var err error
	if w.db, err = c.StoreIfAny(ctx); err != nil || w.db == nil {
		return w, err
	}
	if err := catchUp(ctx, c); err != nil {
		return nil, err
	}
	_, last, err := w.db.Events.Followed(ctx)
	if err == nil {
		err = w.readKind(ctx, last)
	}
	w.seq = last
	return w, err
}

// run reads events until ctx ends, and signals when there were any.
func (w *eventWatch) run(ctx context.Context, signal chan<- struct{}) {
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		some, err := w.read(ctx)
		if err != nil && ctx.Err() == nil {
			w.c.IO.Detail("received events are not looked at: %v", err) // the service is asked all the same
		}
		if some {
			select {
			case signal <- struct{}{}:
			default:
			}
		}
	}
}

// read reads on in the store, which may be made only now, and reports whether
// there was an event.
func (w *eventWatch) read(ctx context.Context) (bool, error) {
	var err error
	if w.db == nil {
		if w.db, err = w.c.StoreIfAny(ctx); err != nil || w.db == nil {
			return false, err
		}
	}
	_, last, err := w.db.Events.Followed(ctx)
	if err != nil || last == w.seq {
		return false, err
	}
	if err := w.db.Follower().CatchUp(ctx); err != nil {
		return false, err
	}
	keys, err := w.db.Events.UpdatedByEvents(ctx, w.asker.Account, w.seq)
	if err != nil {
		return false, err
	}
	if err := w.readKind(ctx, last); err != nil {
		return false, err
	}
	w.seq = last
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		for _, q := range []tracking.Query{{ReferID: k.ReferID}, folded(tracking.Query{Number: k.Number})} {
			if _, waited := w.results[q]; waited {
				w.updated[q] = true
			}
		}
	}
	return true, nil
}

// readKind notes what verified events of the kind that is waited for are
// about, up to the one numbered last.
func (w *eventWatch) readKind(ctx context.Context, last int64) error {
	if w.cond.event == "" {
		return nil
	}
	q := inbox.Query{After: w.seq, Before: last + 1, Kind: w.cond.event, Verified: inbox.Yes, Marks: []inbox.Mark{inbox.Current}}
	for e, err := range w.db.Inbox.Events(ctx, q) {
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.ofKind[tracking.FoldNumber(e.TrackingNumber)], w.ofKind[routerKey(e.RouterID)] = true, true
		w.mu.Unlock()
	}
	return nil
}

// routerKey is a routerId beside folded numbers, which have no hyphen.
func routerKey(id string) string { return "-" + id }

// folded is a query as results are kept by.
func folded(q tracking.Query) tracking.Query {
	q.Number = tracking.FoldNumber(q.Number)
	return q
}

// begin notes what is known of a tracking before it is asked for.
func (w *eventWatch) begin(ctx context.Context, q tracking.Query) error {
	w.mu.Lock()
	_, begun := w.results[folded(q)]
	w.mu.Unlock()
	if begun {
		return nil
	}
	res, err := w.asker.AddKnown(ctx, query.Result{Query: q})
	if err == nil {
		w.keep(res)
		w.met(res) // for change, this is what was known at first
	}
	return err
}

// keep keeps what is known of a tracking now.
func (w *eventWatch) keep(res query.Result) {
	res.Err = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results[folded(res.Query)] = res
}

// end forgets a tracking.
func (w *eventWatch) end(q tracking.Query) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.results, folded(q))
	delete(w.first, folded(q))
	delete(w.updated, folded(q))
}

// met reports whether a result meets the condition.
func (w *eventWatch) met(res query.Result) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.cond.event != "":
		return len(res.Trackings) > 0 && !slices.ContainsFunc(res.Trackings, func(t query.Tracking) bool {
			return (t.Number == "" || !w.ofKind[tracking.FoldNumber(t.Number)]) && (t.RouterID == "" || !w.ofKind[routerKey(t.RouterID)])
		})
	case w.cond.change:
		return w.changed(res)
	}
	return w.cond.Met(res)
}

// changed reports whether a result differs from what was known at first.
func (w *eventWatch) changed(res query.Result) bool {
	q := folded(res.Query)
	for _, t := range res.Trackings {
		i := slices.IndexFunc(w.first[q], func(was query.Tracking) bool {
			return tracking.SameNumber(was.Number, t.Number) || was.Number == t.Number
		})
		switch {
		case t.Source == "":
		case i < 0:
			t.Checkpoints = nil // much memory, and not compared
			w.first[q] = append(w.first[q], t)
		case changed(w.first[q][i], t):
			return true
		}
	}
	return false
}

// known returns what is known of a tracking without asking the service.
func (w *eventWatch) known(ctx context.Context, q tracking.Query) (query.Result, error) {
	w.mu.Lock()
	res := w.results[folded(q)]
	w.mu.Unlock()
	res.Query = q
	return w.asker.AddKnown(ctx, res)
}

// metByEvent reports whether events that came since the last call made a
// tracking meet the condition, and returns what is known of it.
func (w *eventWatch) metByEvent(ctx context.Context, q tracking.Query) (query.Result, bool) {
	w.mu.Lock()
	res, updated := w.results[folded(q)], w.updated[folded(q)]
	delete(w.updated, folded(q))
	w.mu.Unlock()
	if res.Query = q; !updated && (w.cond.event == "" || !w.met(res)) {
		return res, false
	}
	res, err := w.known(ctx, q)
	return res, err == nil && w.met(res) // else the service is asked all the same
}
