package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// OpenSink returns a sink, made if need be, see [inbox.Outbox].
func (d *DB) OpenSink(ctx context.Context, key inbox.SinkKey, from *inbox.From) (inbox.Sink, error) {
	if err := checkText("name", key.Name, "URL", key.URL, "filter", key.Filter); err != nil {
		return inbox.Sink{}, err
	}
	var id int64
	var made bool
	err := d.run(ctx, func(ctx context.Context, t *tx) error {
		known, err := t.row(ctx, []any{&id}, "SELECT id FROM sinks WHERE name = $1 AND url = $2 AND filter = $3", key.Name, key.URL, key.Filter)
		made = !known
		if err != nil || known && from == nil {
			return err
		}
		passed, released, err := t.startOf(ctx, from)
		if err != nil {
			return err
		}
		if known {
			_, err = t.exec(ctx, "UPDATE sinks SET passed = $1, released = $2 WHERE id = $3", passed, released, id)
			return err
		}
		_, err = t.row(ctx, []any{&id}, "INSERT INTO sinks (name, url, filter, passed, released) VALUES ($1, $2, $3, $4, $5) RETURNING id",
			key.Name, key.URL, key.Filter, passed, released)
		return err
	})
	if err != nil {
		return inbox.Sink{}, err
	}
	s, err := d.sink(ctx, id)
	s.New = made
	return s, err
}

// startOf returns the cursors of a sink that begins there, nil for now.
func (t *tx) startOf(ctx context.Context, from *inbox.From) (passed, released int64, err error) {
	if _, err := t.row(ctx, []any{&passed, &released}, `SELECT (SELECT COALESCE(MAX(seq), 0) FROM deliveries),
		(SELECT COALESCE(MAX(seq), 0) FROM released)`); err != nil || from == nil {
		return passed, released, err
	}
	first := passed + 1
	_, err = t.row(ctx, []any{&first}, "SELECT COALESCE(MIN(seq), $1) FROM deliveries WHERE seq >= $2 AND received >= $3",
		first, from.Delivery, millis(from.Since))
	return first - 1, released, err
}

const selectSink = `SELECT id, name, url, filter, passed,
	(SELECT COUNT(*) FROM deliveries WHERE seq > passed),
	(SELECT COUNT(*) FROM outbox WHERE sink = id AND dead = 0),
	(SELECT COUNT(*) FROM outbox WHERE sink = id AND dead <> 0),
	(SELECT COALESCE(MIN(added), 0) FROM outbox WHERE sink = id AND dead = 0) FROM sinks `

func scanSink(s scanner) (inbox.Sink, error) {
	var k inbox.Sink
	var oldest int64
	err := s.Scan(&k.ID, &k.Name, &k.URL, &k.Filter, &k.Cursor, &k.Behind, &k.Waiting, &k.Dead, &oldest)
	k.Oldest = instant(oldest)
	return k, err
}

func (d *DB) sinks(ctx context.Context, where string, args ...any) ([]inbox.Sink, error) {
	var all []inbox.Sink
	err := d.each(ctx, func(s scanner) error {
		k, err := scanSink(s)
		all = append(all, k)
		return err
	}, selectSink+where, args...)
	return all, err
}

func (d *DB) sink(ctx context.Context, id int64) (inbox.Sink, error) {
	found, err := d.sinks(ctx, "WHERE id = $1", id)
	if err == nil && len(found) == 0 {
		err = noSink(id)
	}
	if err != nil {
		return inbox.Sink{}, err
	}
	return found[0], nil
}

func noSink(id int64) error { return fmt.Errorf("%w: %d", inbox.ErrNoSink, id) }

// Sinks returns all sinks, see [inbox.Outbox].
func (d *DB) Sinks(ctx context.Context) ([]inbox.Sink, error) { return d.sinks(ctx, "ORDER BY id") }

// SkipBacklog drops what waits for a sink, see [inbox.Outbox].
func (d *DB) SkipBacklog(ctx context.Context, sink int64) (int64, error) {
	var dropped int64
	err := d.run(ctx, func(ctx context.Context, t *tx) error {
		passed, released, err := t.startOf(ctx, nil)
		if err != nil {
			return err
		}
		n, err := t.exec(ctx, "UPDATE sinks SET passed = $1, released = $2 WHERE id = $3", passed, released, sink)
		if err == nil && n == 0 {
			err = noSink(sink)
		}
		if err != nil {
			return err
		}
		if err := d.freeLetters(ctx, t, sink); err != nil {
			return err
		}
		// What is being sent is not blocked by anything, and blocks nothing that stays.
		if _, err := t.exec(ctx, `DELETE FROM outbox_numbers WHERE sink = $1 AND
			letter IN (SELECT seq FROM outbox WHERE sink = $1 AND owner = '' AND dead = 0)`, sink); err != nil {
			return err
		}
		dropped, err = t.exec(ctx, "DELETE FROM outbox WHERE sink = $1 AND owner = '' AND dead = 0", sink)
		return err
	})
	if err != nil {
		return 0, err
	}
	return dropped, nil
}

