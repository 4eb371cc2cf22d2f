package store

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// addLetter puts a delivery into an outbox, unless it waits there already. One
// that was given up begins anew.
func (t *tx) addLetter(ctx context.Context, sink int64, p passage, now int64) error {
	if _, err := t.exec(ctx, "DELETE FROM outbox WHERE sink = $1 AND delivery = $2 AND dead <> 0", sink, p.delivery); err != nil {
		return err
	}
	var blocked int64
	for _, n := range p.numbers {
		var held int64
		if _, err := t.row(ctx, []any{&held}, "SELECT COUNT(*) FROM (SELECT 1 FROM outbox_numbers WHERE sink = $1 AND folded = $2 LIMIT 1) AS any", sink, n); err != nil {
			return err
		}
		blocked += held
	}
	var letter int64
	added, err := t.row(ctx, []any{&letter}, `INSERT INTO outbox (sink, delivery, added, blocked, owner, due, attempts, failures, first_fail, dead, status, problem, reply)
		VALUES ($1, $2, $3, $4, '', $3, 0, 0, 0, 0, 0, '', '') ON CONFLICT DO NOTHING RETURNING seq`, sink, p.delivery, now, blocked)
	if err != nil || !added {
		return err
	}
	for _, n := range p.numbers {
		if _, err := t.exec(ctx, "INSERT INTO outbox_numbers (sink, folded, letter) VALUES ($1, $2, $3)", sink, n, letter); err != nil {
			return err
		}
	}
	return nil
}

const (
	selectLetter = "SELECT seq, sink, delivery, added, attempts, failures, first_fail, dead, status, problem, reply FROM outbox "
	whereReady   = "WHERE sink = $1 AND blocked = 0 AND owner = '' AND dead = 0 "
)

func scanLetter(s scanner) (inbox.Letter, error) {
	var l inbox.Letter
	var added, firstFail, dead int64
	err := s.Scan(&l.ID, &l.Sink, &l.Delivery, &added, &l.Attempt, &l.Failures, &firstFail, &dead, &l.Status, &l.Problem, &l.Reply)
	l.Added, l.FirstFail, l.Died = instant(added), instant(firstFail), instant(dead)
	return l, err
}

