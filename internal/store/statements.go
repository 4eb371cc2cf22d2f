package store

import (
	"fmt"
	"strings"
)

// statements are the wide statements of a store. Their texts are long, so they
// are made once.
type statements struct {
	rows, batches, uncheckedBatches, knownRanges, runBatches         multiInsert
	moveRows, shareBatches, rowStates, absences                      multiInsert
	sightings, trackingCounts, answers, deliveries, events, observed multiInsert
	find                                                             findQueries

	keyLookup [len(widths)]string
	// consecutiveRows adds rows with the numbers, lines and so on of the first one
	// and three texts for each: most of the cost of a row is its parameters.
	consecutiveRows [len(widths)]string
	currentEvents   keyStatement[[]byte]
	erased          keyStatement[[]byte]
	forgetErased    keyStatement[[]byte]
	claimBatches    keyStatement[int64]
	rowsInState     keyStatement[int64]
	forgetAbsences  keyStatement[int64]
	outbox          outboxStatements
}

func newStatements() *statements {
	return &statements{
		rows: newMultiInsert("INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line, own)", "itttiiit",
			" ON CONFLICT DO NOTHING"),
		batches:          newBatchInsert("'pending'", "''"),
		uncheckedBatches: newBatchInsert("'unknown'", "'"+reasonUnchecked+"'"),
		knownRanges: newMultiInsert("INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step, carrier)",
			"iiiiiiit", ""),
		runBatches: newMultiInsert("INSERT INTO run_batches (run_id, batch_id, rows)", "iii",
			" ON CONFLICT (run_id, batch_id) DO UPDATE SET rows = run_batches.rows + excluded.rows"),
		sightings:      newSightingInsert(),
		trackingCounts: newMultiInsert(insertCounts, "iitii", onKnownCount),
		answers: newMultiInsert("INSERT INTO answers (refer_id, seen, asked, raw)", "tiib",
			` ON CONFLICT (refer_id) DO UPDATE SET seen = excluded.seen, asked = excluded.asked, raw = excluded.raw
			WHERE excluded.seen >= answers.seen`),
		deliveries: newMultiInsert("INSERT INTO deliveries (seq, "+deliveryColumns+")", "i"+deliveryFields.types(), ""),
		events:     newMultiInsert("INSERT INTO events (sum, folded, "+eventColumns+")", "bt"+eventFields.types(), ""),
		observed: newMultiInsert("INSERT INTO observed (origin, kind, name, count, first_seen, last_seen, documented)",
			"tttiiii", ` ON CONFLICT (origin, kind, name) DO UPDATE SET count = observed.count + excluded.count,
			documented = excluded.documented,
			first_seen = CASE WHEN excluded.first_seen < observed.first_seen
				THEN excluded.first_seen ELSE observed.first_seen END,
			last_seen = CASE WHEN excluded.last_seen > observed.last_seen THEN excluded.last_seen ELSE observed.last_seen END`),
		moveRows: newMultiInsert("WITH given (id, target) AS (", "ii", `)
			UPDATE rows SET batch_id = given.target, state = NULL, reason = NULL, dismissed = NULL
			FROM given WHERE rows.id = given.id`),
		shareBatches: newMultiInsert("WITH given (source, target) AS (", "ii", `)
			INSERT INTO run_batches (run_id, batch_id, rows) SELECT p.run_id, given.target, 0
			FROM given JOIN run_batches p ON p.batch_id = given.source WHERE TRUE ON CONFLICT DO NOTHING`),
		rowStates: newMultiInsert("WITH given (id, state, reason) AS (", "itt", `)
			UPDATE rows SET state = given.state, reason = given.reason FROM given WHERE rows.id = given.id`),
		absences: newMultiInsert("INSERT INTO absences (row_id, batch_id, absent, fingerprint, boot, uptime)", "iiitti",
			` ON CONFLICT (row_id) DO UPDATE SET batch_id = excluded.batch_id, absent = excluded.absent,
			fingerprint = excluded.fingerprint, boot = excluded.boot, uptime = excluded.uptime`),
		keyLookup: newKeyLookup(),
		find:      newFindQueries(),

		consecutiveRows: newConsecutiveRows(),
		currentEvents: newKeyStatement[[]byte]('b', `SELECT event_key, synthetic, seq, verified, sum FROM events
			WHERE mark = '' AND event_key`, ""),
		erased:       newKeyStatement[[]byte]('b', "SELECT hash FROM erased WHERE hash", ""),
		forgetErased: newKeyStatement[[]byte]('b', "DELETE FROM erased WHERE hash", ""),
		claimBatches: newKeyStatement[int64]('i', `UPDATE batches SET state = 'sending', owner = ?, claimed = ?
			WHERE id`, ""),
		rowsInState: newKeyStatement[int64]('i', "SELECT r.id, b.id, b.first_row, b.last_row, b.rows, "+siblings+` FROM rows r
			JOIN batches b ON b.id = r.batch_id WHERE COALESCE(r.state, b.state) = ? AND r.id`, ""),
		forgetAbsences: newKeyStatement[int64]('i', "DELETE FROM absences WHERE row_id", ""),
		outbox:         newOutboxStatements(),
	}
}

func newConsecutiveRows() (queries [len(widths)]string) {
	for w, width := range widths {
		rows := make([]string, width)
		for n := range rows { // the largest number comes first, and ? counts on from it
			rows[n] = fmt.Sprintf("(?4+%d,?3,?2,?1+%d,?,?,?)", n, n)
		}
		rows[0] = "(CAST(?4 AS BIGINT),?3,?2,CAST(?1 AS BIGINT),?,?,?)"
		queries[w] = "INSERT INTO rows (line, file, batch_id, id, refer_id, number, carrier) VALUES " +
			strings.Join(rows, ",") + " ON CONFLICT DO NOTHING"
	}
	return queries
}

// newBatchInsert adds new batches in that state, and enlarges known ones.
func newBatchInsert(state, reason string) multiInsert {
	return newMultiInsert(`INSERT INTO batches (id, run_id, rows, first_row, last_row,
		state, reason, claimed, began, took, http_status)`, "iiiii",
		" ON CONFLICT (id) DO UPDATE SET rows = excluded.rows, last_row = excluded.last_row",
		state, reason, "0", "0", "0", "0")
}
