package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/ledger"
)

var errNotNew = errors.New("a record is known already")

// chunk is the part of an input that one transaction adds.
//
// Records are classified in key order, so equal keys are neighbours and the index is read once, in order. New rows go
// into batches in input order.
type chunk struct {
	s           *staging
	entries     []ledger.Entry
	base        int64 // number of the first entry
	order       []int // indices of entries by key; equal ones in input order
	classified  []classification
	rowsByBatch map[int64]int64 // rows of the input by batch
	batches     []batch         // batches that got rows

	progress
	full      []ledger.Batch // batches that got their last row after Begin
	conflicts []ledger.Conflict
}

type classification struct {
	kind         recordKind
	row          int64         // of a known row or a repeat
	batch        int64         // of a known row
	otherCarrier bool          // the known row has another carrier
	first        *ledger.Entry // of a repeat or a conflict: the record with the same key
}

type recordKind uint8

const (
	kindNew      recordKind = iota // a row to be inserted
	kindKnown                      // a row of an earlier run
	kindRepeat                     // named before in this input
	kindConflict                   // contradicts an earlier record of this input
	kindErased                     // was erased
)

// withoutRows marks the position of a record whose input is not a table.
const withoutRows = 1 << 62

// position returns the stored form of a record's position: its line and, from bit 32 on, how many lines that is beyond
// its row in a spreadsheet.
func position(e *ledger.Entry) int64 {
	if e.Row == 0 {
		return int64(e.Line) | withoutRows
	}
	return int64(e.Line) + int64(e.Line-e.Row)<<32
}

// placeOf is the reverse of position.
func placeOf(position int64) (line, row int) {
	line = int(uint32(position))
	if position&withoutRows == 0 {
		row = line - int(position>>32)
	}
	return line, row
}

func compareKeys(a, b *ledger.Entry) int {
	if d := strings.Compare(a.Item.ReferID, b.Item.ReferID); d != 0 {
		return d
	}
	return strings.Compare(a.Item.Number, b.Item.Number)
}

func (c *chunk) add(ctx context.Context, t *tx) {
	c.classified = make([]classification, len(c.entries))
	c.rowsByBatch = map[int64]int64{}
	c.sort()
	c.classifyErased(ctx, t)
	if c.expectKnown {
		c.lookUp(ctx, t)
	}
	var u unlinked
	if c.s.begun {
		u = t.unlinked(ctx)
	}
	c.classifyRepeats()
	c.addNew(ctx, t)
	c.addKnown(ctx, t)
	c.addRunBatches(ctx, t)
	c.next += int64(len(c.entries))
	if !c.s.begun {
		return
	}
	filling := int64(-1)
	if c.batch.rows > 0 && c.batch.rows < int64(c.s.run.Plan.BatchSize) {
		filling = c.batch.id
	}
	c.s.publish(ctx, t, u, c.progress, filling)
	c.shown = c.next
}

func (c *chunk) sort() {
	c.order = make([]int, len(c.entries))
	for i := range c.order {
		c.order[i] = i
	}
	slices.SortFunc(c.order, func(i, j int) int {
		return cmp.Or(compareKeys(&c.entries[i], &c.entries[j]), cmp.Compare(i, j))
	})
}

// byKey yields the first entry of each key with its repeats, in key order.
func (c *chunk) byKey(yield func(head int, repeats []int) bool) {
	for i := 0; i < len(c.order); {
		end := i + 1
		for end < len(c.order) && compareKeys(&c.entries[c.order[i]], &c.entries[c.order[end]]) == 0 {
			end++
		}
		if !yield(c.order[i], c.order[i+1:end]) {
			return
		}
		i = end
	}
}

func (c *chunk) classifyRepeats() {
	for head, repeats := range c.byKey {
		if len(repeats) == 0 || c.classified[head].kind == kindErased {
			continue
		}
		first, row := &c.entries[head], c.base+int64(head)
		switch f := c.classified[head]; f.kind {
		case kindNew, kindErased:
		case kindKnown:
			row = f.row
		case kindRepeat, kindConflict:
			first, row = f.first, f.row
		}
		for _, i := range repeats {
			c.classifyRepeat(i, first, row)
		}
	}
}

