package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Counts does what comes to mind to a store, and compares lists and counts of
// many filters with what a list of everything says.
func Counts(t *testing.T, h Harness) {
	t.Helper()
	const seeds, steps = 4, 24
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := &counted{world: newWorld(t, h), created: map[tracking.Key]time.Time{}, rng: rand.New(rand.NewPCG(seed, 7)), at: sent} //nolint:gosec // to be repeated by its seed
			for range steps {
				c.step()
				if c.rng.IntN(6) == 0 {
					c.compare()
				}
				if t.Failed() {
					return
				}
			}
			c.compare()
			_, err := c.PruneRuns(c.Context(), time.Now().Add(time.Hour))
			c.must(err)
			c.compare()
		})
	}
}

// counted is a store whose counts are compared.
type counted struct {
	*world
	rng  *rand.Rand
	at   time.Time // grows
	runs []int64

	created map[tracking.Key]time.Time // when the run began that brought a row in
	middle  time.Time                  // when one of the runs began
}

// manyItems is how many items the runs are about.
const manyItems = 60

// entriesOfOrders returns entries of orders with one parcel or two.
func (c *counted) entriesOfOrders() []ledger.Entry {
	from := c.rng.IntN(manyItems)
	all := entries(from, from+c.rng.IntN(12))
	for i := range all {
		all[i].Item.CarrierCode = []string{"ups", "UPS", "dhl", "", "o'neill"}[c.rng.IntN(5)]
		if c.rng.IntN(6) == 0 {
			all[i].Item.ReferID = item(from + 1).ReferID
		}
	}
	return all
}

func (c *counted) step() {
	c.at = c.at.Add(time.Minute)
	switch n := c.rng.IntN(12); {
	case n < 3 || len(c.runs) == 0:
		p := plan()
		p.CheckFirst = c.rng.IntN(6) == 0
		all := c.entriesOfOrders()
		run := c.run(p, all...)
		c.runs = append(c.runs, run.ID)
		at := run.Created.Truncate(time.Millisecond)
		for _, e := range all {
			if _, known := c.created[e.Item.Key()]; !known {
				c.created[e.Item.Key()] = at
			}
		}
		if c.middle.IsZero() || c.rng.IntN(3) == 0 {
			c.middle = at
		}
	case n < 6:
		for _, b := range c.claim(c.runs[c.rng.IntN(len(c.runs))], 1+c.rng.IntN(3)) {
			c.recordOne(b)
		}
	case n < 9:
		var all []ledger.RecordedAnswer
		for range 1 + c.rng.IntN(9) {
			s := c.seen()
			if c.rng.IntN(8) == 0 {
				s.Key.ReferID = ""
			}
			all = append(all, ledger.RecordedAnswer{Asked: c.at, Seen: []ledger.Sighting{s}, Raw: []byte("{}")})
		}
		c.must(c.Record(c.Context(), all))
	case n < 11:
		s := c.seen()
		s.Key.ReferID, s.Source = "", ledger.FromEvent
		from, _, err := c.Followed(c.Context())
		c.must(err)
		s.Event = from + 1
		c.follow(s)
	default:
		c.kill()
	}
}

// recordOne ends a batch in any way.
func (c *counted) recordOne(b ledger.Batch) {
	o := outcome(b, []ledger.State{ledger.Accepted, ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending}[c.rng.IntN(5)])
	if c.rng.IntN(3) == 0 {
		o.Rows = []ledger.RowOutcome{{Row: b.Rows[0].ID, State: ledger.Rejected, Reason: "bad"}}
	}
	c.must(c.RecordOutcomes(c.Context(), []ledger.BatchOutcome{o}))
	if c.rng.IntN(4) == 0 {
		_, err := c.Dismiss(c.Context(), c.runs[c.rng.IntN(len(c.runs))], "")
		c.must(err)
	}
}

// seen is anything that may be seen of a tracking.
func (c *counted) seen() ledger.Sighting {
	s := sighting(c.rng.IntN(manyItems+20), c.at)
	s.CarrierCode = []string{"", "ups", "Dhl"}[c.rng.IntN(3)]
	s.Times = tracking.Times{Checkpoint: c.at.Add(-time.Duration(c.rng.IntN(200)) * time.Hour)}
	switch c.rng.IntN(5) {
	case 0:
		s.Phase, s.Status, s.StatusLabel, s.StatusTrack, s.Times = ledger.Processing, "", "", "", tracking.Times{}
	case 1:
		s.Status, s.StatusLabel, s.StatusTrack = "7", "IN_TRANSIT", "in_transit"
	case 2:
		s.Phase, s.Status, s.StatusLabel, s.StatusTrack = ledger.Absent, "", "", ""
	default:
		s.Transit = time.Duration(c.rng.IntN(5)) * 11 * time.Hour
	}
	return s
}

