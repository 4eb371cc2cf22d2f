package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// Errand is one stored delivery that is to go to one target.
type Errand struct {
	Name     string   // of the delivery, see [NamedDeliveries]
	To       *url.URL // where it goes
	Verified bool
	Letter   *inbox.Letter // that was given up, if To is its target; nil for none
	Attempt  int           // how often sending it to there was begun before, as far as is known; at least 1
}

// Selection says which deliveries are sent again, and where to.
type Selection struct {
	Names      []string // these, see [NamedDeliveries]
	Dead       bool     // else those that were given up
	Since      time.Time
	Until      int64 // up to the delivery of that number; 0 for no bound
	Filter     forward.Filter
	Unverified bool     // those that did not verify too; those that are named go anyway
	To         *url.URL // nil for the known targets that they are for
}

// LeftOut counts deliveries that were meant and are not sent.
type LeftOut struct {
	Unverified int
	Homeless   int // that are for no known target
}

// errands collects what is to be sent.
type errands struct {
	sel     Selection
	targets []forward.Target
	all     []Errand
	left    LeftOut
}

// Errands returns the deliveries of a selection, in the order in which they
// were received. Errors are those of [NamedDeliveries], and of a known target
// that can't be read.
func Errands(ctx context.Context, db *Store, sel Selection) ([]Errand, LeftOut, error) {
	e := errands{sel: sel}
	if db == nil {
		if len(sel.Names) > 0 {
			_, err := NamedDeliveries(ctx, nil, sel.Names)
			return nil, e.left, err
		}
		return nil, e.left, nil
	}
	sinks, err := e.know(ctx, db)
	if err != nil {
		return nil, e.left, err
	}
	switch {
	case sel.Dead:
		err = e.dead(ctx, db, sinks)
	case len(sel.Names) > 0:
		err = e.named(ctx, db)
	default:
		err = e.since(ctx, db)
	}
	return e.all, e.left, err
}

// know reads the known targets.
func (e *errands) know(ctx context.Context, db *Store) (map[int64]*url.URL, error) {
	sinks, err := db.Outbox.Sinks(ctx)
	if err != nil {
		return nil, err
	}
	urls := map[int64]*url.URL{}
	for _, k := range sinks {
		if k.Name != forward.SinkName {
			continue
		}
		var t forward.Target
		if t.URL, err = forward.ParseURL(k.URL); err != nil {
			return nil, fmt.Errorf("known target: %w", err)
		}
		if t.Filter, err = forward.ParseFilter(k.Filter); err != nil {
			return nil, fmt.Errorf("known target %s: %w", t.Show(), err)
		}
		urls[k.ID] = t.URL
		e.targets = append(e.targets, t)
	}
	return urls, nil
}

// dead takes the letters that were given up.
func (e *errands) dead(ctx context.Context, db *Store, sinks map[int64]*url.URL) error {
	var letters []inbox.Letter
	for l, err := range db.Outbox.DeadLetters(ctx) {
		if err != nil {
			return err
		}
		if sinks[l.Sink] != nil {
			letters = append(letters, l)
		}
	}
	slices.SortStableFunc(letters, func(a, b inbox.Letter) int { return cmp.Compare(a.Delivery, b.Delivery) })
	for i, l := range letters {
		d, err := db.Inbox.Delivery(ctx, l.Delivery)
		if err != nil {
			return err
		}
		verified := d.Verified == inbox.Yes
		if !verified && !e.sel.Unverified {
			e.left.Unverified++
			continue
		}
		one := Errand{Name: strconv.FormatInt(l.Delivery, 10), To: sinks[l.Sink], Verified: verified, Letter: &letters[i], Attempt: max(l.Attempt, l.Failures, 1)}
		if to := e.sel.To; to != nil && to.String() != one.To.String() {
			one.To, one.Letter, one.Attempt = to, nil, 1
		}
		twice := func(other Errand) bool { return other.Name == one.Name && other.To.String() == one.To.String() }
		if n := len(e.all); n == 0 || !twice(e.all[n-1]) || one.Letter != nil {
			e.all = append(e.all, one)
		}
	}
	return nil
}

// named takes the deliveries that are named, each once.
func (e *errands) named(ctx context.Context, db *Store) error {
	var all []Stored
	for _, name := range e.sel.Names {
		found, err := NamedDeliveries(ctx, db, []string{name})
		if err != nil {
			return err
		}
		d := found[0]
		d.Body, d.Header = nil, nil // read again when it is sent
		if !slices.ContainsFunc(all, func(other Stored) bool { return other.Name() == d.Name() }) {
			all = append(all, d)
		}
	}
	slices.SortStableFunc(all, func(a, b Stored) int { return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.Seq, b.Seq)) })
	for _, d := range all {
		m := e.meeting()
		if !d.Refused {
			for row, err := range db.Inbox.Events(ctx, inbox.Query{Delivery: d.Seq}) {
				if err != nil {
					return err
				}
				m.meet(e, row)
			}
		}
		e.add(d.Name(), d.Verified == inbox.Yes, m)
	}
	return nil
}

// since takes what matches among all that was received.
func (e *errands) since(ctx context.Context, db *Store) error {
	met := map[int64]*meeting{}
	for row, err := range db.Inbox.Events(ctx, inbox.Query{Since: e.sel.Since}) {
		switch {
		case err != nil:
			return err
		case e.sel.Until > 0 && row.Delivery > e.sel.Until:
			continue
		case met[row.Delivery] == nil:
			met[row.Delivery] = e.meeting()
		}
		met[row.Delivery].meet(e, row)
	}
	for _, seq := range slices.Sorted(maps.Keys(met)) {
		switch m := met[seq]; {
		case !m.matched:
		case !m.verified && !e.sel.Unverified:
			e.left.Unverified++
		default:
			e.add(strconv.FormatInt(seq, 10), m.verified, m)
		}
	}
	return nil
}

// meeting is what the rows of a delivery say of it.
type meeting struct {
	matched, verified bool
	wanted            []bool // by which of the known targets
}

func (e *errands) meeting() *meeting { return &meeting{wanted: make([]bool, len(e.targets))} }

func (m *meeting) meet(e *errands, row inbox.Event) {
	m.matched = m.matched || e.sel.Filter.Match(row)
	m.verified = m.verified || row.Verified == inbox.Yes
	if row.Mark != inbox.Standing && row.Mark != inbox.Superseded {
		return
	}
	for i, t := range e.targets {
		m.wanted[i] = m.wanted[i] || t.Filter.Match(row)
	}
}

// add sends a delivery to the target of the line, or to those that want it.
func (e *errands) add(name string, verified bool, m *meeting) {
	if e.sel.To != nil {
		e.all = append(e.all, Errand{Name: name, To: e.sel.To, Verified: verified, Attempt: 1})
		return
	}
	n := len(e.all)
	for i, t := range e.targets {
		known := func(other Errand) bool { return other.To.String() == t.URL.String() }
		if m.wanted[i] && !slices.ContainsFunc(e.all[n:], known) { // two filters of one URL
			e.all = append(e.all, Errand{Name: name, To: t.URL, Verified: verified, Attempt: 1})
		}
	}
	if len(e.all) == n {
		e.left.Homeless++
	}
}
