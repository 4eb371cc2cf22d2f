package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// eraseAtOnce is how many shipments one transaction erases; other writers wait for it.
const eraseAtOnce = 200

// shipment is a row, or a tracking without a row.
type shipment struct {
	tracking.Key

	row      int64 // 0 if none
	sighting int64 // 0 if none
}

// erasure holds the shipments to erase, and the names that no other shipment has.
type erasure struct {
	*reader
	all    []shipment
	refs   map[string]bool // referIds
	names  names           // searched for in texts and bytes
	keys   map[string]bool // of the numbers, in the form that events have
	hashes [][]byte
	done   ledger.Erasure
}

// Erase removes shipments, see [ledger.Eraser]. It writes their hashes first, so that nothing more is stored about
// them, and removes rows and trackings last, since everything else is found through them.
func (d *DB) Erase(ctx context.Context, qs []tracking.Query, o ledger.EraseOptions) (done ledger.Erasure, err error) {
	// A run being staged may contain shipments to erase.
	_, unlock, err := d.lockStaging(ctx)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, d.fail("lock", unlock())) }()
	if _, err := d.indexNumbers(ctx, 0); err != nil {
		return done, err
	}
	e := d.rememberErased(ctx, qs)
	if e.err != nil {
		return done, e.err
	}
	e.eraseDeliveries(ctx)
	e.eraseAnswers(ctx)
	e.eraseTexts(ctx)
	e.eraseShipments(ctx)
	if o.Forget {
		e.forget(ctx)
	}
	return e.done, e.err
}

// rememberErased writes the hashes of everything that qs name. Others may store a name until its hash is written, so
// it searches again until all hashes of what it finds are there.
func (d *DB) rememberErased(ctx context.Context, qs []tracking.Query) *erasure {
	for {
		e := d.findErasure(ctx, qs)
		if added := e.remember(ctx); added == 0 || e.err != nil {
			return e
		}
	}
}

func (d *DB) findErasure(ctx context.Context, qs []tracking.Query) *erasure {
	e := &erasure{reader: d.reader(), refs: map[string]bool{}, keys: map[string]bool{}}
	e.names = names{numbers: map[string]bool{}, refs: map[string]bool{}}
	for i, q := range qs {
		if !e.find(ctx, q) {
			e.done.Unknown = append(e.done.Unknown, i)
		}
	}
	e.leaveShared(ctx)
	e.findNumbersAlone(ctx)
	e.eachShipment(ctx, func(ctx context.Context, g *rebatcher, s shipment, _ *ledger.Erasure) {
		g.t.idleRow(ctx, s) // fails if a living process is sending the row, or is about to
	})
	return e
}

// find adds what the store has for a query. It reports whether it has, or once had, anything.
func (e *erasure) find(ctx context.Context, q tracking.Query) bool {
	folded := tracking.FoldNumber(q.Number)
	rows, sightings := "rows x WHERE x.refer_id = $1", "sightings x WHERE x.refer_id = $1"
	name := q.ReferID
	if q.ReferID == "" {
		rows = "numbers n JOIN rows x ON x.id = n.row_id WHERE n.folded = $1 AND n.folded <> ''"
		sightings = "sightings x WHERE x.refer_id <> '' AND x.folded = $1 AND x.folded <> ''"
		name = folded
	}
	found := list(ctx, e, scanInto(func(s *shipment) []any {
		return []any{&s.row, &s.sighting, &s.ReferID, &s.Number}
	}), "SELECT x.id, 0, x.refer_id, x.number FROM "+rows+" UNION ALL SELECT 0, x.id, x.refer_id, x.number FROM "+
		sightings+" AND NOT EXISTS (SELECT 1 FROM rows r WHERE r.id = x.id)", name)
	found = slices.DeleteFunc(found, func(s shipment) bool {
		return q.ReferID != "" && q.Number != "" && tracking.FoldNumber(s.Number) != folded
	})
	if len(found) == 0 && !e.wasKnown(ctx, q) {
		return false
	}
	if q.ReferID != "" {
		e.refs[q.ReferID] = true
	}
	e.names.addNumber(q.Number)
	for _, s := range found {
		e.names.addNumber(s.Number)
		if s.ReferID != "" {
			e.refs[s.ReferID] = true
		}
	}
	e.all = append(e.all, found...)
	return true
}

