package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// storedSighting is the part of a stored tracking that is needed to replace it.
type storedSighting struct {
	id      int64  // of the sighting, else of its row; 0 if there is neither
	status  int64  // in table statuses, 0 if nothing is stored
	carrier string // of its row, as sent
	ledger.Sighting
}

// statusKey is a row of table statuses.
type statusKey struct{ phase, status, label, track string }

// recordSightings stores each sighting that supersedes what is known of its tracking.
func (t *tx) recordSightings(ctx context.Context, seen []ledger.Sighting) {
	seen = t.dropErasedSightings(ctx, indexable(seen))
	known := t.knownSightings(ctx, seen)
	kept := superseding(seen, known)
	if len(kept) == 0 {
		return
	}
	lowest := value[int64](ctx, t, "SELECT COALESCE(MIN(id), 0) FROM sightings WHERE id < 0")
	ids, statuses, counts := make([]int64, len(kept)), make([]int64, len(kept)), trackingCounts{}
	for i := range kept {
		s, before := &kept[i], known[kept[i].Key]
		status := statusKey{string(s.Phase), clean(s.Status), clean(s.StatusLabel), clean(s.StatusTrack)}
		statuses[i] = t.statusID(ctx, status)
		keepKnown(s, before.Sighting)
		key := countKey{}
		if s.Key.ReferID == "" {
			key.run = numberAlone
		}
		switch ids[i] = before.id; {
		case before.id == 0:
			lowest--
			ids[i] = lowest
		case before.id < 0: // it is counted without a row
		default:
			key.run = t.runOf(ctx, before.id)
		}
		counts.move(key, before, statuses[i], s)
	}
	insertSightings.exec(ctx, t, len(kept), func(args []any, n int) []any {
		s := kept[n]
		if s.AsOf.IsZero() {
			s.AsOf = s.Seen
		}
		args = append(args, ids[n], statuses[n], s.Key.ReferID, s.Key.Number, tracking.FoldNumber(s.Key.Number))
		return sightingFields.appendValues(args, &s)
	})
	t.changeCounts(ctx, counts)
}

// indexable returns the sightings whose names fit into an index, with their other texts shortened to fit.
func indexable(seen []ledger.Sighting) []ledger.Sighting {
	var all []ledger.Sighting
	for _, s := range seen {
		if len(s.Key.ReferID) > maxKey || len(s.Key.Number) > maxKey {
			continue
		}
		for _, text := range []*string{&s.Status, &s.StatusLabel, &s.StatusTrack, &s.CarrierCode, &s.RouterID, &s.Error} {
			if len(*text) > maxLabel { // it is only descriptive
				*text = strings.ToValidUTF8((*text)[:maxLabel], "")
			}
		}
		all = append(all, s)
	}
	return all
}

// superseding returns the sightings that supersede what is known of their trackings, one per tracking.
func superseding(seen []ledger.Sighting, known map[tracking.Key]storedSighting) (kept []ledger.Sighting) {
	at := map[tracking.Key]int{} // in kept
	for _, s := range seen {
		if i, again := at[s.Key]; again {
			if s.Supersedes(kept[i]) {
				s.RouterID = cmp.Or(s.RouterID, kept[i].RouterID)
				keepKnown(&s, kept[i])
				kept[i] = s
			}
			continue
		}
		if before := known[s.Key]; before.status == 0 || s.Supersedes(before.Sighting) {
			at[s.Key] = len(kept)
			kept = append(kept, s)
		}
	}
	return kept
}

// keepKnown keeps the known carrier, and the transit time of a delivered tracking, where s has none.
func keepKnown(s *ledger.Sighting, before ledger.Sighting) {
	s.CarrierCode = cmp.Or(s.CarrierCode, before.CarrierCode)
	if s.Transit == 0 && s.Delivered() {
		s.Transit = before.Transit
	}
}

// statusID returns the id of a status. It adds the status if it is new.
func (t *tx) statusID(ctx context.Context, k statusKey) int64 {
	if id, ok := t.statuses[k]; ok {
		return id
	}
	args := []any{k.phase, k.status, k.label, k.track}
	t.exec(ctx, `INSERT INTO statuses (phase, status, status_label, status_track) VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING`, args...)
	id := value[int64](ctx, t, `SELECT id FROM statuses
		WHERE phase = $1 AND status = $2 AND status_label = $3 AND status_track = $4`, args...)
	if t.statuses == nil {
		t.statuses = map[statusKey]int64{}
	}
	t.statuses[k] = id
	return id
}