// Advance moves a sink's cursor on, see [inbox.Outbox].
func (d *DB) Advance(ctx context.Context, sink int64, n int, wants func(rows []inbox.Event) bool) (inbox.Progress, error) {
	for {
		at, err := d.cursorOf(ctx, sink)
		if err != nil {
			return inbox.Progress{}, err
		}
		step, err := d.look(ctx, at, n, wants)
		if err != nil || step.to == at {
			return inbox.Progress{}, err
		}
		var moved bool
		err = d.run(ctx, func(ctx context.Context, t *tx) error {
			var err error
			moved, err = t.step(ctx, sink, at, step)
			return err
		})
		if err != nil {
			return inbox.Progress{}, err
		}
		if moved {
			return step.progress(), nil
		}
	}
}

// cursor is how far a sink has come.
type cursor struct{ passed, released int64 }

func (d *DB) cursorOf(ctx context.Context, sink int64) (cursor, error) {
	var c cursor
	ok, err := d.row(ctx, []any{&c.passed, &c.released}, "SELECT passed, released FROM sinks WHERE id = $1", sink)
	if err == nil && !ok {
		err = noSink(sink)
	}
	return c, err
}

// step is what a cursor passes at once.
type step struct {
	passed []passage
	to     cursor
}

// passage is one delivery that a cursor passes.
type passage struct {
	delivery int64
	wanted   bool
	numbers  []string // folded, each once; of wanted ones only
}

func (s step) progress() inbox.Progress {
	p := inbox.Progress{Seen: len(s.passed)}
	for _, one := range s.passed {
		if one.wanted {
			p.Taken = append(p.Taken, one.delivery)
		} else {
			p.Left = append(p.Left, one.delivery)
		}
	}
	return p
}

// look asks wants about what comes next: first what became verified late, then
// what lies behind the cursor.
func (d *DB) look(ctx context.Context, at cursor, n int, wants func([]inbox.Event) bool) (step, error) {
	s := step{to: at}
	if err := d.each(ctx, func(row scanner) error {
		var p passage
		err := row.Scan(&s.to.released, &p.delivery)
		if p.delivery <= at.passed { // the cursor comes to the others by itself
			s.passed = append(s.passed, p)
		}
		return err
	}, "SELECT seq, delivery FROM released WHERE seq > $1 ORDER BY seq LIMIT $2", at.released, n); err != nil {
		return step{}, err
	}
	if err := d.each(ctx, func(row scanner) error {
		var p passage
		err := row.Scan(&p.delivery)
		s.to.passed = p.delivery
		s.passed = append(s.passed, p)
		return err
	}, "SELECT seq FROM deliveries WHERE seq > $1 ORDER BY seq LIMIT $2", at.passed, n-len(s.passed)); err != nil {
		return step{}, err
	}
	for i := range s.passed {
		if err := d.consider(ctx, &s.passed[i], wants); err != nil {
			return step{}, err
		}
	}
	return s, nil
}

// consider asks wants about one delivery.
func (d *DB) consider(ctx context.Context, p *passage, wants func([]inbox.Event) bool) error {
	var rows []inbox.Event
	for e, err := range d.Events(ctx, inbox.Query{Delivery: p.delivery}) {
		if err != nil {
			return err
		}
		rows = append(rows, e)
	}
	if len(rows) == 0 || !wants(rows) {
		return nil
	}
	p.wanted = true
	seen := map[string]bool{"": true}
	for _, e := range rows {
		if n := fold(e.TrackingNumber); !seen[n] {
			seen[n] = true
			p.numbers = append(p.numbers, n)
		}
	}
	return nil
}

// step takes a step, unless the cursor is somewhere else by now.
func (t *tx) step(ctx context.Context, sink int64, from cursor, s step) (bool, error) {
	moved, err := t.exec(ctx, "UPDATE sinks SET passed = $1, released = $2 WHERE id = $3 AND passed = $4 AND released = $5",
		s.to.passed, s.to.released, sink, from.passed, from.released)
	if err != nil || moved == 0 {
		return false, err
	}
	now := millis(time.Now())
	for _, p := range s.passed {
		if p.wanted {
			if err := t.addLetter(ctx, sink, p, now); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

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
	me, err := d.owner.get()
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
	if err := t.each(ctx, func(s scanner) error {
		var name string
		err := s.Scan(&name)
		owners = append(owners, name)
		return err
	}, "SELECT DISTINCT owner FROM outbox WHERE sink = $1 AND owner <> ''", sink); err != nil {
		return err
	}
	for _, name := range owners {
		alive, err := d.owner.lives(name)
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
	me, err := d.owner.get()
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
			_, err = t.exec(ctx, "DELETE FROM outbox WHERE seq = $1", letter)
		} else {
			err = t.failLetter(ctx, letter, dead, o)
		}
		if err != nil || dead || o.Fate == inbox.Retry {
			return err
		}
		return t.unblock(ctx, sink, letter)
	})
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
	if err := t.each(ctx, func(s scanner) error {
		var n string
		err := s.Scan(&n)
		numbers = append(numbers, n)
		return err
	}, "SELECT folded FROM outbox_numbers WHERE letter = $1", letter); err != nil {
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
