package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// What a hash in table erased stands for. Each is keyed by the salt of the account, so
// that nobody who has only the hash can try numbers.
const (
	erasedPair   = "pair"    // a row: it is not sent again
	erasedRefer  = "referId" // what is said of it is not kept
	erasedNumber = "number"  // likewise, by events too
)

func erasedHash(salt []byte, kind string, names ...string) []byte {
	mac := hmac.New(sha256.New, salt)
	for _, s := range append([]string{"erased", kind}, names...) {
		mac.Write(binary.AppendUvarint(nil, uint64(len(s))))
		mac.Write([]byte(s))
	}
	return mac.Sum(nil)
}

// erasedNames asks whether what is about to be stored was erased. Most stores hold
// nothing that was: then it asks no more than that, once a transaction.
type erasedNames struct {
	salt   []byte          // nil if nothing was erased
	hashes map[string]bool // asked for, and whether it was erased
}

func (t *tx) erasedNames(ctx context.Context) (*erasedNames, error) {
	if t.erased != nil {
		return t.erased, nil
	}
	var some bool
	if _, err := t.row(ctx, []any{&some}, "SELECT EXISTS (SELECT 1 FROM erased)"); err != nil {
		return nil, err
	}
	e := &erasedNames{hashes: map[string]bool{}}
	if some {
		var err error
		if e.salt, err = t.salt(ctx); err != nil {
			return nil, err
		}
	}
	t.erased = e
	return e, nil
}

func (e *erasedNames) any() bool { return e.salt != nil }

func (e *erasedNames) ofPair(k tracking.Key) []byte {
	return erasedHash(e.salt, erasedPair, k.ReferID, tracking.FoldNumber(k.Number))
}

func (e *erasedNames) ofRefer(referID string) []byte {
	return erasedHash(e.salt, erasedRefer, referID)
}

func (e *erasedNames) ofNumber(number string) []byte {
	return erasedHash(e.salt, erasedNumber, tracking.FoldNumber(number))
}

// findErased loads the hashes that has checks.
func (t *tx) findErased(ctx context.Context, e *erasedNames, hashes [][]byte) error {
	clear(e.hashes)
	return t.w.sql.erased.each(ctx, t, hashes, func(s scanner) error {
		var hash []byte
		err := s.Scan(&hash)
		e.hashes[string(hash)] = true
		return err
	})
}

func (e *erasedNames) has(hashes ...[]byte) bool {
	return slices.ContainsFunc(hashes, func(h []byte) bool { return e.hashes[string(h)] })
}

func (t *tx) dropErasedSightings(ctx context.Context, seen []ledger.Sighting) ([]ledger.Sighting, error) {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() || len(seen) == 0 {
		return seen, err
	}
	hashesOf := func(s ledger.Sighting) [][]byte {
		if s.Key.ReferID == "" {
			return [][]byte{e.ofNumber(s.Key.Number)}
		}
		return [][]byte{e.ofPair(s.Key), e.ofRefer(s.Key.ReferID)}
	}
	var all [][]byte
	for _, s := range seen {
		all = append(all, hashesOf(s)...)
	}
	if err := t.findErased(ctx, e, all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(seen), func(s ledger.Sighting) bool { return e.has(hashesOf(s)...) }), nil
}

// dropErasedAnswers removes from packed the answers that say something of an erased tracking.
func (t *tx) dropErasedAnswers(ctx context.Context, answers []ledger.RecordedAnswer, packed [][]byte) error {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() {
		return err
	}
	hashesOf := func(a ledger.RecordedAnswer) [][]byte {
		hashes := [][]byte{e.ofRefer(a.ReferID)}
		for _, s := range a.Seen {
			hashes = append(hashes, e.ofPair(s.Key), e.ofRefer(s.Key.ReferID))
		}
		return hashes
	}
	var all [][]byte
	for _, a := range answers {
		all = append(all, hashesOf(a)...)
	}
	if err := t.findErased(ctx, e, all); err != nil {
		return err
	}
	for i, a := range answers {
		if e.has(hashesOf(a)...) {
			packed[i] = nil
		}
	}
	return nil
}

