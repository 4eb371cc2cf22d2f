package store

import (
	"context"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Followed returns how far events were followed, see [ledger.EventFollower].
func (d *DB) Followed(ctx context.Context) (to, last int64, err error) {
	return d.eventsRead(ctx, "followed")
}

// eventsRead returns up to which event a reader came, by the name of its counter, and the last event.
func (d *DB) eventsRead(ctx context.Context, counter string) (to, last int64, err error) {
	_, err = d.row(ctx, []any{&to, &last}, `SELECT value, (SELECT COALESCE(MAX(seq), 0) FROM events)
		FROM counters WHERE name = $1`, counter)
	return to, last, err
}

// readEvents moves a reader on, unless another process has.
func (t *tx) readEvents(ctx context.Context, counter string, from, to int64) (moved bool, err error) {
	n, err := t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = $2 AND value = $3", to, counter, from)
	return n > 0, err
}

// Follow records what events told, see [ledger.EventFollower].
func (d *DB) Follow(ctx context.Context, seen []ledger.Sighting, from, to int64) (bool, error) {
	if err := checkSeen(seen); err != nil {
		return false, err
	}
	if _, err := d.indexNumbers(ctx, maxUnindexed); err != nil { // many at once; what is still missing follows below
		return false, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) (bool, error) {
		moved, err := t.readEvents(ctx, "followed", from, to)
		if err != nil || !moved || len(seen) == 0 {
			return moved, err
		}
		if err := t.indexAllNumbers(ctx); err != nil {
			return false, err
		}
		var all []ledger.Sighting
		for _, s := range seen {
			about, err := t.about(ctx, s)
			if err != nil {
				return false, err
			}
			all = append(all, about...)
		}
		return true, t.recordSightings(ctx, all)
	})
}

func (t *tx) about(ctx context.Context, s ledger.Sighting) ([]ledger.Sighting, error) {
	all, err := t.sightingsOf(ctx, s, selectRowsOfNumber+`
		UNION SELECT s.refer_id, s.number FROM sightings s WHERE s.router_id = $2 AND s.router_id <> '' AND s.refer_id <> ''`,
		tracking.FoldNumber(s.Key.Number), s.RouterID)
	if len(all) > 1 {
		for i := range all {
			all[i].Shared = int64(len(all))
		}
	}
	if len(all) == 0 && s.Key.Number != "" {
		s.Key.ReferID = ""
		all = []ledger.Sighting{s}
	}
	return all, err
}

// LastUnverified returns the latest unverified event of a number, see [ledger.EventFollower].
func (d *DB) LastUnverified(ctx context.Context, number string) (int64, error) {
	if number == "" {
		return 0, nil
	}
	var seq, rest int64
	_, err := d.row(ctx, []any{&seq, &rest}, "SELECT "+unverifiedBegin+"$1"+unverifiedEnd+"0", foldKey(number))
	return seq, err
}
