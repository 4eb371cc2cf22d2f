package track

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// eventPause is how long a verified event, which any process may have
// received, goes unnoticed at most.
const eventPause = time.Second

// news is what is known of the trackings that are asked about, so that events
// can end the waiting for them.
type news struct {
	s    *app.Session
	db   *app.Store // nil until there is one; watch's own
	cond condition
	seq  int64 // the last event that was looked at; watch's own

	mu      sync.Mutex
	views   map[api.Query]app.View    // the last of each
	first   map[api.Query][]app.Found // for change: what was told of each at first
	touched map[api.Query]bool        // news came about it that was not looked at
	kinds   map[string]bool           // for event: numbers and routerIds of which one came
}

// openNews takes in what was received until now.
func openNews(ctx context.Context, s *app.Session, cond condition) (*news, error) {
	n := &news{
		s: s, cond: cond,
		views: map[api.Query]app.View{}, first: map[api.Query][]app.Found{}, touched: map[api.Query]bool{}, kinds: map[string]bool{},
	}
	var err error
	if n.db, err = s.ExistingStore(ctx); err != nil || n.db == nil {
		return n, err
	}
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	_, last, err := n.db.Events.Followed(ctx)
	if err == nil {
		err = n.readKinds(ctx, last)
	}
	n.seq = last
	return n, err
}

// watch looks for events until ctx ends, and wakes whoever they may concern.
func (n *news) watch(ctx context.Context, woken chan<- struct{}) {
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		some, err := n.read(ctx)
		if err != nil && ctx.Err() == nil {
			n.s.IO.Detail("received events are not looked at: %v", err) // the service is asked all the same
		}
		if some {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}
}

// read reads on in the inbox, which may be made only now, and reports whether
// there was anything.
func (n *news) read(ctx context.Context) (bool, error) {
	var err error
	if n.db == nil {
		if n.db, err = n.s.ExistingStore(ctx); err != nil || n.db == nil {
			return false, err
		}
	}
	_, last, err := n.db.Events.Followed(ctx)
	if err != nil || last == n.seq {
		return false, err
	}
	if err := n.s.Sink(n.db).CatchUp(ctx); err != nil {
		return false, err
	}
	keys, err := n.db.Events.UpdatedByEvents(ctx, n.s.Account(ctx), n.seq)
	if err != nil {
		return false, err
	}
	if err := n.readKinds(ctx, last); err != nil {
		return false, err
	}
	n.seq = last
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range keys {
		for _, q := range []api.Query{{ReferID: k.ReferID}, bare(api.Query{Number: k.Number})} {
			if _, asked := n.views[q]; asked {
				n.touched[q] = true
			}
		}
	}
	return true, nil
}

// readKinds notes what verified events of the kind that is waited for are
// about, up to the one numbered last.
func (n *news) readKinds(ctx context.Context, last int64) error {
	if n.cond.event == "" {
		return nil
	}
	q := inbox.Query{After: n.seq, Before: last + 1, Kind: n.cond.event, Verified: inbox.Yes, Marks: []inbox.Mark{inbox.Standing}}
	for e, err := range n.db.Inbox.Events(ctx, q) {
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.kinds[tracking.FoldNumber(e.TrackingNumber)], n.kinds[ofRouter(e.RouterID)] = true, true
		n.mu.Unlock()
	}
	return nil
}

// ofRouter is how a routerId stands among the kinds: no number has a hyphen
// there.
func ofRouter(id string) string { return "-" + id }

// bare is a query as views are kept: numbers are compared so.
func bare(q api.Query) api.Query {
	q.Number = tracking.FoldNumber(q.Number)
	return q
}

// begin notes that a tracking is being asked about from now on.
func (n *news) begin(ctx context.Context, q api.Query) error {
	n.mu.Lock()
	_, asked := n.views[bare(q)]
	n.mu.Unlock()
	if asked {
		return nil
	}
	v, err := n.s.News(ctx, n.s.Account(ctx), q, app.View{Ref: q.ReferID + q.Number})
	if err == nil {
		n.note(q, v)
		n.met(q, v) // notes what is known at first
	}
	return err
}

// note keeps what is known of a tracking now.
func (n *news) note(q api.Query, v app.View) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.views[bare(q)] = v
}

// end forgets a tracking.
func (n *news) end(q api.Query) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.views, bare(q))
	delete(n.first, bare(q))
	delete(n.touched, bare(q))
}

// met reports whether a view fulfils the condition.
func (n *news) met(q api.Query, v app.View) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.cond.event != "":
		return len(v.Found) > 0 && !slices.ContainsFunc(v.Found, func(f app.Found) bool {
			return (f.Number == "" || !n.kinds[tracking.FoldNumber(f.Number)]) && (f.RouterID == "" || !n.kinds[ofRouter(f.RouterID)])
		})
	case n.cond.change:
		return n.changed(bare(q), v)
	}
	return n.cond.Met(v)
}

// changed compares a view with what was told at first.
func (n *news) changed(q api.Query, v app.View) bool {
	for _, f := range v.Found {
		i := slices.IndexFunc(n.first[q], func(was app.Found) bool { return tracking.SameNumber(was.Number, f.Number) || was.Number == f.Number })
		switch {
		case f.Source == "":
		case i < 0:
			f.Checkpoints = nil // much memory, and not compared
			n.first[q] = append(n.first[q], f)
		case Changed(n.first[q][i], f):
			return true
		}
	}
	return false
}

// known returns what is known of a tracking without asking the service.
func (n *news) known(ctx context.Context, q api.Query) (app.View, error) {
	n.mu.Lock()
	v := n.views[bare(q)]
	n.mu.Unlock()
	return n.s.News(ctx, n.s.Account(ctx), q, v)
}

// told returns what is known of a tracking if news ended the waiting for it.
func (n *news) told(ctx context.Context, q api.Query) (app.View, bool) {
	n.mu.Lock()
	v, touched := n.views[bare(q)], n.touched[bare(q)]
	delete(n.touched, bare(q))
	n.mu.Unlock()
	if !touched && (n.cond.event == "" || !n.met(q, v)) {
		return v, false
	}
	v, err := n.known(ctx, q)
	return v, err == nil && n.met(q, v) // else the service is asked all the same
}