func (c *counted) filters() []ledger.Filter {
	middle := c.at.Add(-10 * time.Minute)
	filters := []ledger.Filter{
		{},
		{Statuses: []string{"delivered"}},
		{Statuses: []string{"7"}},
		{Statuses: []string{"nothing"}},
		{Carrier: "ups"},
		{Carrier: "DHL"},
		{Carrier: "O'Neill"},
		{Carrier: "none"},
		{Updated: ledger.Range{Since: middle}},
		{Updated: ledger.Range{Since: c.at.Add(-120 * time.Hour), Until: c.at.Add(-60 * time.Hour)}},
		{Delivered: ledger.Range{Until: c.at.Add(-60 * time.Hour)}},
		{Statuses: []string{"delivered", "7"}},
		{Statuses: []string{"delivered"}, States: []ledger.State{ledger.NotChecked}},
		{Statuses: []string{"nothing"}, States: []ledger.State{ledger.NotChecked}, Carrier: "ups"},
		{Statuses: []string{"7", "rejected"}, States: []ledger.State{ledger.Rejected}},
		{States: []ledger.State{ledger.Pending, ledger.NotChecked}},
		{StuckSince: c.at.Add(-90 * time.Hour)},
		{Created: ledger.Range{Since: c.middle}},
		{Created: ledger.Range{Until: c.middle}},
		{Created: ledger.Range{Since: c.middle}, Statuses: []string{"delivered"}},
		{Created: ledger.Range{Until: c.middle}, ReferIDs: []string{"order-00*"}},
		{Created: ledger.Range{Since: c.middle}, States: []ledger.State{ledger.NotChecked, ledger.Rejected}},
		{Created: ledger.Range{Since: c.middle}, Updated: ledger.Range{Until: c.at}},
		{ReferIDs: []string{"order-000*"}},
		{ReferIDs: []string{item(3).ReferID, "order-001*", "none", "order-0*"}},
		{ReferIDs: []string{"*"}},
		{ReferIDs: []string{"'"}},
		{Carrier: "ups", Statuses: []string{"delivered"}},
		{Statuses: []string{"delivered"}, ReferIDs: []string{"order-00*"}},
		{Carrier: "ups", Updated: ledger.Range{Since: c.at.Add(-60 * time.Hour)}},
		{Statuses: []string{"delivered"}, StuckSince: c.at},
		{OrStuckSince: c.at.Add(-90 * time.Hour)},
		{OrStuckSince: c.at.Add(-90 * time.Hour), Carrier: "ups"},
		{Statuses: []string{"delivered"}, States: []ledger.State{ledger.Rejected, ledger.Unknown}, OrStuckSince: c.at.Add(-60 * time.Hour)},
	}
	for _, state := range []ledger.State{ledger.Accepted, ledger.Rejected, ledger.Unknown, ledger.Pending, ledger.Superseded, ledger.Dismissed, ledger.NotChecked} {
		filters = append(filters, ledger.Filter{States: []ledger.State{state}}, ledger.Filter{States: []ledger.State{state}, Carrier: "ups"})
	}
	return filters
}

// compare compares lists and counts of filters with a list of everything.
func (c *counted) compare() {
	c.Helper()
	all := collect(c.world, c.Statuses(c.Context(), ledger.Filter{}))
	ofRuns := map[int64]map[tracking.Key]bool{}
	for _, run := range c.runs {
		if _, err := c.Run(c.Context(), run); err != nil {
			continue // pruned
		}
		ofRuns[run] = map[tracking.Key]bool{}
		for _, row := range collect(c.world, c.Rows(c.Context(), run)) {
			ofRuns[run][row.Item.Key()] = true
		}
	}
	for _, f := range c.filters() {
		want := []ledger.TrackingStatus{}
		for _, st := range all {
			if at := c.created[st.Item.Key()]; !st.Created.Equal(at) && st.State != "" {
				c.Errorf("%+v was created at %v; want %v", st.Item, st.Created, at)
			}
			if f.Matches(st) && f.Created.Holds(st.Created) {
				want = append(want, st)
			}
		}
		c.compareOne(f, want)
		run := c.runs[c.rng.IntN(len(c.runs))]
		ofRun, isKept := ofRuns[run]
		if !isKept {
			continue
		}
		f.Run = run
		c.compareOne(f, slices.DeleteFunc(want, func(st ledger.TrackingStatus) bool { return st.State == "" || !ofRun[st.Item.Key()] }))
	}
}

