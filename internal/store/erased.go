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
	"github.com/waybill-cli/waybill/internal/webhook"
)

// erasedNames makes the hashes for table erased. They are keyed by the salt of the account, so that nobody who has
// only a hash can try numbers. Since most stores hold no hash, a transaction checks once whether there is any.
type erasedNames struct {
	salt []byte // nil if nothing was erased
}

func (t *tx) erasedNames(ctx context.Context) *erasedNames {
	if t.erased == nil {
		t.erased = &erasedNames{}
		if value[bool](ctx, t, "SELECT EXISTS (SELECT 1 FROM erased)") {
			t.erased.salt = t.salt(ctx)
		}
	}
	return t.erased
}

func (e *erasedNames) hash(texts ...string) []byte {
	mac := hmac.New(sha256.New, e.salt)
	for _, s := range append([]string{"erased"}, texts...) {
		mac.Write(binary.AppendUvarint(nil, uint64(len(s))))
		mac.Write([]byte(s))
	}
	return mac.Sum(nil)
}

// ofPair returns the hash of a row, which keeps it from being sent again.
func (e *erasedNames) ofPair(k tracking.Key) []byte {
	return e.hash("pair", k.ReferID, tracking.FoldNumber(k.Number))
}

// ofRefer returns the hash of a referId, which keeps answers about it from being stored.
func (e *erasedNames) ofRefer(referID string) []byte { return e.hash("referId", referID) }

// ofNumber returns the hash of a number, which keeps answers and events about it from being stored.
func (e *erasedNames) ofNumber(number string) []byte {
	return e.hash("number", tracking.FoldNumber(number))
}

var (
	selectErased = newKeyStatement[[]byte]('b', "SELECT hash FROM erased WHERE hash", "")
	deleteErased = newKeyStatement[[]byte]('b', "DELETE FROM erased WHERE hash", "")
)

// whichErased returns which of n things were erased: at least one of their hashes is stored.
func (t *tx) whichErased(ctx context.Context, n int, hashesOf func(*erasedNames, int) [][]byte) map[int]bool {
	e := t.erasedNames(ctx)
	if e.salt == nil || n == 0 {
		return nil
	}
	var all [][]byte
	of := map[string][]int{}
	for i := range n {
		for _, hash := range hashesOf(e, i) {
			all = append(all, hash)
			of[string(hash)] = append(of[string(hash)], i)
		}
	}
	erased := map[int]bool{}
	selectErased.each(ctx, t, all, func(s scanner) error {
		hash, err := scanOne[[]byte](s)
		for _, i := range of[string(hash)] {
			erased[i] = true
		}
		return err
	})
	return erased
}

func (t *tx) dropErasedSightings(ctx context.Context, seen []ledger.Sighting) (kept []ledger.Sighting) {
	erased := t.whichErased(ctx, len(seen), func(e *erasedNames, i int) [][]byte {
		if key := seen[i].Key; key.ReferID != "" {
			return [][]byte{e.ofPair(key), e.ofRefer(key.ReferID)}
		}
		return [][]byte{e.ofNumber(seen[i].Key.Number)}
	})
	if len(erased) == 0 {
		return seen
	}
	for i, s := range seen {
		if !erased[i] {
			kept = append(kept, s)
		}
	}
	return kept
}

// dropErasedAnswers removes from packed the answers that mention an erased tracking.
func (t *tx) dropErasedAnswers(ctx context.Context, answers []ledger.RecordedAnswer, packed [][]byte) {
	erased := t.whichErased(ctx, len(answers), func(e *erasedNames, i int) [][]byte {
		hashes := [][]byte{e.ofRefer(answers[i].ReferID)}
		for _, s := range answers[i].Seen {
			hashes = append(hashes, e.ofPair(s.Key), e.ofRefer(s.Key.ReferID))
		}
		return hashes
	})
	for i := range erased {
		packed[i] = nil
	}
}

