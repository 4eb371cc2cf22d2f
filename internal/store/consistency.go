package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Problem is something in a store that no command can have left there.
type Problem struct {
	What  string `json:"problem"`         // such as "rows without a batch"
	Count int64  `json:"count,omitempty"` // how many there are; 0 if they are not counted
}

func (p Problem) String() string {
	if p.Count == 0 {
		return p.What
	}
	return fmt.Sprintf("%d %s", p.Count, p.What)
}

// Check reads the whole store and returns an error that matches [ErrCorrupt] if it is damaged, see [DB.Problems].
func (d *DB) Check(ctx context.Context) error {
	problems, err := d.Problems(ctx)
	if err != nil || len(problems) == 0 {
		return err
	}
	return d.Damage(problems)
}

// Damage returns an error that matches [ErrCorrupt] with those problems of the store.
func (d *DB) Damage(problems []Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	cause := errors.New(strings.Join(lines, "; "))
	return d.engine.Fail("check", &Error{Kind: ErrCorrupt, Path: d.engine.Place, Op: "check", Err: cause})
}

// Problems reads the whole store: what the database says of itself, and whether the tables agree with each other. It
// writes nothing, and others may write meanwhile: each statement sees one moment.
func (d *DB) Problems(ctx context.Context) ([]Problem, error) {
	if err := d.engine.Check(ctx); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && errors.Is(e.Kind, ErrCorrupt) {
			return []Problem{{What: e.Err.Error()}}, nil // what tables say then means nothing
		}
		return nil, err
	}
	var problems []Problem
	for _, c := range consistency {
		n, err := value[int64](ctx, d.row, c.query)
		if err != nil {
			return problems, err
		}
		if n > 0 {
			problems = append(problems, Problem{c.what, n})
		}
	}
	return problems, nil
}

