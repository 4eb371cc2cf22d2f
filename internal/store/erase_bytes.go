package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const erasePage = 32

// searched are the columns of a table to search for erased names.
type searched struct {
	table, key string // the key identifies a row of the table
	columns    []string
	// found is called for each row that contains a name.
	found func(ctx context.Context, t *tx, key any, done *ledger.Erasure)
}

// run runs do in a transaction unless an earlier step failed, and adds up what it removed once that is on disk.
func (e *erasure) run(ctx context.Context, do func(ctx context.Context, t *tx, done *ledger.Erasure)) {
	if e.err != nil {
		return
	}
	var done ledger.Erasure
	done, e.err = runFor(ctx, e.d, func(ctx context.Context, t *tx) (done ledger.Erasure) {
		do(ctx, t, &done)
		return done
	})
	e.done.Add(done)
}

// search calls found with the key of each row that contains a name.
func (e *erasure) search(ctx context.Context, in searched) {
	filled := strings.Join(in.columns, " <> '' OR ") + " <> ''"
	columns := strings.Join(in.columns, ", ")
	query := "SELECT " + in.key + ", " + columns + " FROM " + in.table + " WHERE (" + filled + ")"
	values := make([]any, 1+len(in.columns))
	dest := make([]any, len(values))
	for i := range values {
		dest[i] = &values[i]
	}
	for args := []any(nil); ; args = values[:1] { // the last key
		after := ""
		if args != nil {
			after = " AND " + in.key + " > $1"
		}
		var named []any
		some := false
		e.each(ctx, func(s scanner) error {
			some = true
			err := s.Scan(dest...)
			for i, column := range in.columns {
				if e.isNamed(column, values[1+i]) {
					named = append(named, values[0])
					break
				}
			}
			return err
		}, query+after+" ORDER BY "+in.key+fmt.Sprint(" LIMIT ", erasePage), args...)
		if e.err != nil || !some {
			return
		}
		for _, key := range named {
			e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) { in.found(ctx, t, key, done) })
		}
	}
}

func (e *erasure) isNamed(column string, value any) bool {
	var b []byte
	switch v := value.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	}
	if column == "header" {
		if fields, err := unpackHeader(b); err == nil {
			return slices.ContainsFunc(fields, func(f webhook.Field) bool {
				return e.names.inText(f.Name) || e.names.inText(f.Value)
			})
		}
	}
	if raw, err := unpack(b); err == nil {
		b = raw
	}
	return e.names.inBytes(b)
}

func change(count func(*ledger.Erasure) *int64, query string) func(context.Context, *tx, any, *ledger.Erasure) {
	return func(ctx context.Context, t *tx, key any, done *ledger.Erasure) {
		*count(done) += t.exec(ctx, query, key)
	}
}

func countResponses(done *ledger.Erasure) *int64 { return &done.Responses }
func countRefused(done *ledger.Erasure) *int64   { return &done.Refused }
func countTexts(done *ledger.Erasure) *int64     { return &done.Texts }

// eraseDeliveries empties deliveries that contain a name, and removes such refused deliveries.
func (e *erasure) eraseDeliveries(ctx context.Context) {
	for key := range e.keys {
		for _, seq := range list(ctx, e, scanOne[int64], "SELECT DISTINCT delivery FROM events WHERE folded = $1", key) {
			e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) { e.eraseDelivery(ctx, t, seq, done) })
		}
	}
	bytes := []string{"path", "raw_query", "header", "body"}
	e.search(ctx, searched{"deliveries", "seq", bytes, e.eraseDelivery})
	e.search(ctx, searched{"refused", "seq", bytes, change(countRefused, "DELETE FROM refused WHERE seq = $1")})
}

// eraseDelivery keeps a delivery's number and those of its events that contain no name. No target receives it.
func (e *erasure) eraseDelivery(ctx context.Context, t *tx, seq any, done *ledger.Erasure) {
	events := list(ctx, t, func(s scanner) (inbox.Event, error) { return scanEvent(s) },
		"SELECT "+eventColumns+" FROM events WHERE delivery = $1", seq)
	for _, one := range events {
		texts := []string{
			one.EventID, one.Kind, one.EventTime, one.Status, one.StatusTrack, one.StatusLabel, one.LatestEvent, one.RouterID,
		}
		if !e.keys[foldKey(one.TrackingNumber)] && !e.names.inText(strings.Join(texts, ", ")) {
			continue
		}
		done.Events += t.exec(ctx, eraseEvent+"seq = $1", one.Seq)
	}
	done.Deliveries++
	t.exec(ctx, `UPDATE deliveries SET path = $1, raw_query = $1, header = $1, body = NULL, anomaly = $2
		WHERE seq = $3`, []byte{}, inbox.Erased, seq)
	t.eraseEntries(ctx, seq)
}

// eraseEntries removes a delivery from the outboxes, and recounts how many others each remaining entry waits for.
func (t *tx) eraseEntries(ctx context.Context, delivery any) {
	removed := t.exec(ctx, `DELETE FROM outbox_numbers
		WHERE entry IN (SELECT seq FROM outbox WHERE delivery = $1)`, delivery)
	t.exec(ctx, "DELETE FROM outbox WHERE delivery = $1", delivery)
	if removed == 0 {
		return
	}
	t.exec(ctx, `UPDATE outbox SET blocked = (SELECT COUNT(*)
		FROM outbox_numbers n WHERE n.entry = outbox.seq AND EXISTS (
			SELECT 1 FROM outbox_numbers o WHERE o.sink = n.sink AND o.folded = n.folded AND o.entry < n.entry))
		WHERE dead = 0 AND blocked > 0`)
}