func (c *chunk) classifyRepeat(i int, first *ledger.Entry, row int64) {
	c.classified[i] = classification{kind: kindRepeat, row: row, first: first}
	if c.entries[i].Item.CarrierCode != first.Item.CarrierCode {
		c.classified[i].kind = kindConflict
	}
}

// keyLookup finds rows by key, and where an earlier chunk of this input named them: file, position and carrier as one
// text. A server plans a join by the number of rows that it has counted in a table, which may be 0.
var keyLookup = inEachWidth(func(w int) string {
	values := joined(w, func(n int) string { return fmt.Sprintf("(%d,?,?,?)", n) })
	return `WITH run (id) AS (VALUES (CAST(? AS BIGINT))),
		v (i, refer_id, number, carrier) AS (VALUES ` + values + `)
		SELECT v.i, r.id, r.batch_id, r.carrier <> v.carrier, r.file, r.line, r.carrier, COALESCE((
			SELECT CASE WHEN r.id < k.row_id + k.rows THEN k.file || ' ' || (k.line + (r.id - k.row_id) * k.step)
				|| ' ' || COALESCE(k.carrier, r.carrier) END
			FROM run_known_rows k WHERE k.run_id = run.id AND k.row_id BETWEEN 1 AND r.id ORDER BY k.row_id DESC LIMIT 1), '')
		FROM run CROSS JOIN v JOIN rows r ON r.refer_id = v.refer_id AND r.number = v.number`
})

// lookUp classifies the records that are in the ledger.
func (c *chunk) lookUp(ctx context.Context, t *tx) {
	heads := make([]int, 0, len(c.entries))
	for head := range c.byKey {
		if c.classified[head].kind != kindErased {
			heads = append(heads, head)
		}
	}
	c.expectKnown = false // unless one is found
	args := make([]any, 0, widths[0]*3+1)
	inWidths(len(heads), func(from, to, w int) {
		args = append(args[:0], c.s.run.ID)
		for _, i := range heads[from:to] {
			item := &c.entries[i].Item
			args = append(args, item.ReferID, item.Number, item.CarrierCode)
		}
		t.each(ctx, func(s scanner) error {
			c.expectKnown = true
			return c.classifyKnown(s, heads[from:to])
		}, keyLookup()[w], args...)
	})
}

// classifyKnown classifies a record that is in the ledger. Earlier chunks of this input may have named it.
func (c *chunk) classifyKnown(s scanner, heads []int) error {
	var n int
	var first ledger.Entry
	var line int64
	var carrier, named string
	f := classification{kind: kindKnown}
	if err := s.Scan(&n, &f.row, &f.batch, &f.otherCarrier, &first.File, &line, &carrier, &named); err != nil {
		return err
	}
	if named != "" {
		if _, err := fmt.Sscan(named, &first.File, &line); err != nil {
			return fmt.Errorf("read where a row is named: %w", err)
		}
		carrier = strings.SplitN(named, " ", 3)[2]
	}
	i := heads[n]
	first.Item = c.entries[i].Item
	first.Item.CarrierCode = carrier
	first.Line, first.Row = placeOf(line)
	if named != "" || f.row >= c.s.first {
		c.classifyRepeat(i, &first, f.row)
	} else {
		c.classified[i] = f
	}
	return nil
}

func (c *chunk) addNew(ctx context.Context, t *tx) {
	nextBatch := t.nextBatch(ctx)
	size := int64(c.s.run.Plan.BatchSize)
	for i := range c.classified {
		if c.classified[i].kind != kindNew {
			continue
		}
		row := c.base + int64(i)
		if c.batch.id == 0 || c.batch.rows == size {
			c.appendBatch()
			c.batch, c.rows = batch{id: nextBatch, first: row}, nil
			nextBatch++
		}
		c.batch.last = row
		c.batch.rows++
		c.rowsByBatch[c.batch.id]++
		c.classified[i].batch = c.batch.id
		if c.s.begun {
			c.keep(ledger.BatchRow{ID: row, Item: c.entries[i].Item})
		}
	}
	c.appendBatch()
	rows := slices.DeleteFunc(slices.Clone(c.order), func(i int) bool { return c.classified[i].kind != kindNew })
	c.tally.New += int64(len(rows))
	c.insert(ctx, t, rows)
	c.forgetErased(ctx, t, rows)
	counts := trackingCounts{}
	for _, i := range rows {
		counts[countKey{run: c.s.run.ID}.of(0, c.entries[i].Item.CarrierCode, 0)]++
	}
	t.closing = true
	t.changeCounts(ctx, counts)
	batches := insertBatches
	if c.s.run.Plan.CheckFirst {
		batches = insertUncheckedBatches
	}
	batches.exec(ctx, t, len(c.batches), func(args []any, n int) []any {
		b := &c.batches[n]
		return append(args, b.id, c.s.run.ID, b.rows, b.first, b.last)
	})
}