// consistency lists what the tables must agree on: each query counts what contradicts.
var consistency = []struct{ what, query string }{
	{"numbers beyond the last one given away", `SELECT COUNT(*) FROM counters c WHERE c.value < CASE c.name
		WHEN 'run' THEN (SELECT COALESCE(MAX(id), 0) FROM runs WHERE state <> 'staged')
		WHEN 'row' THEN (SELECT COALESCE(MAX(last_row), 0) FROM runs WHERE state <> 'staged') ELSE 0 END
		OR c.name = 'indexed' AND c.value > (SELECT r.value FROM counters r WHERE r.name = 'row')`},

	// Runs, batches and rows.
	{"batches with rows but without a run", `SELECT COUNT(*) FROM batches b
		WHERE b.rows > 0 AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.id = b.run_id)`},
	{"rows without a batch", `SELECT COUNT(*) FROM rows r
		WHERE NOT EXISTS (SELECT 1 FROM batches b WHERE b.id = r.batch_id)`},
	{"batches that count other rows than they have", `SELECT COUNT(*) FROM batches b
		LEFT JOIN (SELECT batch_id, COUNT(*) AS n, MIN(id) AS first, MAX(id) AS last FROM rows GROUP BY batch_id) AS c
		ON c.batch_id = b.id WHERE b.rows <> COALESCE(c.n, 0) OR c.first < b.first_row OR c.last > b.last_row`},
	{"runs that count other rows than their batches", `SELECT COUNT(*) FROM runs n
		LEFT JOIN (SELECT run_id, SUM(rows) AS n FROM run_batches GROUP BY run_id) AS c ON c.run_id = n.id
		WHERE n.state = 'open' AND n.new_rows + n.known_rows <> COALESCE(c.n, 0)`},
	{"runs that count more rows in a batch than it has", `SELECT COUNT(*) FROM run_batches p
		LEFT JOIN batches b ON b.id = p.batch_id WHERE p.rows > COALESCE(b.rows, 0)`},
	{"records of missing rows", `SELECT COUNT(*) FROM run_known_rows k
		WHERE NOT EXISTS (SELECT 1 FROM rows r WHERE r.id = ABS(k.row_id))
		OR k.rows > 0 AND NOT EXISTS (SELECT 1 FROM rows r WHERE r.id = k.row_id + k.rows - 1)`},

	// What is known of trackings.
	{"indexed rows that the index of numbers lacks", `SELECT COUNT(*) FROM rows r
		WHERE r.id <= (SELECT value FROM counters WHERE name = 'indexed')
		AND NOT EXISTS (SELECT 1 FROM numbers x WHERE x.folded = fold_number(r.number) AND x.row_id = r.id)`},
	{"entries of missing rows in the index of numbers", `SELECT COUNT(*) FROM numbers x
		WHERE NOT EXISTS (SELECT 1 FROM rows r WHERE r.id = x.row_id AND fold_number(r.number) = x.folded)`},
	{"trackings without their row", `SELECT COUNT(*) FROM sightings s WHERE s.folded <> fold_number(s.number)
		OR s.id > 0 AND NOT EXISTS (
			SELECT 1 FROM rows r WHERE r.id = s.id AND r.refer_id = s.refer_id AND r.number = s.number)
		OR s.id < 0 AND EXISTS (SELECT 1 FROM rows r WHERE r.refer_id = s.refer_id AND r.number = s.number` + visible + ")"},
	{"trackings without their status", `SELECT COUNT(*) FROM sightings s WHERE NOT EXISTS (SELECT 1 FROM statuses t
		WHERE t.id = s.status_id AND t.phase = s.phase AND t.status = s.status
		AND t.status_label = s.status_label AND t.status_track = s.status_track)`},
	{"wrong counts of trackings", `SELECT COUNT(*) FROM (SELECT 1 AS one FROM (
			SELECT run_id, status_id, carrier, transit_days, trackings AS n` + countsOfRuns + `
			UNION ALL SELECT n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier),
				` + transitDays + `, -COUNT(*) FROM runs n CROSS JOIN rows r LEFT JOIN sightings s ON s.id = r.id
				WHERE r.id BETWEEN n.first_row AND n.last_row GROUP BY 1, 2, 3, 4
			UNION ALL SELECT CASE refer_id WHEN '' THEN -1 ELSE 0 END, status_id, carrier,
				` + transitDays + `, -COUNT(*) FROM sightings s WHERE id < 0 GROUP BY 1, 2, 3, 4
		) AS counted GROUP BY run_id, status_id, carrier, transit_days HAVING SUM(n) <> 0) AS different`},

	// Deliveries, events and outboxes.
	{"events that their delivery contradicts", `SELECT COUNT(*) FROM events e LEFT JOIN deliveries d ON d.seq = e.delivery
		WHERE d.seq IS NULL OR e.verified <> d.verified AND d.verified <> 'yes' OR e.start + e.length > length(d.body)`},
	{"outbox entries without a delivery or a target", `SELECT COUNT(*) FROM outbox o WHERE NOT EXISTS (
			SELECT 1 FROM deliveries d WHERE d.seq = o.delivery AND (d.body IS NOT NULL OR o.dead <> 0))
		OR NOT EXISTS (SELECT 1 FROM sinks k WHERE k.id = o.sink)`},
	{"outbox entries that wait for the wrong number of others", `SELECT COUNT(*) FROM outbox o
		WHERE o.dead = 0 AND o.blocked <> (SELECT COUNT(*) FROM outbox_numbers n WHERE n.letter = o.seq AND EXISTS (
			SELECT 1 FROM outbox_numbers e WHERE e.sink = n.sink AND e.folded = n.folded AND e.letter < n.letter))`},
	{"tracking numbers of missing outbox entries", `SELECT COUNT(*) FROM outbox_numbers n
		WHERE NOT EXISTS (SELECT 1 FROM outbox o WHERE o.seq = n.letter AND o.dead = 0)`},
}
