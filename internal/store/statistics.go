package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Count counts trackings by group, see [ledger.Statistics].
func (d *DB) Count(ctx context.Context, f ledger.Filter) ([]ledger.Group, error) {
	f.Limit, f.Order = 0, ledger.ByCreation
	l := d.reader().newLister(ctx, f)
	groups := groupCounts{}
	counted := l.isCounted(ctx)
	switch {
	case l.err != nil:
		return nil, l.err
	case counted && l.has(func(c criterion) bool { return c.byTime }):
		l.sumByTime(ctx, groups)
	case counted:
		l.sum(ctx, groups)
	default:
		for st, err := range d.Statuses(ctx, f) {
			if err != nil {
				return nil, err
			}
			groups.add(ledger.GroupOf(st), 1)
		}
	}
	all := make([]ledger.Group, 0, len(groups))
	for g, n := range groups {
		if g.Trackings = n; n > 0 {
			all = append(all, g)
		}
	}
	return all, l.err
}

type groupCounts map[ledger.Group]int64

func (c groupCounts) add(g ledger.Group, n int64) {
	g.Trackings = 0
	c[g] += n
}

// isCounted reports whether table tracking_counts, or a scan of sightings, is enough to count what the filter matches.
func (l *lister) isCounted(ctx context.Context) bool {
	return !l.has(func(c criterion) bool { return c.uncounted }) && !value[bool](ctx, l, `SELECT EXISTS (
		SELECT 1 FROM run_known_rows WHERE run_id = $1 AND row_id > 0)`, l.f.Run)
}

// sumByTime adds the matches of a filter by time, from the runs that may have any.
func (l *lister) sumByTime(ctx context.Context, groups groupCounts) {
	for _, r := range l.runs {
		if !l.mayTakeRows(r) {
			continue
		}
		c := l.addCriteria(ofRow, &conditions{args: []any{r.first, r.last}})
		l.each(ctx, l.addTo(groups, r.id), "SELECT s.status_id, "+ofRow.carrier+", "+transitDays+`, COUNT(*)
			FROM sightings s CROSS JOIN rows r CROSS JOIN batches b
			WHERE r.id = s.id AND b.id = r.batch_id AND s.id BETWEEN ?1 AND ?2 AND `+
			c.String()+" GROUP BY 1, 2, 3", c.args...)
	}
	l.sumRowless(ctx, groups, "s.id < 0")
}

// sumRowless adds the sightings without a row that match the filter and a condition.
func (l *lister) sumRowless(ctx context.Context, groups groupCounts, condition string) {
	if !l.withoutRow() {
		return
	}
	c := l.addRowless(&conditions{terms: []string{condition}})
	l.each(ctx, l.addTo(groups, 0), "SELECT s.status_id, s.carrier, "+transitDays+
		", COUNT(*) FROM sightings s WHERE "+c.String()+" GROUP BY 1, 2, 3", c.args...)
}

// addTo returns a function that scans a status, carrier, transit days and number of trackings, and adds them for a
// run.
func (l *lister) addTo(groups groupCounts, run int64) func(scanner) error {
	return func(s scanner) error {
		var status, transitDays, n int64
		var carrier string
		err := s.Scan(&status, &carrier, &transitDays, &n)
		if l.f.Carrier == "" || strings.EqualFold(carrier, l.f.Carrier) {
			groups.add(l.group(run, status, carrier, transitDays), n)
		}
		return err
	}
}

func (l *lister) sum(ctx context.Context, groups groupCounts) {
	var unreported int64
	for _, c := range l.counts {
		if !l.takesRunOf(c.run) {
			continue
		}
		g := l.group(c.run, c.status, c.carrier, c.transitDays)
		if c.status == 0 {
			g.State = ledger.Accepted // see sumByState
			unreported += c.trackings
		}
		groups.add(g, c.trackings)
	}
	if unreported > 0 {
		l.sumByState(ctx, groups)
	}
	l.sumRowless(ctx, groups, "s.refer_id = ''")
}

// takesRunOf reports whether the filter matches trackings of that run, or without a run if it is 0.
func (l *lister) takesRunOf(run int64) bool {
	r := l.runWithID(run)
	return r != nil && l.takesRun(*r) || r == nil && l.f.Run == 0 && l.f.Created.IsZero()
}

// group returns the group of a row of table tracking_counts.
func (l *lister) group(run, status int64, carrier string, transitDays int64) ledger.Group {
	g := ledger.Group{StatusCount: l.known[status], Carrier: carrier, TransitDays: transitDays}
	if r := l.runWithID(run); r != nil {
		g.Created = instant(r.created)
		if !r.pruned {
			g.Run = run
		}
	}
	return g
}