// classifyErased classifies the erased records of an input: they take a number and nothing else.
func (c *chunk) classifyErased(ctx context.Context, t *tx) error {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() {
		return err
	}
	hashes := make([][]byte, len(c.entries))
	for i := range c.entries {
		hashes[i] = e.ofPair(c.entries[i].Item.Key())
	}
	if err := t.findErased(ctx, e, hashes); err != nil {
		return err
	}
	for i, hash := range hashes {
		if e.has(hash) {
			c.classified[i].kind = kindErased
			c.tally.Erased++
		}
	}
	return nil
}

// forgetErased lets what is said of new rows be kept, also where another row of their
// referId or number was erased.
func (c *chunk) forgetErased(ctx context.Context, t *tx, rows []int) error {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() {
		return err
	}
	var hashes [][]byte
	for _, i := range rows {
		item := &c.entries[i].Item
		hashes = append(hashes, e.ofRefer(item.ReferID), e.ofNumber(item.Number))
	}
	if err := t.findErased(ctx, e, hashes); err != nil {
		return err
	}
	for hash := range e.hashes {
		if _, err := t.exec(ctx, "DELETE FROM erased WHERE hash = $1", []byte(hash)); err != nil {
			return err
		}
	}
	return nil
}

// dropErased drops the bytes of deliveries that name erased numbers, their path and query, and
// what their events about these say: other events stay.
func (t *tx) dropErased(ctx context.Context, all []*arrival) error {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() {
		return err
	}
	var hashes [][]byte
	for _, a := range all {
		for _, r := range a.rows {
			if r.TrackingNumber != "" {
				hashes = append(hashes, e.ofNumber(r.TrackingNumber))
			}
		}
	}
	if err := t.findErased(ctx, e, hashes); err != nil {
		return err
	}
	for _, a := range all {
		a.drop(func(r inbox.Event) bool { return r.TrackingNumber != "" && e.has(e.ofNumber(r.TrackingNumber)) })
	}
	return nil
}

// drop drops the bytes, and what the rows say that are to be erased, if there is one.
func (a *arrival) drop(erase func(inbox.Event) bool) {
	for i, r := range a.rows {
		if !erase(r) {
			continue
		}
		if !a.dropped {
			a.rows, a.sums, a.dropped = slices.Clone(a.rows), slices.Clone(a.sums), true
			a.delivery.Path, a.delivery.RawQuery, a.delivery.Anomaly = "", "", inbox.Erased
		}
		a.sums[i] = nil
		a.rows[i] = inbox.Event{ReceivedAt: r.ReceivedAt, Index: r.Index, Offset: r.Offset, Length: r.Length, Mark: inbox.Anomaly, Anomaly: inbox.Erased, Synthetic: r.Synthetic}
	}
}

func (t *tx) isErasedRefused(ctx context.Context, d inbox.Delivery) (bool, error) {
	e, err := t.erasedNames(ctx)
	if err != nil || !e.any() {
		return false, err
	}
	decoded, rows := inbox.Decode(d)
	a := &arrival{delivery: decoded, rows: rows, sums: make([][]byte, len(rows))}
	err = t.dropErased(ctx, []*arrival{a})
	return a.dropped, err
}

// Erased says which queries were erased, see [ledger.Eraser].
func (d *DB) Erased(ctx context.Context, qs []tracking.Query) ([]bool, error) {
	erased := make([]bool, len(qs))
	var salt []byte
	found, err := d.row(ctx, []any{&salt}, "SELECT salt FROM account WHERE EXISTS (SELECT 1 FROM erased)")
	for i, q := range qs {
		if !found || err != nil {
			break
		}
		var hash []byte
		switch {
		case q.Number == "":
			hash = erasedHash(salt, erasedRefer, q.ReferID)
		case q.ReferID == "":
			hash = erasedHash(salt, erasedNumber, tracking.FoldNumber(q.Number))
		default:
			hash = erasedHash(salt, erasedPair, q.ReferID, tracking.FoldNumber(q.Number))
		}
		_, err = d.row(ctx, []any{&erased[i]}, "SELECT EXISTS (SELECT 1 FROM erased WHERE hash = $1)", hash)
	}
	return erased, err
}