var (
	insertRows = newMultiInsert("INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line, own)", "itttiiit",
		" ON CONFLICT DO NOTHING")
	// consecutiveRows adds rows whose numbers, lines and so on count up from the first row's, with three texts per row:
	// most of the cost of a row is its parameters.
	consecutiveRows = inEachWidth(func(w int) string {
		rows := make([]string, w)
		for n := range rows { // the largest number comes first, since ? counts on from it
			rows[n] = fmt.Sprintf("(?4+%d,?3,?2,?1+%d,?,?,?)", n, n)
		}
		rows[0] = "(CAST(?4 AS BIGINT),?3,?2,CAST(?1 AS BIGINT),?,?,?)"
		return "INSERT INTO rows (line, file, batch_id, id, refer_id, number, carrier) VALUES " +
			strings.Join(rows, ",") + " ON CONFLICT DO NOTHING"
	})
	insertBatches          = newBatchInsert("'pending'", "''")
	insertUncheckedBatches = newBatchInsert("'unknown'", "'"+reasonUnchecked+"'")
)

// newBatchInsert adds new batches in the given state, and enlarges known ones.
func newBatchInsert(state, reason string) multiInsert {
	return newMultiInsert(`INSERT INTO batches (id, run_id, rows, first_row, last_row,
		state, reason, claimed, began, took, http_status)`, "iiiii",
		" ON CONFLICT (id) DO UPDATE SET rows = excluded.rows, last_row = excluded.last_row",
		state, reason, "0", "0", "0", "0")
}

// insert inserts rows. It fails with errNotNew if one of them is already known.
func (c *chunk) insert(ctx context.Context, t *tx, rows []int) {
	values := func(args []any, n int) []any {
		i := rows[n]
		e := &c.entries[i]
		var own any
		if e.Own != "" {
			own = string(e.Own)
		}
		item := &e.Item
		return append(args, c.base+int64(i), item.ReferID, item.Number, item.CarrierCode, c.classified[i].batch,
			e.File, position(e), own)
	}
	if t.w.engine.Load != nil && len(rows) > 0 {
		columns := []string{"id", "refer_id", "number", "carrier", "batch_id", "file", "line", "own"}
		t.direct(func(conn *sql.Conn) error {
			err := t.w.engine.Load(ctx, conn, "rows", columns, len(rows), values)
			if errors.Is(err, ErrDuplicate) {
				err = errNotNew
			}
			return err
		})
		return
	}
	added := int64(0)
	args := make([]any, 0, widths[0]*8)
	inWidths(len(rows), func(from, to, w int) {
		query, part := insertRows.texts().query[w], rows[from:to]
		args = args[:0]
		if c.consecutive(part) {
			query = consecutiveRows()[w]
			head := part[0]
			args = append(args, c.base+int64(head), c.classified[head].batch, c.entries[head].File, position(&c.entries[head]))
			for _, i := range part {
				item := &c.entries[i].Item
				args = append(args, item.ReferID, item.Number, item.CarrierCode)
			}
		} else {
			for n := range part {
				args = values(args, from+n)
			}
		}
		added += t.exec(ctx, query, args...)
	})
	t.require(added == int64(len(rows)), errNotNew)
}