// manySightings is how many sightings one statement reads; fewer than a tenth of it are read one by one.
const manySightings = 200

// knownSightings returns what is stored of the trackings seen, and the ids of rows without a sighting.
func (t *tx) knownSightings(ctx context.Context, seen []ledger.Sighting) map[tracking.Key]storedSighting {
	known := map[tracking.Key]storedSighting{}
	add := func(row scanner) error {
		var key tracking.Key
		var s storedSighting
		err := row.Scan(&key.ReferID, &key.Number, &s.id, &s.carrier, &s.status, (*string)(&s.Phase), (*string)(&s.Source),
			(*storedTime)(&s.AsOf), (*storedTime)(&s.Times.Checkpoint), (*storedTime)(&s.Times.Updated),
			(*storedSpan)(&s.Transit), &s.CarrierCode)
		known[key] = s
		return err
	}
	size := 1
	if len(seen) >= manySightings/10 {
		size = manySightings
	}
	query := `SELECT v.column1, v.column2, COALESCE(s.id, r.id, 0), COALESCE(r.carrier, ''),
		COALESCE(s.status_id, 0), COALESCE(s.phase, ''), COALESCE(s.source, ''), COALESCE(s.as_of, 0),
		COALESCE(s.checkpoint, 0), COALESCE(s.updated, 0), COALESCE(s.transit, 0), COALESCE(s.carrier, '')
		FROM (VALUES (?, ?)` + strings.Repeat(", (?, ?)", size-1) + `) v
		LEFT JOIN sightings s ON s.refer_id = v.column1 AND s.number = v.column2
		LEFT JOIN rows r ON r.id = CASE WHEN s.id IS NULL THEN (SELECT x.id FROM rows x
			WHERE x.refer_id = v.column1 AND x.number = v.column2 AND x.id <= (` + lastVisible + `)) ELSE s.id END`
	for chunk := range slices.Chunk(seen, size) {
		args := make([]any, 0, 2*len(chunk))
		for _, s := range chunk {
			args = append(args, s.Key.ReferID, s.Key.Number)
		}
		for len(args) < 2*size { // the last chunk may be shorter
			args = append(args, args[:2]...)
		}
		t.each(ctx, add, query, args...)
	}
	return known
}

// sightingsOf returns a copy of s for each tracking that a query finds.
func (t *tx) sightingsOf(ctx context.Context, s ledger.Sighting, query string, args ...any) []ledger.Sighting {
	s.RouterID = "" // it may be another's of that number
	return list(ctx, t, func(row scanner) (ledger.Sighting, error) {
		one := s
		err := row.Scan(&one.Key.ReferID, &one.Key.Number)
		return one, err
	}, query, args...)
}

// selectRowsOfNumber selects the keys of the indexed rows with the folded number $1.
const selectRowsOfNumber = `SELECT r.refer_id, r.number FROM numbers n CROSS JOIN rows r
	WHERE n.folded = $1 AND n.folded <> '' AND r.id = n.row_id` + visible

// linkedAtOnce limits the sightings of numbers in memory at once.
const linkedAtOnce = 100_000

// unlinked says whether there are sightings without a row: any, and of numbers alone.
type unlinked struct{ any, ofNumbers bool }

func (t *tx) unlinked(ctx context.Context) (u unlinked) {
	t.row(ctx, []any{&u.any, &u.ofNumbers}, `SELECT EXISTS (SELECT 1 FROM sightings WHERE id < 0),
		EXISTS (SELECT 1 FROM sightings WHERE refer_id = '')`)
	return u
}

