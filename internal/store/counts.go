package store

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// numberAlone stands for the run of what is known of a number without a tracking.
const numberAlone = -1

// countKey is a line of table tracking_counts.
type countKey struct {
	run, status int64
	carrier     string
	transitDays int64
}

func (k countKey) of(status int64, carrier string, transit time.Duration) countKey {
	k.status, k.carrier, k.transitDays = status, carrier, ledger.TransitDays(transit)
	return k
}

// trackingCounts is by how many the trackings of lines become more.
type trackingCounts map[countKey]int64

// move counts what was seen of a tracking in place of what was known before. key has its run.
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

func (t *tx) changeCounts(ctx context.Context, counts trackingCounts) error {
	keys := make([]countKey, 0, len(counts))
	for k, n := range counts {
		if n != 0 {
			keys = append(keys, k)
		}
	}
	return insertTrackingCounts.exec(ctx, t, len(keys), func(args []any, i int) []any {
		k := keys[i]
		return append(args, k.run, k.status, k.carrier, k.transitDays, counts[k])
	})
}

func (t *tx) runOf(ctx context.Context, row int64) (int64, error) {
	if r := t.run; r.first <= row && row <= r.last {
		return r.id, nil
	}
	_, err := t.row(ctx, []any{&t.run.id, &t.run.first, &t.run.last}, `SELECT id, first_row, last_row FROM runs
		WHERE first_row <= $1 AND last_row >= $1 ORDER BY first_row DESC LIMIT 1`, row)
	return t.run.id, err
}

type trackingCount struct {
	countKey
	trackings int64
}

// countsOfRuns are the lines of table tracking_counts but for runs that are being staged.
const countsOfRuns = " FROM tracking_counts WHERE run_id NOT IN (SELECT id FROM runs WHERE state = 'staged') "

// readCounts reads the lines that the filter may take, whatever their run.
func (l *lister) readCounts(ctx context.Context) (err error) {
	var all, taken int64
	err = l.d.each(ctx, func(s scanner) error {
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
			taken += c.trackings
		}
		return err
	}, "SELECT run_id, status_id, carrier, transit_days, trackings, ("+lastVisible+")"+countsOfRuns+"AND trackings > 0")
	l.dense = taken > all/50
	return err
}

// countedRuns returns the runs with rows that the filter may take.
func (l *lister) countedRuns() map[int64]bool {
	runs := map[int64]bool{}
	for _, c := range l.counts {
		runs[c.run] = true
	}
	return runs
}
