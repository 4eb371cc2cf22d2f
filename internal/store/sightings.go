package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

type ownedSighting struct {
	account int64
	ledger.Sighting
}

// noAccount stands for the account of sightings without referId.
const noAccount = 0

// sightingKey is what makes two sightings be about the same tracking.
type sightingKey struct {
	account int64
	tracking.Key
}

// storedSighting is of what is kept of a tracking as much as it takes to replace it.
type storedSighting struct {
	id      int64  // that it has, or would have: 0 if that is not a row's
	status  int64  // in table statuses, 0 if nothing is kept
	carrier string // of its row, as sent
	ledger.Sighting
}

// statusKey is a line of table statuses.
type statusKey struct {
	account                     int64
	phase, status, label, track string
}

func (s *ownedSighting) statusKey() statusKey {
	return statusKey{s.account, string(s.Phase), clean(s.Status), clean(s.StatusLabel), clean(s.StatusTrack)}
}

// recordSightings keeps each sighting that supersedes what is known of its tracking.
func (d *DB) recordSightings(ctx context.Context, t *tx, seen []ownedSighting) error {
	seen, err := t.dropErasedSightings(ctx, indexable(seen))
	if err != nil {
		return err
	}
	known, err := t.knownSightings(ctx, seen)
	if err != nil {
		return err
	}
	kept := superseding(seen, known)
	if len(kept) == 0 {
		return nil
	}
	var lowest, last int64
	if _, err := t.row(ctx, []any{&lowest, &last}, "SELECT (SELECT COALESCE(MIN(id), 0) FROM sightings WHERE id < 0), "+numbered); err != nil {
		return err
	}
	ids, statuses, counts := make([]int64, len(kept)), make([]int64, len(kept)), trackingCounts{}
	for i := range kept {
		s, before := &kept[i], known[sightingKey{kept[i].account, kept[i].Key}]
		if statuses[i], err = t.statusID(ctx, s.statusKey()); err != nil {
			return err
		}
		s.keep(before.Sighting)
		key := countKey{account: s.account}
		switch ids[i] = before.id; {
		case before.id == 0:
			lowest--
			ids[i] = lowest
		case before.id < 0 || before.id > last: // it is counted without a row
			before.carrier = ""
		default:
			if key.run, err = t.runOf(ctx, before.id); err != nil {
				return err
			}
		}
		counts.move(key, before, statuses[i], s)
	}
	if err := d.sql.sightings.exec(ctx, t, len(kept), func(args []any, n int) []any {
		return append(append(args, ids[n], statuses[n]), sightingValues(&kept[n])...)
	}); err != nil {
		return err
	}
	return d.changeCounts(ctx, t, counts)
}

// indexable returns the sightings of trackings that have names which an index can hold,
// with texts that it can hold.
func indexable(seen []ownedSighting) []ownedSighting {
	var all []ownedSighting
	for _, s := range seen {
		if len(s.Key.ReferID) > maxKey || len(s.Key.Number) > maxKey {
			continue
		}
		for _, text := range []*string{&s.Status, &s.StatusLabel, &s.StatusTrack, &s.CarrierCode, &s.RouterID, &s.Error} {
			*text = shorten(*text)
		}
		all = append(all, s)
	}
	return all
}

// superseding returns the sightings that supersede what is known of their trackings,
// one of each.
func superseding(seen []ownedSighting, known map[sightingKey]storedSighting) (kept []ownedSighting) {
	at := map[sightingKey]int{} // in kept
	for _, s := range seen {
		key := sightingKey{s.account, s.Key}
		if i, again := at[key]; again {
			if s.Supersedes(kept[i].Sighting) {
				s.RouterID = cmp.Or(s.RouterID, kept[i].RouterID)
				s.keep(kept[i].Sighting)
				kept[i] = s
			}
			continue
		}
		if before := known[key]; before.status == 0 || s.Supersedes(before.Sighting) {
			at[key] = len(kept)
			kept = append(kept, s)
		}
	}
	return kept
}

// keep keeps what was known before where s says nothing of it: the carrier, and of
// what is delivered the transit time.
func (s *ownedSighting) keep(before ledger.Sighting) {
	s.CarrierCode = cmp.Or(s.CarrierCode, before.CarrierCode)
	if s.Transit == 0 && s.Delivered() {
		s.Transit = before.Transit
	}
}

