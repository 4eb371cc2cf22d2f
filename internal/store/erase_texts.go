package store

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// erasePage is how many answers or bodies are searched at once.
const erasePage = 16

// run does work in a transaction, and counts what it removed once that is on disk.
func (e *erasure) run(ctx context.Context, do func(ctx context.Context, t *tx, done *ledger.Erasure) error) error {
	done, err := runFor(ctx, e.d, func(ctx context.Context, t *tx) (done ledger.Erasure, err error) {
		err = do(ctx, t, &done)
		return done, err
	})
	e.done.Add(done)
	return err
}

// kept is bytes that may name what is erased, with the key of their line.
type kept struct {
	id      int64
	ref     string
	account int64 // or none
	text    []byte
}

// search calls found for the lines of a query that name what is erased. The query takes
// the last key, of a number or a text, and a limit; it returns key, account and text.
func (e *erasure) search(ctx context.Context, query string, byText bool, limit int, found func(context.Context, *tx, kept, *ledger.Erasure) error) error {
	if e.words.empty() {
		return nil
	}
	for last := (kept{id: -1}); ; {
		page, err := e.searchPage(ctx, query, byText, last, limit)
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1]
		named := slices.DeleteFunc(page, func(k kept) bool { return !e.names(k) })
		if len(named) == 0 {
			continue
		}
		if err := e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) error {
			for _, k := range named {
				if err := found(ctx, t, k, done); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
}

// searchPage returns the lines after last.
func (e *erasure) searchPage(ctx context.Context, query string, byText bool, last kept, limit int) ([]kept, error) {
	var after any = last.id
	if byText {
		after = last.ref
	}
	return list(ctx, e.d.each, func(s scanner) (k kept, err error) {
		if byText {
			err = s.Scan(&k.ref, &k.account, &k.text)
		} else {
			err = s.Scan(&k.id, &k.account, &k.text)
		}
		return k, err
	}, query, after, limit)
}

// names reports whether kept bytes name what is erased. Those that can't be read do not.
func (e *erasure) names(k kept) bool {
	raw, err := unpack(k.text)
	return err == nil && e.wordsOf(k.account).inBytes(raw)
}

// change returns what runs a statement for a line and counts it.
func change(count func(*ledger.Erasure) *int64, query string) func(context.Context, *tx, kept, *ledger.Erasure) error {
	return func(ctx context.Context, t *tx, k kept, done *ledger.Erasure) error {
		var key any = k.id
		if k.ref != "" {
			key = k.ref
		}
		n, err := t.exec(ctx, query, key)
		*count(done) += n
		return err
	}
}

// Where changes are counted.
func countResponses(done *ledger.Erasure) *int64      { return &done.Responses }
func countBatchResponses(done *ledger.Erasure) *int64 { return &done.BatchResponses }
func countTexts(done *ledger.Erasure) *int64          { return &done.Texts }
func countEvents(done *ledger.Erasure) *int64         { return &done.Events }

// eraseAnswers removes the answers about referIds that are erased, and all others that
// name what is.
func (e *erasure) eraseAnswers(ctx context.Context) error {
	if err := e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) error {
		for ref := range e.refs {
			for _, query := range []string{"DELETE FROM answers WHERE account_id = $1 AND refer_id = $2", "DELETE FROM answer_versions WHERE account_id = $1 AND refer_id = $2"} {
				n, err := t.exec(ctx, query, e.account, ref)
				if done.Responses += n; err != nil {
					return err
				}
			}
		}
		return nil
	}); err != nil {
		return err
	}
	accounts, err := list(ctx, e.d.each, scanOne[int64], "SELECT id FROM accounts")
	if err != nil {
		return err
	}
	for _, id := range accounts {
		of := " WHERE account_id = " + strconv.FormatInt(id, 10)
		if err := e.search(ctx, "SELECT refer_id, account_id, raw FROM answers"+of+" AND refer_id > $1 ORDER BY refer_id LIMIT $2", true, erasePage,
			change(countResponses, "DELETE FROM answers"+of+" AND refer_id = $1")); err != nil {
			return err
		}
		if err := e.search(ctx, "SELECT name, account_id, name FROM sweeps"+of+" AND name > $1 ORDER BY name LIMIT $2", true, pageRows,
			change(countTexts, "DELETE FROM sweeps"+of+" AND name = $1")); err != nil {
			return err
		}
	}
	if err := e.search(ctx, "SELECT id, account_id, raw FROM answer_versions WHERE id > $1 ORDER BY id LIMIT $2", false, erasePage,
		change(countResponses, "DELETE FROM answer_versions WHERE id = $1")); err != nil {
		return err
	}
	return e.search(ctx, `SELECT k.batch_id, n.account_id, k.raw FROM batch_answers k JOIN batches b ON b.id = k.batch_id JOIN runs n ON n.id = b.run_id
		WHERE k.batch_id > $1 ORDER BY k.batch_id LIMIT $2`, false, erasePage,
		change(countBatchResponses, "DELETE FROM batch_answers WHERE batch_id = $1"))
}

