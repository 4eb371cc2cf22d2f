package store

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Record records answers, see [ledger.Trackings].
func (d *DB) Record(ctx context.Context, account string, answers []ledger.RecordedAnswer) error {
	var packed [][]byte
	for _, a := range answers {
		if err := checkSeen(account, a.Seen); err != nil {
			return err
		}
		if err := checkText("referId", a.ReferID); err != nil {
			return err
		}
		raw, err := d.pack.pack(a.Raw)
		if err != nil {
			return err
		}
		packed = append(packed, raw)
	}
	if len(answers) == 0 {
		return nil
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		id, err := t.accountID(ctx, account)
		if err != nil {
			return err
		}
		var all []ownedSighting
		for _, a := range answers {
			for _, s := range a.Seen {
				all = append(all, ownedSighting{sightingAccount(id, s.Key), s})
			}
		}
		if err := d.recordSightings(ctx, t, all); err != nil {
			return err
		}
		return d.keepAnswers(ctx, t, id, answers, packed)
	})
}

// checkSeen returns an error that matches [ledger.ErrText] if a name of what was seen
// could not be kept.
func checkSeen(account string, seen []ledger.Sighting) error {
	if err := checkText("account", account); err != nil {
		return err
	}
	for _, s := range seen {
		if err := checkText("referId", s.Key.ReferID, "trackingNumber", s.Key.Number); err != nil {
			return err
		}
	}
	return nil
}

// ownedSighting is a sighting and its account.
type ownedSighting struct {
	account int64
	ledger.Sighting
}

// noAccount stands for the account of sightings without referId.
const noAccount = 0

// sightingAccount is the account that a sighting belongs to which account made.
func sightingAccount(account int64, key tracking.Key) int64 {
	if key.ReferID == "" {
		return noAccount
	}
	return account
}

// sightingKey is what makes two sightings be about the same tracking.
type sightingKey struct {
	account int64
	tracking.Key
}

// recordSightings keeps each sighting that supersedes what is known of its tracking.
func (d *DB) recordSightings(ctx context.Context, t *tx, seen []ownedSighting) error {
	known, err := t.knownSightings(ctx, seen)
	if err != nil {
		return err
	}
	var kept []ownedSighting
	at := map[sightingKey]int{} // in kept
	for _, s := range seen {
		key := sightingKey{s.account, s.Key}
		if i, again := at[key]; again {
			if s.Supersedes(kept[i].Sighting) {
				s.RouterID = cmp.Or(s.RouterID, kept[i].RouterID)
				kept[i] = s
			}
			continue
		}
		if before, ok := known[key]; !ok || s.Supersedes(before) {
			at[key] = len(kept)
			kept = append(kept, s)
		}
	}
	_, err = d.sql.sightings.exec(ctx, t, len(kept), func(args []any, n int) []any {
		return append(args, sightingValues(&kept[n])...)
	})
	return err
}

// manySightings is how many sightings are read with one statement; of fewer
// than a tenth, each is read with its own.
const manySightings = 200