// statusID returns the number of a status, which is added if it is new.
func (t *tx) statusID(ctx context.Context, k statusKey) (int64, error) {
	if id, ok := t.statuses[k]; ok {
		return id, nil
	}
	args := []any{k.account, k.phase, k.status, k.label, k.track}
	if _, err := t.exec(ctx, `INSERT INTO statuses (account_id, phase, status, status_label, status_track) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`, args...); err != nil {
		return 0, err
	}
	var id int64
	_, err := t.row(ctx, []any{&id}, `SELECT id FROM statuses WHERE account_id = $1 AND phase = $2 AND status = $3 AND status_label = $4 AND status_track = $5`, args...)
	if t.statuses == nil {
		t.statuses = map[statusKey]int64{}
	}
	t.statuses[k] = id
	return id, err
}

// manySightings is how many sightings are read with one statement; of fewer
// than a tenth, each is read with its own.
const manySightings = 200

// knownSightings returns what is kept of the trackings seen, and the ids of rows
// of which nothing is.
func (t *tx) knownSightings(ctx context.Context, seen []ownedSighting) (map[sightingKey]storedSighting, error) {
	known := map[sightingKey]storedSighting{}
	add := func(row scanner) error {
		var key sightingKey
		var s storedSighting
		var asOf, checkpoint, updated, transit int64
		err := row.Scan(&key.account, &key.ReferID, &key.Number, &s.id, &s.carrier, &s.status, (*string)(&s.Phase), (*string)(&s.Source), &asOf, &checkpoint, &updated, &transit, &s.CarrierCode)
		s.AsOf, s.Times, s.Transit = instant(asOf), tracking.Times{Checkpoint: instant(checkpoint), Updated: instant(updated)}, duration(transit)
		known[key] = s
		return err
	}
	size := 1
	if len(seen) >= manySightings/10 {
		size = manySightings
	}
	query := `SELECT v.column1, v.column2, v.column3, COALESCE(s.id, r.id, 0), COALESCE(r.carrier, ''),
		COALESCE(s.status_id, 0), COALESCE(s.phase, ''), COALESCE(s.source, ''), COALESCE(s.as_of, 0), COALESCE(s.checkpoint, 0), COALESCE(s.updated, 0),
		COALESCE(s.transit, 0), COALESCE(s.carrier, '')
		FROM (VALUES (CAST(? AS BIGINT), ?, ?)` + strings.Repeat(", (?, ?, ?)", size-1) + `) v
		LEFT JOIN sightings s ON s.account_id = v.column1 AND s.refer_id = v.column2 AND s.number = v.column3
		LEFT JOIN rows r ON r.id = CASE WHEN s.id IS NULL THEN (SELECT x.id FROM rows x
			WHERE x.account_id = v.column1 AND x.refer_id = v.column2 AND x.number = v.column3 AND x.id <= ` + numbered + `) ELSE s.id END`
	for chunk := range slices.Chunk(seen, size) {
		args := make([]any, 0, 3*len(chunk))
		for _, s := range chunk {
			args = append(args, s.account, s.Key.ReferID, s.Key.Number)
		}
		for len(args) < 3*size { // the last chunk may be shorter
			args = append(args, args[:3]...)
		}
		if err := t.each(ctx, add, query, args...); err != nil {
			return nil, err
		}
	}
	return known, nil
}

func sightingValues(s *ownedSighting) []any {
	asOf := s.AsOf
	if asOf.IsZero() {
		asOf = s.Seen
	}
	return []any{
		s.account, s.Key.ReferID, s.Key.Number, tracking.FoldNumber(s.Key.Number), string(s.Phase), clean(s.Status), clean(s.StatusLabel), clean(s.StatusTrack),
		clean(s.LatestEvent), clean(s.LatestTime), clean(s.CarrierCode), millis(s.Seen), string(s.Source), clean(s.RouterID), millis(asOf), s.Event, s.Shared,
		millis(s.Times.Checkpoint), millis(s.Times.Updated), s.Transit.Milliseconds(), clean(s.Error),
	}
}

// sightingsOf returns a sighting for each tracking that a query finds.
func (t *tx) sightingsOf(ctx context.Context, s ledger.Sighting, query string, args ...any) ([]ownedSighting, error) {
	s.RouterID = "" // it may be another's of that number
	return list(ctx, t.each, func(row scanner) (ownedSighting, error) {
		one := ownedSighting{Sighting: s}
		err := row.Scan(&one.account, &one.Key.ReferID, &one.Key.Number)
		return one, err
	}, query, args...)
}

// selectRowsOfNumber finds the keys of the numbered rows with the folded number $1.
const selectRowsOfNumber = `SELECT r.account_id, r.refer_id, r.number FROM accounts a CROSS JOIN numbers n CROSS JOIN rows r
	WHERE n.account_id = a.id AND n.folded = $1 AND n.folded <> '' AND r.id = n.row_id` + visible