// classifyErased classifies the erased records of an input: they use up a number and nothing else.
func (c *chunk) classifyErased(ctx context.Context, t *tx) {
	erased := t.whichErased(ctx, len(c.entries), func(e *erasedNames, i int) [][]byte {
		return [][]byte{e.ofPair(c.entries[i].Item.Key())}
	})
	for i := range erased {
		c.classified[i].kind = kindErased
	}
	c.tally.Erased += int64(len(erased))
}

// forgetErased allows data about new rows again, even if another row of their referId or number was erased.
func (c *chunk) forgetErased(ctx context.Context, t *tx, rows []int) {
	e := t.erasedNames(ctx)
	if e.salt == nil {
		return
	}
	var hashes [][]byte
	for _, i := range rows {
		item := &c.entries[i].Item
		hashes = append(hashes, e.ofRefer(item.ReferID), e.ofNumber(item.Number))
	}
	deleteErased.exec(ctx, t, hashes)
}

// dropErased drops body, header, path and query of deliveries that name erased numbers, and the contents of their
// events about these numbers. Other events stay.
func (t *tx) dropErased(ctx context.Context, all []*arrival) {
	type namedEvent struct {
		a *arrival
		e *newEvent
	}
	var named []namedEvent
	for _, a := range all {
		for i := range a.rows {
			if e := &a.rows[i]; e.TrackingNumber != "" {
				named = append(named, namedEvent{a, e})
			}
		}
	}
	erased := t.whichErased(ctx, len(named), func(e *erasedNames, i int) [][]byte {
		return [][]byte{e.ofNumber(named[i].e.TrackingNumber)}
	})
	for n := range erased {
		named[n].a.drop(named[n].e)
	}
}

// drop drops the bytes of the delivery and the contents of one event.
func (a *arrival) drop(e *newEvent) {
	d := &a.delivery
	d.Path, d.RawQuery, d.Anomaly, d.Header, d.Body = "", "", inbox.Erased, nil, nil
	at := webhook.Event{Index: e.Index, Offset: e.Offset, Length: e.Length}
	*e = newEvent{Event: inbox.Event{Event: at, Synthetic: e.Synthetic}}
	e.Mark, e.Anomaly = inbox.Anomaly, inbox.Erased
}

func (t *tx) isErasedRefused(ctx context.Context, d inbox.Delivery) bool {
	if t.erasedNames(ctx).salt == nil {
		return false
	}
	_, rows := inbox.Decode(d)
	rows = slices.DeleteFunc(rows, func(r inbox.Event) bool { return r.TrackingNumber == "" })
	erased := t.whichErased(ctx, len(rows), func(e *erasedNames, i int) [][]byte {
		return [][]byte{e.ofNumber(rows[i].TrackingNumber)}
	})
	return len(erased) > 0
}

// Erased reports which queries were erased, see [ledger.Eraser].
func (d *DB) Erased(ctx context.Context, qs []tracking.Query) ([]bool, error) {
	return readFor(d, func(r *reader) []bool { return r.erased(ctx, qs) })
}

func (r *reader) erased(ctx context.Context, qs []tracking.Query) []bool {
	erased := make([]bool, len(qs))
	var e erasedNames
	if !r.row(ctx, []any{&e.salt}, "SELECT salt FROM account WHERE EXISTS (SELECT 1 FROM erased)") {
		return erased
	}
	for i, q := range qs {
		var hash []byte
		switch {
		case q.Number == "":
			hash = e.ofRefer(q.ReferID)
		case q.ReferID == "":
			hash = e.ofNumber(q.Number)
		default:
			hash = e.ofPair(tracking.Key{ReferID: q.ReferID, Number: q.Number})
		}
		erased[i] = value[bool](ctx, r, "SELECT EXISTS (SELECT 1 FROM erased WHERE hash = $1)", hash)
	}
	return erased
}