// ClaimLetters returns letters that are due, see [inbox.Outbox].
func (d *DB) ClaimLetters(ctx context.Context, sink int64, n int, now time.Time) ([]inbox.Letter, time.Time, error) {
	me, err := d.owner.acquire()
	if err != nil {
		return nil, time.Time{}, d.fail("lock", err)
	}
	var letters []inbox.Letter
	var next int64
	err = d.run(ctx, func(ctx context.Context, t *tx) error {
		err := d.freeLetters(ctx, t, sink)
		if err != nil {
			return err
		}
		if letters, err = t.dueLetters(ctx, sink, math.MinInt64, millis(now), n); err == nil && len(letters) == 0 {
			letters, err = t.dueLetters(ctx, sink, millis(now.Add(inbox.LongestPause)), math.MaxInt64, n)
		}
		if err != nil {
			return err
		}
		for _, l := range letters {
			if _, err := t.exec(ctx, "UPDATE outbox SET owner = $1, attempts = attempts + 1 WHERE seq = $2", me, l.ID); err != nil {
				return err
			}
		}
		_, err = t.row(ctx, []any{&next}, "SELECT COALESCE(MIN(due), 0) FROM outbox "+whereReady, sink)
		return err
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return letters, instant(next), nil
}

// dueLetters returns up to n letters that nobody sends, due after and until.
func (t *tx) dueLetters(ctx context.Context, sink, after, until int64, n int) ([]inbox.Letter, error) {
	var letters []inbox.Letter
	err := t.each(ctx, func(s scanner) error {
		l, err := scanLetter(s)
		l.Attempt++
		letters = append(letters, l)
		return err
	}, selectLetter+whereReady+"AND due > $2 AND due <= $3 ORDER BY due, seq LIMIT $4", sink, after, until, n)
	return letters, err
}

// freeLetters gives what dead processes were sending back.
func (d *DB) freeLetters(ctx context.Context, t *tx, sink int64) error {
	var owners []string
	if err := t.each(ctx, scanColumn(&owners), "SELECT DISTINCT owner FROM outbox WHERE sink = $1 AND owner <> ''", sink); err != nil {
		return err
	}
	for _, name := range owners {
		alive, err := d.owner.isAlive(name)
		if err == nil && !alive {
			_, err = t.exec(ctx, "UPDATE outbox SET owner = '' WHERE sink = $1 AND owner = $2", sink, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SettleLetter notes what became of a letter, see [inbox.Outbox].
func (d *DB) SettleLetter(ctx context.Context, letter int64, o inbox.Outcome) error {
	me, err := d.owner.acquire()
	if err != nil {
		return d.fail("lock", err)
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		var sink int64
		var dead bool
		ours, err := t.row(ctx, []any{&sink, &dead}, "SELECT sink, dead <> 0 FROM outbox WHERE seq = $1 AND (owner = $2 OR dead <> 0)", letter, me)
		if err != nil || !ours {
			return err
		}
		if o.Fate == inbox.Returned {
			_, err := t.exec(ctx, "UPDATE outbox SET owner = '' WHERE seq = $1", letter)
			return err
		}
		if o.Fate == inbox.Sent {
			err = t.sendLetter(ctx, letter)
		} else {
			err = t.failLetter(ctx, letter, dead, o)
		}
		if err != nil || dead || o.Fate == inbox.Retry {
			return err
		}
		return t.unblock(ctx, sink, letter)
	})
}

// sendLetter takes a letter that was sent out of its outbox. If its delivery has
// not verified yet, or not so that the sink knows, that it was sent is noted.
func (t *tx) sendLetter(ctx context.Context, letter int64) error {
	_, err := t.exec(ctx, `INSERT INTO sent_unverified (sink, delivery) SELECT o.sink, o.delivery FROM outbox o JOIN deliveries d ON d.seq = o.delivery
		WHERE o.seq = $1 AND (d.verified <> 'yes' OR EXISTS (
			SELECT 1 FROM sinks k JOIN released r ON r.seq > k.released WHERE k.id = o.sink AND r.delivery = o.delivery)) ON CONFLICT DO NOTHING`, letter)
	if err == nil {
		_, err = t.exec(ctx, "DELETE FROM outbox WHERE seq = $1", letter)
	}
	return err
}

// failLetter notes that a letter could not be sent. A dead one stays dead.
func (t *tx) failLetter(ctx context.Context, letter int64, dead bool, o inbox.Outcome) error {
	died := int64(0)
	if o.Fate == inbox.GivenUp || dead {
		died = max(millis(o.Now), 1)
	}
	reply := o.Reply
	if reply == nil {
		reply = []byte{}
	}
	_, err := t.exec(ctx, `UPDATE outbox SET owner = '', due = $1, failures = failures + 1, first_fail = CASE first_fail WHEN 0 THEN $2 ELSE first_fail END,
		dead = $3, status = $4, problem = $5, reply = $6 WHERE seq = $7`,
		millis(o.Due), millis(o.Now), died, o.Status, clean(o.Problem), reply, letter)
	return err
}

// unblock lets those go that waited for a letter.
func (t *tx) unblock(ctx context.Context, sink, letter int64) error {
	var numbers []string
	if err := t.each(ctx, scanColumn(&numbers), "SELECT folded FROM outbox_numbers WHERE letter = $1", letter); err != nil {
		return err
	}
	for _, n := range numbers {
		if _, err := t.exec(ctx, "DELETE FROM outbox_numbers WHERE sink = $1 AND folded = $2 AND letter = $3", sink, n, letter); err != nil {
			return err
		}
		if _, err := t.exec(ctx, `UPDATE outbox SET blocked = blocked - 1
			WHERE seq = (SELECT MIN(letter) FROM outbox_numbers WHERE sink = $1 AND folded = $2)`, sink, n); err != nil {
			return err
		}
	}
	return nil
}

// LetterOf returns a sink's letter about a delivery, see [inbox.Outbox].
func (d *DB) LetterOf(ctx context.Context, sink, delivery int64) (*inbox.Letter, bool, error) {
	at, err := d.cursorOf(ctx, sink) // first: what it has passed by now is in the outbox by then
	if err != nil {
		return nil, false, err
	}
	var found *inbox.Letter
	err = d.each(ctx, func(s scanner) error {
		l, err := scanLetter(s)
		found = &l
		return err
	}, selectLetter+"WHERE sink = $1 AND delivery = $2", sink, delivery)
	return found, found == nil && at.passed >= delivery, err
}

// DeadLetters yields the letters that were given up, see [inbox.Outbox].
func (d *DB) DeadLetters(ctx context.Context) iter.Seq2[inbox.Letter, error] {
	return func(yield func(inbox.Letter, error) bool) {
		last := int64(math.MinInt64)
		for {
			var page []inbox.Letter
			err := d.each(ctx, func(s scanner) error {
				l, err := scanLetter(s)
				page = append(page, l)
				return err
			}, selectLetter+"WHERE dead <> 0 AND seq > $1 ORDER BY seq LIMIT $2", last, pageRows)
			if err != nil {
				yield(inbox.Letter{}, err)
				return
			}
			for _, l := range page {
				if !yield(l, nil) {
					return
				}
				last = l.ID
			}
			if len(page) < pageRows {
				return
			}
		}
	}
}