// sumByState moves the rows that are not accepted, and of which nothing is known, out of the accepted ones.
func (l *lister) sumByState(ctx context.Context, groups groupCounts) {
	low, high := int64(math.MaxInt64), int64(0)
	for _, r := range l.runs {
		if l.takesRun(r) {
			low, high = min(low, r.first), max(high, r.last)
		}
	}
	spans := l.unacceptedSpans(ctx, low, high)
	ofRows := countByState("r.state", "rows r WHERE r.state IN ('pending', 'sending', 'rejected', 'unknown')")
	l.each(ctx, l.moveToState(groups), ofRows, low, high)
	ofBatches := countByState("b.state", `rows r CROSS JOIN batches b WHERE r.id BETWEEN $1 AND $2
		AND b.id = r.batch_id AND b.state <> 'accepted' AND r.state IS NULL`)
	for _, s := range spans {
		l.each(ctx, l.moveToState(groups), ofBatches, s.first, s.last)
	}
}

// countByState returns a query that counts the rows in $1..$2 of which nothing is known, by the first row of their
// run, carrier and state.
func countByState(state, rows string) string {
	return `SELECT (SELECT MAX(n.first_row) FROM runs n WHERE n.first_row <= r.id), r.carrier,
		CASE r.present WHEN 'rejected' THEN ` + rejection + ` ELSE r.present END, COUNT(*)
		FROM (SELECT r.id, r.refer_id, r.carrier, r.dismissed, ` + state + " AS present FROM " + rows + `) AS r
		WHERE +r.id BETWEEN $1 AND $2 AND NOT EXISTS (SELECT 1 FROM sightings s WHERE s.id = r.id) GROUP BY 1, 2, 3`
}

// moveToState returns a function that scans and applies a row of countByState.
func (l *lister) moveToState(groups groupCounts) func(scanner) error {
	return func(s scanner) error {
		var first, run, n int64
		var carrier, state string
		err := s.Scan(&first, &carrier, &state, &n)
		if r := l.runAt(first); r != nil {
			run = r.id
		}
		if err != nil || !l.takesRunOf(run) || !l.mayTake(trackingCount{countKey: countKey{carrier: carrier}}) {
			return err
		}
		g := l.group(run, 0, carrier, ledger.UnknownTransit)
		g.State = ledger.Accepted
		groups.add(g, -n)
		g.State = ledger.State(state)
		if !l.notChecked {
			groups.add(g, n)
		}
		return nil
	}
}

// spanGap is how many rows between two ranges are read rather than using two queries.
const spanGap = 10_000

// unacceptedSpans returns the ranges within low..high that hold the rows of batches that are not accepted. Given such
// bounds, the planner reads only these rows.
func (l *lister) unacceptedSpans(ctx context.Context, low, high int64) (spans []rowRun) {
	l.each(ctx, func(s scanner) error {
		var next rowRun
		err := s.Scan(&next.first, &next.last)
		next.first, next.last = max(next.first, low), min(next.last, high)
		if end := len(spans) - 1; end >= 0 && next.first <= spans[end].last+spanGap {
			spans[end].last = max(spans[end].last, next.last)
		} else {
			spans = append(spans, next)
		}
		return err
	}, `SELECT first_row, last_row FROM batches WHERE state <> 'accepted' AND rows > 0
		AND first_row <= $2 AND last_row >= $1 ORDER BY first_row`, low, high)
	return spans
}

// SeenStatuses returns the statuses of trackings, see [ledger.Statistics].
func (d *DB) SeenStatuses(ctx context.Context) ([]ledger.StatusCount, error) {
	r := d.reader()
	all := list(ctx, r, scanInto(func(c *ledger.StatusCount) []any {
		return []any{&c.Phase, &c.Status, &c.StatusLabel, &c.StatusTrack, &c.Trackings}
	}), `SELECT s.phase, s.status, s.status_label, s.status_track, SUM(c.trackings)
		FROM tracking_counts c JOIN statuses s ON s.id = c.status_id
		GROUP BY 1, 2, 3, 4 HAVING SUM(c.trackings) > 0 ORDER BY 5 DESC, 1, 2, 3, 4`)
	return all, r.err
}

// SeenCarriers returns the carriers of trackings, see [ledger.Statistics].
func (d *DB) SeenCarriers(ctx context.Context) ([]string, error) {
	return readFor(d, func(r *reader) []string {
		return list(ctx, r, scanOne[string], `SELECT MAX(carrier)`+countsOfRuns+`AND carrier <> ''
			GROUP BY LOWER(carrier) HAVING SUM(trackings) > 0 ORDER BY SUM(trackings) DESC, 1`)
	})
}