// knownSightings returns of what is known of the trackings seen as much as
// [ledger.Sighting.Supersedes] compares.
func (t *tx) knownSightings(ctx context.Context, seen []ownedSighting) (map[sightingKey]ledger.Sighting, error) {
	known := map[sightingKey]ledger.Sighting{}
	add := func(row scanner) error {
		var key sightingKey
		var s ledger.Sighting
		var asOf, checkpoint, updated int64
		err := row.Scan(&key.account, &key.ReferID, &key.Number, (*string)(&s.Phase), (*string)(&s.Source), &asOf, &checkpoint, &updated)
		s.AsOf, s.Times = instant(asOf), tracking.Times{Checkpoint: instant(checkpoint), Updated: instant(updated)}
		known[key] = s
		return err
	}
	size := 1
	if len(seen) >= manySightings/10 {
		size = manySightings
	}
	query := `SELECT s.account_id, s.refer_id, s.number, s.phase, s.source, s.as_of, s.checkpoint, s.updated
		FROM (VALUES (?, ?, ?)` + strings.Repeat(", (?, ?, ?)", size-1) + `) v
		JOIN sightings s ON s.account_id = v.column1 AND s.refer_id = v.column2 AND s.number = v.column3`
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

// sightingValues are the values of a row of sightings.
func sightingValues(s *ownedSighting) []any {
	asOf := s.AsOf
	if asOf.IsZero() {
		asOf = s.Seen
	}
	return []any{
		s.account, s.Key.ReferID, s.Key.Number, tracking.FoldNumber(s.Key.Number), string(s.Phase), clean(s.Status), clean(s.StatusLabel), clean(s.StatusTrack),
		clean(s.LatestEvent), clean(s.LatestTime), clean(s.CarrierCode), millis(s.Seen), string(s.Source), clean(s.RouterID), millis(asOf), s.Event, s.Shared,
		millis(s.Times.Checkpoint), millis(s.Times.Updated),
	}
}

// keepAnswers keeps each answer and when the service was asked, unless a later
// one is there.
func (d *DB) keepAnswers(ctx context.Context, t *tx, account int64, answers []ledger.RecordedAnswer, packed [][]byte) error {
	type answer struct {
		ref  string
		n    int // in answers
		seen int64
	}
	var all []answer
	for n, a := range answers {
		switch {
		case packed[n] == nil:
		case a.ReferID != "":
			all = append(all, answer{a.ReferID, n, millis(a.Asked)})
		default:
			at := millis(a.Asked)
			for _, s := range a.Seen {
				at = max(at, millis(s.Seen))
				all = append(all, answer{s.Key.ReferID, n, at})
			}
		}
	}
	_, err := d.sql.answers.exec(ctx, t, len(all), func(args []any, i int) []any {
		n := all[i].n
		asked, digest := millis(answers[n].Asked), append([]byte{}, answers[n].Digest...)
		return append(args, account, all[i].ref, all[i].seen, all[i].seen, asked, digest, packed[n])
	})
	return err
}

// What a status consists of: a row with its batch and, where there are any,
// its sighting and that of its number alone; or a sighting alone.
const (
	rowColumns = `SELECT r.id, r.refer_id, r.number, r.carrier, COALESCE(r.state, b.state), ` + reasonOf + `,
		(SELECT CASE n.state WHEN 'pruned' THEN 0 ELSE n.id END FROM runs n WHERE n.first_row <= r.id ORDER BY n.first_row DESC, n.id DESC LIMIT 1), ` +
		`COALESCE((SELECT a.asked FROM answers a WHERE a.account_id = r.account_id AND a.refer_id = r.refer_id), 0), ` + unverifiedBegin + folded + unverifiedEnd +
		"COALESCE(r.state, b.state) = 'rejected' AND EXISTS (SELECT 1 FROM dismissals d WHERE d.row_id = r.id), " +
		sightingColumns + `, o.seen, o.as_of, o.checkpoint, o.updated, o.event, o.shared, o.phase, o.status, o.status_label, o.status_track,
		o.latest_event, o.latest_time, o.carrier, o.source, o.router_id `
	sightingColumns = `s.seen, s.as_of, s.checkpoint, s.updated, s.event, s.shared, s.phase, s.status, s.status_label, s.status_track,
		s.latest_event, s.latest_time, s.carrier, s.source, s.router_id`
	noSighting = "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL "
	rowJoins   = ` JOIN batches b ON b.id = r.batch_id
		LEFT JOIN sightings s ON s.account_id = r.account_id AND s.refer_id = r.refer_id AND s.number = r.number
		LEFT JOIN sightings o ON o.id = (SELECT x.id FROM sightings x WHERE x.account_id = 0 AND x.folded = ` + folded + ` AND x.folded <> ''
			ORDER BY x.phase = 'processed' DESC, x.as_of DESC, x.id LIMIT 1) `
	rowTables = "FROM rows r" + rowJoins
	visible   = " AND r.id <= (SELECT value FROM counters WHERE name = 'row') "
	// The folded number of row r.
	folded = "COALESCE(s.folded, fold_number(r.number))"
	// The latest event about the folded number between these that did not verify.
	unverifiedBegin = "COALESCE((SELECT e.seq FROM events e WHERE e.folded = "
	unverifiedEnd   = " AND e.verified <> 'yes' AND e.mark = '' ORDER BY e.seq DESC LIMIT 1), 0), "
)

// unheldColumns are those of a sighting that is no row's.
const unheldColumns = `SELECT s.id, s.refer_id, s.number, s.carrier, '', '', 0,
	COALESCE((SELECT a.asked FROM answers a WHERE a.account_id = s.account_id AND a.refer_id = s.refer_id), 0), ` +
	unverifiedBegin + "s.folded" + unverifiedEnd + "0, " + sightingColumns + ", " + noSighting

// unheld holds for a sighting of the account that is no row's, and for one of a
// number that the account does not hold: neither as a row, nor as what was learnt
// of the number, or its routerId, since.
func unheld(account string) string {
	return `NOT EXISTS (SELECT 1 FROM rows r WHERE r.account_id = s.account_id AND r.refer_id = s.refer_id AND r.number = s.number` + visible + `) AND
		(s.refer_id <> '' OR
		NOT EXISTS (SELECT 1 FROM numbers n WHERE n.account_id = ` + account + ` AND n.folded = s.folded AND n.folded <> '') AND
		NOT EXISTS (SELECT 1 FROM sightings o WHERE o.account_id = ` + account + ` AND o.folded = s.folded AND o.refer_id <> '') AND
		NOT EXISTS (SELECT 1 FROM sightings o WHERE o.router_id = s.router_id AND o.router_id <> '' AND o.account_id = ` + account + ` AND o.refer_id <> '')) `
}

// accountOf is the number of the account whose name is that parameter.
func accountOf(param string) string { return "(SELECT id FROM accounts WHERE name = " + param + ")" }

// statusPage returns what a query finds, and the id of the last.
func (d *DB) statusPage(ctx context.Context, query string, args ...any) (last int64, page []ledger.TrackingStatus, err error) {
	columns := newStatusScanner()
	err = d.each(ctx, func(s scanner) error {
		id, st, err := columns.scan(s)
		last = id
		page = append(page, st)
		return err
	}, query, args...)
	return last, page, err
}

// Statuses yields what is known of trackings, see [ledger.Trackings].
func (d *DB) Statuses(ctx context.Context, account string, f ledger.Filter) iter.Seq2[ledger.TrackingStatus, error] {
	return func(yield func(ledger.TrackingStatus, error) bool) {
		left := f.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		lists, err := d.statusLists(ctx, account, f.Run)
		for _, l := range lists {
			for more := true; more && err == nil; {
				var page []ledger.TrackingStatus
				if page, err = l.next(ctx, d); err != nil {
					break
				}
				more = len(page) == pageRows
				if left = yieldPage(page, f, left, yield); left < 0 {
					return
				}
			}
		}
		if err != nil {
			yield(ledger.TrackingStatus{}, err)
		}
	}
}

// yieldPage yields what matches of a page, up to left of them, and returns how
// many more may follow: -1 for none, or if the caller stopped.
func yieldPage(page []ledger.TrackingStatus, f ledger.Filter, left int, yield func(ledger.TrackingStatus, error) bool) int {
	for _, st := range page {
		if !f.Matches(st) {
			continue
		}
		if left == 0 || !yield(st, nil) {
			return -1
		}
		left--
	}
	return left
}

// statusList is a list of statuses that is read page by page.
type statusList struct {
	query string // $1 is the id after which the page begins, $2 how long it is
	args  []any  // the further parameters
	after int64
}

func (l *statusList) next(ctx context.Context, d *DB) ([]ledger.TrackingStatus, error) {
	last, page, err := d.statusPage(ctx, l.query, append([]any{l.after, pageRows}, l.args...)...)
	l.after = last
	return page, err
}

// statusLists returns the lists that together hold all statuses of the account, or
// only those of a run's input.
func (d *DB) statusLists(ctx context.Context, account string, run int64) ([]*statusList, error) {
	if run == 0 {
		return []*statusList{
			{query: rowColumns + rowTables + "WHERE r.id > $1" + visible + "AND +r.account_id = " + accountOf("$3") + " ORDER BY r.id LIMIT $2", args: []any{account}},
			{query: unheldColumns + "FROM sightings s WHERE +s.account_id IN (0, " + accountOf("$3") + ") AND " + unheld(accountOf("$3")) + "AND s.id > $1 ORDER BY s.id LIMIT $2", args: []any{account}},
		}, d.indexForUnowned(ctx)
	}
	const of = "AND (SELECT account_id FROM runs WHERE id = $3) = "
	return []*statusList{
		{query: rowColumns + "FROM run_known_rows k JOIN rows r ON r.id BETWEEN CASE WHEN k.row_id <= $1 THEN $1 + 1 ELSE k.row_id END AND k.row_id + k.rows - 1" + rowJoins +
			"WHERE k.run_id = $3 AND k.row_id >= COALESCE((SELECT MAX(row_id) FROM run_known_rows WHERE run_id = $3 AND row_id <= $1), 0) " +
			of + accountOf("$4") + " ORDER BY k.row_id, r.id LIMIT $2", args: []any{run, account}},
		{query: rowColumns + rowTables + `WHERE r.id > $1 AND r.id BETWEEN (SELECT first_row FROM runs WHERE id = $3) AND (SELECT last_row FROM runs WHERE id = $3) ` +
			of + accountOf("$4") + " ORDER BY r.id LIMIT $2", args: []any{run, account}},
	}, d.requireRun(ctx, run)
}