// wasKnown reports whether events contain the number, or the query was erased before.
func (e *erasure) wasKnown(ctx context.Context, q tracking.Query) bool {
	if q.ReferID == "" && value[bool](ctx, e, `SELECT EXISTS (SELECT 1 FROM events WHERE folded = $1)
		OR EXISTS (SELECT 1 FROM sightings WHERE refer_id = '' AND folded = $2)`,
		foldKey(q.Number), tracking.FoldNumber(q.Number)) {
		return true
	}
	return e.erased(ctx, []tracking.Query{q})[0]
}

// leaveShared leaves out the names that other shipments share: their data stays until the last of these is erased.
func (e *erasure) leaveShared(ctx context.Context) {
	own := map[int64]bool{}
	for _, s := range e.all {
		own[cmp.Or(s.row, s.sighting)] = true
	}
	isShared := func(query string, args ...any) bool {
		ids := list(ctx, e, scanOne[int64], query, args...)
		return slices.ContainsFunc(ids, func(id int64) bool { return !own[id] })
	}
	for number := range e.names.numbers {
		if isShared(`SELECT n.row_id FROM numbers n WHERE n.folded = $1 AND n.folded <> ''
			UNION ALL SELECT s.id FROM sightings s WHERE s.refer_id <> '' AND s.folded = $1`, number) {
			delete(e.names.numbers, number)
			e.done.Shared++
		}
	}
	for ref := range e.refs {
		if isShared(`SELECT id FROM rows WHERE refer_id = $1
			UNION ALL SELECT id FROM sightings WHERE refer_id = $1`, ref) {
			delete(e.refs, ref)
		} else {
			e.names.refs[ref] = true
		}
	}
}

func (e *erasure) findNumbersAlone(ctx context.Context) {
	for number := range e.names.numbers {
		e.keys[foldKey(number)] = true
		some := list(ctx, e, scanInto(func(s *shipment) []any { return []any{&s.sighting} }),
			"SELECT id FROM sightings WHERE refer_id = '' AND folded = $1", number)
		e.all = append(e.all, some...)
	}
}

// eachShipment calls do for each shipment, several in one transaction, at whose end it recounts the batches that lost
// rows.
func (e *erasure) eachShipment(
	ctx context.Context, do func(ctx context.Context, g *rebatcher, s shipment, done *ledger.Erasure),
) {
	for part := range slices.Chunk(e.all, eraseAtOnce) {
		e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) {
			g := t.newRebatcher(0, 0)
			for _, s := range part {
				do(ctx, g, s, done)
			}
			g.finish(ctx)
		})
	}
}

// idleRow returns the state and batch of a row, zero values if there is none. It fails if a living process is sending
// the row or is about to.
func (t *tx) idleRow(ctx context.Context, s shipment) (state ledger.State, b batch) {
	var sender, owner string
	var run int64
	t.row(ctx, []any{&state, &sender, &run, &owner, &b.id, &b.first, &b.last, &b.rows}, `SELECT
		COALESCE(r.state, b.state), COALESCE(b.owner, ''), COALESCE(n.id, 0), COALESCE(n.owner, ''),
		b.id, b.first_row, b.last_row, b.rows
		FROM rows r JOIN batches b ON b.id = r.batch_id LEFT JOIN runs n ON n.id = b.run_id WHERE r.id = $1`, s.row)
	if state != ledger.Sending && state != ledger.Pending {
		return state, b
	}
	me := t.owner()
	if state == ledger.Sending {
		owner = sender
	}
	if owner == "" || owner == me && state == ledger.Pending {
		return state, b
	}
	if t.isAlive(ctx, owner) {
		t.fail(fmt.Errorf("row %d of run %d is %s: %w", s.row, run, state, ledger.ErrBeingSent))
	}
	return state, b
}

// remember writes the hashes of the shipments and names. It returns how many were new.
func (e *erasure) remember(ctx context.Context) (added int64) {
	if len(e.all)+len(e.names.numbers)+len(e.refs) == 0 {
		return 0
	}
	e.run(ctx, func(ctx context.Context, t *tx, _ *ledger.Erasure) {
		added = 0
		of := erasedNames{t.salt(ctx)}
		t.erased, e.hashes = nil, nil
		for _, s := range e.all {
			if s.ReferID != "" {
				e.hashes = append(e.hashes, of.ofPair(s.Key))
			}
		}
		for ref := range e.refs {
			e.hashes = append(e.hashes, of.ofRefer(ref))
		}
		for number := range e.names.numbers {
			e.hashes = append(e.hashes, of.ofNumber(number))
		}
		const insert = "INSERT INTO erased (hash, at) VALUES ($1, $2) ON CONFLICT DO NOTHING"
		for _, hash := range e.hashes {
			added += t.exec(ctx, insert, hash, millis(time.Now()))
		}
	})
	return added
}