// References returns referIds by prefix, see [ledger.Statistics].
func (d *DB) References(ctx context.Context, prefix string, limit int) ([]string, error) {
	return readFor(d, func(r *reader) []string {
		return list(ctx, r, scanOne[string], `SELECT DISTINCT r.refer_id FROM rows r
			WHERE r.refer_id >= $1 AND r.refer_id < $2`+visible+"ORDER BY r.refer_id LIMIT $3", prefix, prefix+lastText, limit)
	})
}

// OwnColumns returns the columns of inputs that were kept, see [ledger.Statistics].
func (d *DB) OwnColumns(ctx context.Context) ([]string, error) {
	r := d.reader()
	lists := list(ctx, r, scanInto(func(names *[]string) []any { return []any{storedJSON{names}} }),
		"SELECT DISTINCT own FROM runs WHERE own IS NOT NULL")
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.CompactFunc(all, strings.EqualFold), r.err
}

// numberAlone is the run of sightings of a number without a tracking.
const numberAlone = -1

// countKey is the key of a row of table tracking_counts.
type countKey struct {
	run, status int64
	carrier     string
	transitDays int64
}

func (k countKey) of(status int64, carrier string, transit time.Duration) countKey {
	k.status, k.carrier, k.transitDays = status, carrier, ledger.TransitDays(transit)
	return k
}

// trackingCounts are changes of table tracking_counts: how many trackings its rows gain.
type trackingCounts map[countKey]int64

// move counts a new sighting of a tracking in place of the one before. key has its run.
func (c trackingCounts) move(key countKey, before storedSighting, status int64, seen *ledger.Sighting) {
	if before.status != 0 || key.run > 0 {
		c[key.of(before.status, cmp.Or(before.CarrierCode, before.carrier), before.Transit)]--
	}
	c[key.of(status, cmp.Or(clean(seen.CarrierCode), before.carrier), seen.Transit)]++
}

// The parts of a statement that adds to table tracking_counts, around its values.
const (
	insertCounts = "INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)"
	onKnownCount = ` ON CONFLICT (run_id, status_id, carrier, transit_days)
		DO UPDATE SET trackings = tracking_counts.trackings + excluded.trackings`
	// transitDays is [ledger.TransitDays] of a sighting s.
	transitDays = "CASE WHEN s.transit > 0 THEN (s.transit + 43200000) / 86400000 ELSE -1 END"
)

var insertTrackingCounts = newMultiInsert(insertCounts, "iitii", onKnownCount)

func (t *tx) changeCounts(ctx context.Context, counts trackingCounts) {
	keys := make([]countKey, 0, len(counts))
	for k, n := range counts {
		if n != 0 {
			keys = append(keys, k)
		}
	}
	insertTrackingCounts.exec(ctx, t, len(keys), func(args []any, i int) []any {
		k := keys[i]
		return append(args, k.run, k.status, k.carrier, k.transitDays, counts[k])
	})
}

func (t *tx) runOf(ctx context.Context, row int64) int64 {
	if r := t.run; r.first <= row && row <= r.last {
		return r.id
	}
	t.row(ctx, []any{&t.run.id, &t.run.first, &t.run.last}, `SELECT id, first_row, last_row FROM runs
		WHERE first_row <= $1 AND last_row >= $1 ORDER BY first_row DESC LIMIT 1`, row)
	return t.run.id
}

type trackingCount struct {
	countKey
	trackings int64
}

// countsOfRuns selects from table tracking_counts, without runs being staged.
const countsOfRuns = " FROM tracking_counts WHERE run_id NOT IN (SELECT id FROM runs WHERE state = 'staged') "

// readCounts reads the counts that the filter may match, whatever their run.
func (l *lister) readCounts(ctx context.Context) {
	l.counted = map[int64]bool{}
	var all, taken int64
	l.each(ctx, func(s scanner) error {
		var c trackingCount
		err := s.Scan(&c.run, &c.status, &c.carrier, &c.transitDays, &c.trackings, &l.countedTo)
		if strings.EqualFold(c.carrier, l.f.Carrier) && !slices.Contains(l.carriers, c.carrier) {
			l.carriers = append(l.carriers, c.carrier)
		}
		if c.run == numberAlone {
			return err
		}
		all += c.trackings
		if l.mayTake(c) {
			l.counts = append(l.counts, c)
			l.counted[c.run] = true
			taken += c.trackings
		}
		return err
	}, "SELECT run_id, status_id, carrier, transit_days, trackings, ("+lastVisible+")"+countsOfRuns+"AND trackings > 0")
	l.dense = taken > all/50
}