// compareOne compares the lists and the counts of a filter, of which those are to
// be in the order of creation.
func (c *counted) compareOne(f ledger.Filter, want []ledger.TrackingStatus) {
	c.Helper()
	name := fmt.Sprintf("%+v", f)
	c.same("list "+name, keysOf(collect(c.world, c.Statuses(c.Context(), f))), keysOf(want))
	groups, err := c.Count(c.Context(), f)
	c.must(err)
	got, counts := map[ledger.Group]int64{}, map[ledger.Group]int64{}
	for _, g := range groups {
		n := g.Trackings
		g.Trackings = 0
		got[g] += n
	}
	for _, st := range want {
		g := ledger.GroupOf(st)
		g.Trackings = 0
		counts[g]++
	}
	c.same("count "+name, got, counts)
	for order, key := range sortKeys {
		if c.rng.IntN(3) > 0 {
			continue
		}
		f.Order, f.Descending = order, c.rng.IntN(2) == 0 && order != ledger.ByAsked
		sorted := slices.Clone(want)
		slices.SortStableFunc(sorted, func(a, b ledger.TrackingStatus) int {
			x, y := key(a), key(b)
			direction := 1
			if f.Descending {
				direction = -1
			}
			return cmp.Or(-cmp.Compare(min(len(x), 1), min(len(y), 1)), direction*strings.Compare(x, y))
		})
		c.same(fmt.Sprintf("sorted %+v", f), keysOf(collect(c.world, c.Statuses(c.Context(), f))), keysOf(sorted))
		f.Limit = 1 + c.rng.IntN(8)
		c.same(fmt.Sprintf("first %+v", f), keysOf(collect(c.world, c.Statuses(c.Context(), f))), keysOf(sorted[:min(f.Limit, len(sorted))]))
		f.Limit = 0
	}
}

// keysOf are the keys of trackings, in order.
func keysOf(all []ledger.TrackingStatus) []tracking.Key {
	keys := []tracking.Key{}
	for _, st := range all {
		keys = append(keys, st.Item.Key())
	}
	return keys
}

// sortKeys are texts that compare as the orders do, empty for what is not known.
var sortKeys = map[ledger.Order]func(ledger.TrackingStatus) string{
	ledger.ByAsked: func(st ledger.TrackingStatus) string { return "at " + timeKey(st.Asked) },
	ledger.ByReceived: func(st ledger.TrackingStatus) string {
		if st.Sighting == nil {
			return ""
		}
		return timeKey(st.Sighting.Seen)
	},
	ledger.ByCheckpoint: func(st ledger.TrackingStatus) string {
		if st.Sighting == nil {
			return ""
		}
		return timeKey(st.Sighting.Times.Checkpoint)
	},
	ledger.ByReference: func(st ledger.TrackingStatus) string { return st.Item.ReferID },
	ledger.ByNumber:    func(st ledger.TrackingStatus) string { return tracking.FoldNumber(st.Item.Number) },
	ledger.ByStatus: func(st ledger.TrackingStatus) string {
		if st.Sighting == nil {
			return ""
		}
		return strings.ToLower(cmp.Or(st.Sighting.StatusLabel, st.Sighting.StatusTrack, st.Sighting.Status))
	},
	ledger.ByCarrier: func(st ledger.TrackingStatus) string { return strings.ToLower(st.Carrier()) },
}

// timeKey is a text that compares as the time does, empty for never.
func timeKey(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return fmt.Sprintf("%020d", t.UnixMilli())
}

var statisticsTests = map[string]func(*world){
	"Groups":            groupsAlike,
	"References":        referencesByPrefix,
	"ListsNoStagedRows": listsNoStagedRows,
	"Seen":              seenStatuses,
}