// consecutive reports whether rows are successive lines of a file, in one batch, without own columns.
func (c *chunk) consecutive(rows []int) bool {
	head := rows[0]
	first := &c.entries[head]
	for n, i := range rows {
		e := &c.entries[i]
		follows := i == head+n && position(e) == position(first)+int64(n) && e.File == first.File
		if !follows || e.Own != "" || c.classified[i].batch != c.classified[head].batch {
			return false
		}
	}
	return true
}

// appendBatch adds the batch being filled to the batches to write, if it got rows.
func (c *chunk) appendBatch() {
	if c.rowsByBatch[c.batch.id] > 0 {
		c.batches = append(c.batches, c.batch)
	}
}

// keep keeps a row of the batch being filled in memory, to be sent from there.
func (c *chunk) keep(row ledger.BatchRow) {
	size := c.s.run.Plan.BatchSize
	if c.rows == nil {
		c.rows = make([]ledger.BatchRow, 0, size)
	}
	if c.rows = append(c.rows, row); len(c.rows) == size {
		c.full = append(c.full, ledger.Batch{ID: c.batch.id, Rows: c.rows})
	}
}

// nextBatch returns the next free number of a batch. It stays free until the transaction ends.
func (t *tx) nextBatch(ctx context.Context) int64 {
	return value[int64](ctx, t, "SELECT COALESCE(MAX(id), 0) FROM batches") + 1
}

// addKnown adds the records of known rows, and repeats.
func (c *chunk) addKnown(ctx context.Context, t *tx) {
	var ranges []knownRange
	for i, f := range c.classified {
		one := knownRange{pos: c.base + int64(i), row: f.row, rows: 1, file: c.entries[i].File, line: position(&c.entries[i])}
		switch f.kind {
		case kindNew, kindErased:
			continue
		case kindConflict:
			c.tally.Skipped++
			c.conflicts = append(c.conflicts, ledger.Conflict{Entry: c.entries[i], First: *f.first})
			continue
		case kindRepeat:
			c.tally.Repeats++
			one.row, one.rows = -f.row, 0
		case kindKnown:
			c.tally.Known++
			c.rowsByBatch[f.batch]++
			if f.otherCarrier {
				one.carrier = c.entries[i].Item.CarrierCode
				c.tally.OtherCarrier++
			}
		}
		if last := len(ranges) - 1; last < 0 || !ranges[last].extend(one) {
			ranges = append(ranges, one)
		}
	}
	t.addKnownRanges(ctx, c.s.run.ID, ranges)
}

var insertKnownRanges = newMultiInsert(
	"INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step, carrier)", "iiiiiiit", "")

func (t *tx) addKnownRanges(ctx context.Context, run int64, ranges []knownRange) {
	insertKnownRanges.exec(ctx, t, len(ranges), func(args []any, n int) []any {
		k := &ranges[n]
		return append(args, run, k.pos, k.row, k.rows, k.file, k.line, k.step, k.carrier)
	})
}

// knownRange is a range of rows of earlier runs that are consecutive both in this input and in theirs, or a repeat:
// then row is the negative number of its row, and rows is 0.
type knownRange struct {
	pos, row, rows int64 // numbers of the first record and its row
	file           int
	line, step     int64 // see position
	carrier        any   // text: the carrier in this input; nil: each row's own
}

// extend adds the next record to the range. It returns false if the record has another step; a repeat never fits.
func (k *knownRange) extend(next knownRange) bool {
	step := k.step
	if k.rows == 1 {
		step = next.line - k.line
	}
	if next.pos != k.pos+k.rows || next.row != k.row+k.rows || next.file != k.file ||
		next.line != k.line+k.rows*step || next.carrier != k.carrier {
		return false
	}
	k.rows, k.step = k.rows+1, step
	return true
}

var insertRunBatches = newMultiInsert("INSERT INTO run_batches (run_id, batch_id, rows)", "iii",
	" ON CONFLICT (run_id, batch_id) DO UPDATE SET rows = run_batches.rows + excluded.rows")

func (c *chunk) addRunBatches(ctx context.Context, t *tx) {
	ids := slices.Sorted(maps.Keys(c.rowsByBatch))
	insertRunBatches.exec(ctx, t, len(ids), func(args []any, n int) []any {
		return append(args, c.s.run.ID, ids[n], c.rowsByBatch[ids[n]])
	})
}