// eraseTexts replaces texts that name what is erased.
func (e *erasure) eraseTexts(ctx context.Context) error {
	for _, part := range []struct{ query, change string }{
		{"SELECT b.id, n.account_id, b.reason FROM batches b JOIN runs n ON n.id = b.run_id WHERE b.id > $1 AND b.reason <> '' ORDER BY b.id LIMIT $2", "UPDATE batches SET reason = 'erased' WHERE id = $1"},
		{"SELECT id, account_id, reason FROM rows WHERE id > $1 AND reason <> '' ORDER BY id LIMIT $2", "UPDATE rows SET reason = 'erased' WHERE id = $1"},
		{"SELECT seq, 0, problem FROM outbox WHERE seq > $1 AND problem <> '' ORDER BY seq LIMIT $2", "UPDATE outbox SET problem = 'erased' WHERE seq = $1"},
		{"SELECT seq, 0, reply FROM outbox WHERE seq > $1 ORDER BY seq LIMIT $2", "UPDATE outbox SET reply = '' WHERE seq = $1"},
		{"SELECT id, 0, filter FROM sinks WHERE id > $1 AND filter <> '' ORDER BY id LIMIT $2", "UPDATE sinks SET filter = 'erased=' || id WHERE id = $1"},
	} {
		if err := e.search(ctx, part.query, false, pageRows, change(countTexts, part.change)); err != nil {
			return err
		}
	}
	for _, part := range []struct{ query, change string }{
		{"SELECT DISTINCT name, 0, name FROM observed WHERE name > $1 ORDER BY name LIMIT $2", "DELETE FROM observed WHERE name = $1"},
		{"SELECT DISTINCT sample, 0, sample FROM observed WHERE sample > $1 ORDER BY sample LIMIT $2", "UPDATE observed SET sample = '' WHERE sample = $1"},
	} {
		if err := e.search(ctx, part.query, true, pageRows, change(countTexts, part.change)); err != nil {
			return err
		}
	}
	return e.search(ctx, "SELECT id, account_id, files FROM runs WHERE id > $1 AND files <> '[]' ORDER BY id LIMIT $2", false, pageRows, e.eraseFileNames)
}

// eraseFileNames replaces the names of a run's files that name what is erased.
func (e *erasure) eraseFileNames(ctx context.Context, t *tx, run kept, done *ledger.Erasure) error {
	var text []byte
	if _, err := t.row(ctx, []any{&text}, "SELECT files FROM runs WHERE id = $1", run.id); err != nil {
		return err
	}
	var files []string
	if err := json.Unmarshal(text, &files); err != nil {
		return err
	}
	for i, f := range files {
		if e.wordsOf(run.account).inText(f) {
			files[i] = "erased"
		}
	}
	text, err := json.Marshal(files)
	if err == nil {
		_, err = t.exec(ctx, "UPDATE runs SET files = $1 WHERE id = $2", string(text), run.id)
	}
	done.Texts++
	return err
}

// eraseEvents erases the events of deliveries whose bytes are gone already.
func (e *erasure) eraseEvents(ctx context.Context) error {
	for number := range e.words.numbers {
		if err := e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) error {
			n, err := t.exec(ctx, eraseEvent+"folded = $1", foldKey(number))
			done.Events += n
			return err
		}); err != nil {
			return err
		}
	}
	if len(e.routers) == 0 {
		return nil
	}
	return e.search(ctx, "SELECT seq, 0, router_id FROM events WHERE seq > $1 AND router_id <> '' ORDER BY seq LIMIT $2", false, pageRows,
		change(countEvents, eraseEvent+"seq = $1"))
}

// eraseEvent begins a statement that leaves of an event its place in a delivery.
const eraseEvent = `UPDATE events SET event_key = NULL, sum = NULL, event_id = '', kind = '', event_time = '', tracking_number = '', status = '', status_track = '',
	status_label = '', latest_event = '', router_id = '', mark = '` + string(inbox.Anomaly) + `', anomaly = '` + inbox.Erased + `', folded = '' WHERE `