// eraseEvent is the start of a statement that empties an event but keeps its place in the delivery.
const eraseEvent = `UPDATE events SET event_key = NULL, sum = NULL, event_id = '', kind = '', event_time = '',
	tracking_number = '', status = '', status_track = '', status_label = '', latest_event = '', router_id = '',
	mark = '` + string(inbox.Anomaly) + "', anomaly = '" + inbox.Erased + "', folded = '' WHERE "

const removeBatchAnswer = "UPDATE batches SET answer = NULL, cut = 0 WHERE id = $1 AND answer IS NOT NULL"

// eraseAnswers removes the answers to queries for erased referIds.
func (e *erasure) eraseAnswers(ctx context.Context) {
	e.run(ctx, func(ctx context.Context, t *tx, done *ledger.Erasure) {
		for ref := range e.refs {
			done.Responses += t.exec(ctx, "DELETE FROM answers WHERE refer_id = $1", ref)
		}
	})
}

// eraseTexts removes answers and texts that contain a name.
func (e *erasure) eraseTexts(ctx context.Context) {
	for _, in := range []searched{
		{"answers", "refer_id", []string{"raw"}, change(countResponses, "DELETE FROM answers WHERE refer_id = $1")},
		{"batches", "id", []string{"answer"}, change(countResponses, removeBatchAnswer)},
		{"batches", "id", []string{"reason"}, change(countTexts, "UPDATE batches SET reason = 'erased' WHERE id = $1")},
		{"rows", "id", []string{"reason"}, change(countTexts, "UPDATE rows SET reason = 'erased' WHERE id = $1")},
		{"outbox", "seq", []string{"problem", "reply"}, change(countTexts,
			"UPDATE outbox SET problem = '', reply = '' WHERE seq = $1")},
		{"sinks", "id", []string{"filter"}, change(countTexts, "UPDATE sinks SET filter = 'erased=' || id WHERE id = $1")},
		{"(SELECT DISTINCT name FROM observed) AS o", "name", []string{"name"}, change(countTexts,
			"DELETE FROM observed WHERE name = $1")},
		{"runs", "id", []string{"files"}, e.eraseFileNames},
	} {
		e.search(ctx, in)
	}
}

func (e *erasure) eraseFileNames(ctx context.Context, t *tx, run any, done *ledger.Erasure) {
	var files []string
	if !t.row(ctx, []any{storedJSON{&files}}, "SELECT files FROM runs WHERE id = $1", run) {
		return
	}
	for i, f := range files {
		if e.names.inText(f) {
			files[i] = "erased"
		}
	}
	t.exec(ctx, "UPDATE runs SET files = $1 WHERE id = $2", storedJSON{files}, run)
	done.Texts++
}

// names are searched for in texts: as one word, or as several words with separators between them.
type names struct {
	numbers map[string]bool // folded
	refs    map[string]bool // exactly
}

// Shorter names, such as 1001, may mean anything and are not searched for. A number without letters matches several
// words only from minSpaced digits on, so that the parts of a date don't match.
const (
	minWord   = 8
	minMixed  = 6 // with letters
	minSpaced = 11
)

// maxParts is how many words a name may consist of in a text.
const maxParts = 12

func (n names) addNumber(number string) {
	if folded := tracking.FoldNumber(number); folded != "" {
		n.numbers[folded] = true
	}
}

var escape = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|.)`)

// inBytes reports whether b, JSON or not, contains one of the names.
func (n names) inBytes(b []byte) bool {
	text := string(b)
	if strings.Contains(text, `\`) && json.Valid(b) {
		text = escape.ReplaceAllStringFunc(text, func(e string) string {
			r, err := strconv.ParseUint(e[2:], 16, 16)
			if err != nil || utf16.IsSurrogate(rune(r)) {
				return " " // a quote, the end of a line, half of an emoji
			}
			return string(rune(r))
		})
	}
	return n.inText(text)
}

func (n names) inText(s string) bool {
	if len(n.numbers)+len(n.refs) == 0 {
		return false
	}
	var starts, ends []int
	inside := false
	for i, r := range s {
		if is := unicode.IsLetter(r) || unicode.IsDigit(r) || r == utf8.RuneError; is != inside {
			if inside = is; is {
				starts = append(starts, i)
			} else {
				ends = append(ends, i)
			}
		}
	}
	if inside {
		ends = append(ends, len(s))
	}
	for i, start := range starts {
		for parts, end := range ends[i:min(i+maxParts, len(ends))] {
			if n.isName(s[start:end], parts > 0) {
				return true
			}
		}
	}
	return false
}

// isName reports whether s, a part of a text, is one of the names.
func (n names) isName(s string, several bool) bool {
	letters := strings.ContainsFunc(s, unicode.IsLetter)
	if len(s) < minMixed || len(s) < minWord && !letters {
		return false
	}
	if n.refs[s] && letters && strings.ContainsFunc(s, unicode.IsDigit) {
		return true
	}
	folded := tracking.FoldNumber(s)
	return n.numbers[folded] && (letters || !several || len(folded) >= minSpaced)
}