func (e *erasure) forget(ctx context.Context) {
	e.run(ctx, func(ctx context.Context, t *tx, _ *ledger.Erasure) { deleteErased.exec(ctx, t, e.hashes) })
}

func (e *erasure) eraseShipments(ctx context.Context) {
	e.eachShipment(ctx, func(ctx context.Context, g *rebatcher, s shipment, done *ledger.Erasure) {
		if s.row > 0 {
			g.t.eraseRow(ctx, g, s, done)
		} else {
			g.t.exec(ctx, insertCounts+" SELECT CASE refer_id WHEN '' THEN -1 ELSE 0 END, status_id, carrier, "+
				transitDays+", -1 FROM sightings s WHERE s.id = $1"+onKnownCount, s.sighting)
			done.Trackings += g.t.exec(ctx, "DELETE FROM sightings WHERE id = $1", s.sighting)
		}
	})
}

// eraseRow removes a row, its tracking, and its mentions. g.finish recounts its batch.
func (t *tx) eraseRow(ctx context.Context, g *rebatcher, s shipment, done *ledger.Erasure) {
	state, b := t.idleRow(ctx, s)
	if b.id == 0 {
		return
	}
	done.Rows++
	switch state {
	case ledger.Pending:
		done.Pending++
	case ledger.Unknown, ledger.Sending:
		done.UnknownRows++
	case ledger.Accepted, ledger.Rejected:
	}
	g.addSource(b)
	done.Responses += t.exec(ctx, removeBatchAnswer, b.id)
	t.eraseMentions(ctx, s.row)
	t.exec(ctx, insertCounts+` SELECT
		n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier), `+transitDays+`, -1
		FROM runs n CROSS JOIN rows r LEFT JOIN sightings s ON s.id = r.id
		WHERE r.id BETWEEN n.first_row AND n.last_row AND r.id = $1`+onKnownCount, s.row)
	done.Trackings += t.exec(ctx, "DELETE FROM sightings WHERE id = $1", s.row)
	t.execAll(ctx, []string{
		`UPDATE runs SET new_rows = new_rows - 1, erased = erased + 1
			WHERE first_row <= $1 AND last_row >= $1 AND state <> 'staged'`,
		"DELETE FROM absences WHERE row_id = $1",
		"DELETE FROM numbers WHERE (folded, row_id) IN (SELECT fold_number(number), id FROM rows WHERE id = $1)",
		"DELETE FROM rows WHERE id = $1",
	}, s.row)
}

// eraseMentions removes the records of later inputs that name a row again.
func (t *tx) eraseMentions(ctx context.Context, row int64) {
	const mentions = "FROM run_known_rows k WHERE k.run_id = runs.id AND k.row_id = $1)"
	t.execAll(ctx, []string{
		"UPDATE runs SET repeats = repeats - (SELECT COUNT(*) " + mentions +
			", erased = erased + (SELECT COUNT(*) " + mentions + " WHERE EXISTS (SELECT 1 " + mentions,
		"DELETE FROM run_known_rows WHERE row_id = $1",
	}, -row)
	type mention struct {
		run int64
		knownRange
	}
	all := list(ctx, t, scanInto(func(k *mention) []any {
		return []any{&k.run, &k.pos, &k.row, &k.rows, &k.file, &k.line, &k.step, &k.carrier}
	}), `SELECT run_id, pos, row_id, rows, file, line, step, carrier FROM run_known_rows
		WHERE row_id <= $1 AND row_id + rows > $1`, row)
	for _, k := range all {
		before := row - k.row
		const shorten = "UPDATE run_known_rows SET rows = $1 WHERE run_id = $2 AND pos = $3"
		t.exec(ctx, shorten, before, k.run, k.pos)
		after := k.knownRange
		after.pos, after.row, after.rows, after.line = k.pos+before+1, row+1, k.rows-before-1, k.line+(before+1)*k.step
		if after.rows > 0 {
			t.addKnownRanges(ctx, k.run, []knownRange{after})
		}
		t.execAll(ctx, []string{
			"DELETE FROM run_known_rows WHERE run_id = $1 AND rows = 0 AND row_id > 0",
			"UPDATE runs SET known_rows = known_rows - 1, erased = erased + 1 WHERE id = $1",
		}, k.run)
	}
}