func groupsAlike(w *world) {
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 2)
	w.record(ledger.Accepted, b[0])
	w.record(ledger.Rejected, b[1])
	seen := sighting(1, sent)
	seen.CarrierCode, seen.Transit = "dhl", 60*time.Hour
	w.learn(seen)
	later := sighting(1, sent.Add(time.Hour)) // it is delivered as before, and has neither checkpoints nor a carrier
	later.CarrierCode = ""
	w.learn(later)
	st := collect(w, w.Statuses(w.Context(), ledger.Filter{Limit: 1}))[0]
	w.same("transit time", st.Sighting.Transit, 60*time.Hour)
	w.same("carrier", st.Sighting.CarrierCode, "dhl")
	groups := have(w.Count(w.Context(), ledger.Filter{}))(w)
	slices.SortFunc(groups, func(a, b ledger.Group) int { return cmp.Compare(a.Trackings, b.Trackings) })
	w.same("groups", groups, []ledger.Group{
		{
			StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "1", StatusLabel: "DELIVERED", StatusTrack: "delivered", Trackings: 1},
			Carrier:     "dhl", Run: run.ID, Created: run.Created.UTC().Truncate(time.Millisecond), TransitDays: 3,
		},
		{
			StatusCount: ledger.StatusCount{State: ledger.Accepted, Trackings: 2},
			Carrier:     "ups", Run: run.ID, Created: run.Created.UTC().Truncate(time.Millisecond), TransitDays: ledger.UnknownTransit,
		},
		{
			StatusCount: ledger.StatusCount{State: ledger.Rejected, Trackings: 3},
			Carrier:     "ups", Run: run.ID, Created: run.Created.UTC().Truncate(time.Millisecond), TransitDays: ledger.UnknownTransit,
		},
	})
	_, err := w.Count(w.Context(), ledger.Filter{Run: 99})
	w.is("no such run", err, ledger.ErrNoRun)
}

func seenStatuses(w *world) {
	run := w.run(plan(), entries(1, 5)...)
	w.claim(run.ID, 5)
	for n := range 3 {
		seen := sighting(n+1, sent)
		if n == 0 {
			seen.Status, seen.StatusLabel, seen.StatusTrack = "7", "IN TRANSIT", "in_transit"
		}
		w.learn(seen)
	}
	got := have(w.SeenStatuses(w.Context()))(w)
	w.same("statuses", got, []ledger.StatusCount{
		{Phase: ledger.Processed, Status: "1", StatusLabel: "DELIVERED", StatusTrack: "delivered", Trackings: 2},
		{Phase: ledger.Processed, Status: "7", StatusLabel: "IN TRANSIT", StatusTrack: "in_transit", Trackings: 1},
	})
	moved := sighting(1, sent.Add(time.Hour))
	w.learn(moved)
	got = have(w.SeenStatuses(w.Context()))(w)
	w.same("statuses of none", len(got), 1)
	carriers := have(w.SeenCarriers(w.Context()))(w)
	w.same("carriers", carriers, []string{item(1).CarrierCode})
}

func referencesByPrefix(w *world) {
	all := entries(1, 12)
	all[3].Item.ReferID = all[4].Item.ReferID
	all[11].Item.ReferID = "Ünïcode"
	w.run(plan(), all...)
	for prefix, want := range map[string][]string{
		"order-000": ids(1, 2, 3, 5, 6), "order-001": ids(10, 11), "ORDER": nil, "Ü": {"Ünïcode"}, "": ids(1, 2, 3, 5, 6), "%": nil, "order-0011": ids(11),
	} {
		got := have(w.References(w.Context(), prefix, 5))(w)
		w.same("references "+prefix, got, want)
	}
	w.begin(w.Store, plan(), ledger.Entry{Line: 2, Item: tracking.Item{ReferID: "staged", Number: "N"}})
	got := have(w.References(w.Context(), "staged", 5))(w)
	w.same("of a staged run", len(got), 0)
}

// Rows that are being staged are in no list, also where only its first ones are asked for.
func listsNoStagedRows(w *world) {
	w.run(plan(), entries(5, 8)...)
	w.begin(w.Store, plan(), entries(1, 4)...)
	for order := range sortKeys {
		f := ledger.Filter{Order: order, Limit: 3}
		w.same(fmt.Sprintf("sorted %+v", f), keysOf(collect(w, w.Statuses(w.Context(), f))), keysOf(collect(w, w.Statuses(w.Context(), ledger.Filter{Limit: 3}))))
	}
	latest := keysOf(collect(w, w.Statuses(w.Context(), ledger.Filter{Descending: true, Limit: 1})))
	w.same("the latest one", latest, []tracking.Key{item(8).Key()})
}