// link gives the rows first..last of a run, which become visible, what was known of their keys and numbers before. The
// sighting of a visible row has the row's id.
func (t *tx) link(ctx context.Context, u unlinked, run, first, last int64) {
	if !u.any || first > last {
		return
	}
	// Until here, a row and its sighting count as two trackings.
	t.execAll(ctx, []string{
		`UPDATE sightings SET id = r.id FROM rows r WHERE r.id BETWEEN $1 AND $2 AND sightings.id < 0
			AND sightings.refer_id = r.refer_id AND sightings.number = r.number`,
		insertCounts + ` SELECT 0, status_id, carrier, ` + transitDays + `, -COUNT(*) FROM sightings s
			WHERE s.id BETWEEN $1 AND $2 GROUP BY 1, 2, 3, 4` + onKnownCount,
	}, first, last)
	t.execAll(ctx, []string{
		insertCounts + ` SELECT CAST($3 AS BIGINT), 0, r.carrier, -1, -COUNT(*) FROM sightings s CROSS JOIN rows r
			WHERE s.id BETWEEN $1 AND $2 AND r.id = s.id GROUP BY 1, 2, 3, 4` + onKnownCount,
		insertCounts + ` SELECT CAST($3 AS BIGINT), s.status_id, COALESCE(NULLIF(s.carrier, ''), r.carrier),
			` + transitDays + `, COUNT(*) FROM sightings s CROSS JOIN rows r
			WHERE s.id BETWEEN $1 AND $2 AND r.id = s.id GROUP BY 1, 2, 3, 4` + onKnownCount,
	}, first, last, run)
	for ; u.ofNumbers && first <= last; first += linkedAtOnce {
		t.recordKnownOfNumbers(ctx, first, min(last, first+linkedAtOnce-1))
	}
}

// recordKnownOfNumbers records for each of these rows what was known of its number alone.
func (t *tx) recordKnownOfNumbers(ctx context.Context, first, last int64) {
	all := list(ctx, t, func(s scanner) (one ledger.Sighting, err error) {
		err = s.Scan(sightingFields.dest(&one, &one.Key.ReferID, &one.Key.Number)...)
		one.RouterID = "" // it may belong to another tracking of that number
		return one, err
	}, "SELECT "+sightingColumns+`, r.refer_id, r.number FROM rows r CROSS JOIN sightings s
		WHERE r.id BETWEEN $1 AND $2 AND s.refer_id = '' AND s.folded = fold_number(r.number) AND s.folded <> ''
		ORDER BY r.id, s.id DESC`, first, last)
	t.recordSightings(ctx, all)
}

// Followed returns how far events were followed, see [ledger.EventFollower].
func (d *DB) Followed(ctx context.Context) (to, last int64, err error) {
	return d.eventsRead(ctx, "followed")
}

// eventsRead returns the last event that a reader has read, by the name of its counter, and the last event there is.
func (d *DB) eventsRead(ctx context.Context, counter string) (to, last int64, err error) {
	r := d.reader()
	r.row(ctx, []any{&to, &last}, `SELECT value, (SELECT COALESCE(MAX(seq), 0) FROM events)
		FROM counters WHERE name = $1`, counter)
	return to, last, r.err
}

// readEvents advances a reader, unless another process has.
func (t *tx) readEvents(ctx context.Context, counter string, from, to int64) (moved bool) {
	return t.exec(ctx, "UPDATE counters SET value = $1 WHERE name = $2 AND value = $3", to, counter, from) > 0
}

// Follow records what events say, see [ledger.EventFollower].
func (d *DB) Follow(ctx context.Context, seen []ledger.Sighting, from, to int64) (bool, error) {
	if err := checkSeen(seen); err != nil {
		return false, err
	}
	if _, err := d.indexNumbers(ctx, maxUnindexed); err != nil { // many at once; the rest follows below
		return false, err
	}
	return runFor(ctx, d, func(ctx context.Context, t *tx) bool {
		moved := t.readEvents(ctx, "followed", from, to)
		if !moved || len(seen) == 0 {
			return moved
		}
		t.indexAllNumbers(ctx)
		var all []ledger.Sighting
		for _, s := range seen {
			all = append(all, t.about(ctx, s)...)
		}
		t.recordSightings(ctx, all)
		return true
	})
}

func (t *tx) about(ctx context.Context, s ledger.Sighting) []ledger.Sighting {
	all := t.sightingsOf(ctx, s, selectRowsOfNumber+`
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
	return all
}

// LastUnverified returns the latest unverified event of a number, see [ledger.EventFollower].
func (d *DB) LastUnverified(ctx context.Context, number string) (int64, error) {
	if number == "" {
		return 0, nil
	}
	var seq, rest int64
	r := d.reader()
	r.row(ctx, []any{&seq, &rest}, "SELECT "+unverifiedBegin+"$1"+unverifiedEnd+"0", foldKey(number))
	return seq, r.err
}
