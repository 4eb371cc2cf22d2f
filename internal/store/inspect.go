package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Inspection is the result of [DB.Inspect].
type Inspection struct {
	Problems  []Problem
	Damage    error     // see [DB.Damage]; nil without problems
	Settings  []Setting // of the database
	Tables    []TableSize
	Processes []Process // with the store open for writing, and dead ones that left work
	FreeBytes *int64    // in the file, for reuse; nil if the store is not a file
}

// Setting is a database setting that affects the store.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning string `json:"warning,omitempty"` // what is wrong with it, empty if nothing
}

// TableSize is the size of a table.
type TableSize struct {
	Name  string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"` // on disk, indexes included
}

// Process is a process that has the store open for writing, or that died and left work.
type Process struct {
	Name    string // as owner
	Alive   bool
	Host    string // empty if unknown
	PID     int64  // 0 if unknown
	Command string // empty if unknown
	Version string
	Started time.Time // zero if unknown

	URLs       []string // where it takes deliveries
	Staging    int64    // run whose input it reads, 0 if none
	Batches    int64    // batches that it is sending
	Rows       int64    // rows in these batches
	Deliveries int64    // deliveries that it is forwarding
}

// Inspect reads the whole store, see [DB.Problems], and returns what is known of its size, its database and its users.
// It writes nothing.
func (d *DB) Inspect(ctx context.Context) (Inspection, error) {
	var i Inspection
	var err error
	if i.Problems, err = d.Problems(ctx); err != nil {
		return i, err
	}
	err = d.inspectUse(ctx, &i)
	if len(i.Problems) > 0 {
		i.Damage = d.Damage(i.Problems)
		if errors.Is(err, ErrCorrupt) {
			err = nil // what can be read is shown
		}
	}
	return i, err
}

// Settings returns the database settings that affect the store.
func (d *DB) Settings(ctx context.Context) ([]Setting, error) {
	all, err := d.engine.Upkeep.Settings(ctx)
	return all, d.fail("read", err)
}

func (d *DB) inspectUse(ctx context.Context, i *Inspection) (err error) {
	if i.Settings, err = d.Settings(ctx); err != nil {
		return err
	}
	if i.FreeBytes, err = d.FreeBytes(ctx); err != nil {
		return err
	}
	if i.Processes, err = d.inspectProcesses(ctx); err != nil {
		return err
	}
	bytes := map[string]int64{}
	r := d.reader()
	r.each(ctx, func(s scanner) error {
		var name string
		var n int64
		err := s.Scan(&name, &n)
		bytes[name] = n
		return err
	}, d.engine.Upkeep.TableBytes)
	for _, t := range copied {
		size := TableSize{Name: t.name, Bytes: bytes[t.name]}
		if r.row(ctx, []any{&size.Rows}, "SELECT COUNT(*) FROM "+t.name) {
			i.Tables = append(i.Tables, size)
		}
	}
	return r.err
}

func (d *DB) inspectProcesses(ctx context.Context) ([]Process, error) {
	all, err := d.engine.Upkeep.Processes(ctx)
	if err != nil {
		return nil, d.fail("read", err)
	}
	find := func(name string) *Process {
		i := slices.IndexFunc(all, func(p Process) bool { return p.Name == name })
		if i < 0 {
			all, i = append(all, Process{Name: name}), len(all)
		}
		return &all[i]
	}
	r := d.reader()
	r.each(ctx, func(s scanner) error {
		l, err := scanListener(s)
		p := find(l.owner)
		host, _, _ := strings.Cut(l.Host, "/") // its name; the rest distinguishes hosts with the same name
		if p.Host = cmp.Or(p.Host, host); p.Alive {
			p.URLs = append(p.URLs, l.URL)
		}
		return err
	}, selectListeners)
	r.each(ctx, func(s scanner) error {
		var owner string
		var work Process
		err := s.Scan(&owner, &work.Staging, &work.Batches, &work.Rows, &work.Deliveries)
		p := find(owner)
		p.Staging = cmp.Or(work.Staging, p.Staging)
		p.Batches, p.Rows, p.Deliveries = p.Batches+work.Batches, p.Rows+work.Rows, p.Deliveries+work.Deliveries
		return err
	}, `SELECT owner, id, 0, 0, 0 FROM runs WHERE state = 'staged' OR filling > 0
		UNION ALL SELECT owner, 0, COUNT(*), CAST(SUM(rows) AS BIGINT), 0 FROM batches WHERE state = 'sending' GROUP BY owner
		UNION ALL SELECT owner, 0, 0, 0, COUNT(*) FROM outbox WHERE owner <> '' GROUP BY owner`)
	if r.err != nil {
		return nil, r.err
	}
	return slices.DeleteFunc(all, func(p Process) bool {
		return !p.Alive && p.Staging == 0 && p.Batches == 0 && p.Deliveries == 0
	}), nil
}

// AddListener records that this process takes deliveries, see [inbox.Listeners].
func (d *DB) AddListener(ctx context.Context, added inbox.Listener) error {
	added.URL, added.Host, added.Verify = clean(added.URL), clean(added.Host), clean(added.Verify)
	added.Sinks = slices.Sorted(slices.Values(added.Sinks))
	return d.run(ctx, func(ctx context.Context, t *tx) {
		me := t.owner()
		for _, name := range list(ctx, t, scanOne[string], "SELECT DISTINCT owner FROM listeners") {
			if !t.isAlive(ctx, name) {
				t.exec(ctx, "DELETE FROM listeners WHERE owner = $1", name)
			}
		}
		t.exec(ctx, `INSERT INTO listeners (owner, url, listener) VALUES ($1, $2, $3)
			ON CONFLICT (owner, url) DO UPDATE SET listener = excluded.listener`, me, added.URL, storedJSON{added})
	})
}

// RunningListeners returns the living listeners, see [inbox.Listeners].
func (d *DB) RunningListeners(ctx context.Context) ([]inbox.Listener, error) {
	return readFor(d, func(r *reader) (running []inbox.Listener) {
		for _, l := range list(ctx, r, scanListener, selectListeners+" ORDER BY owner") {
			if r.isAlive(ctx, l.owner) {
				running = append(running, l.Listener)
			}
		}
		return running
	})
}

const selectListeners = "SELECT owner, listener FROM listeners"

// listener is a row of table listeners; its process may be dead.
type listener struct {
	owner string
	inbox.Listener
}

var scanListener = scanInto(func(l *listener) []any { return []any{&l.owner, storedJSON{&l.Listener}} })

// Problem is a state of the store that no command can have left.
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

// Problems reads the whole store: the result of the database's own check, and whether the tables agree with each
// other. It writes nothing. Others may write meanwhile: each statement sees one moment.
func (d *DB) Problems(ctx context.Context) ([]Problem, error) {
	if err := d.engine.Check(ctx); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && errors.Is(e.Kind, ErrCorrupt) {
			return []Problem{{What: e.Err.Error()}}, nil // then the contents of tables mean nothing
		}
		return nil, err
	}
	var problems []Problem
	r := d.reader()
	for _, c := range consistency {
		if n := value[int64](ctx, r, c.query); n > 0 {
			problems = append(problems, Problem{c.what, n})
		}
	}
	return problems, r.err
}

// consistency lists what the tables must agree on: each query counts the contradictions.
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
		WHERE o.dead = 0 AND o.blocked <> (SELECT COUNT(*) FROM outbox_numbers n WHERE n.entry = o.seq AND EXISTS (
			SELECT 1 FROM outbox_numbers e WHERE e.sink = n.sink AND e.folded = n.folded AND e.entry < n.entry))`},
	{"tracking numbers of missing outbox entries", `SELECT COUNT(*) FROM outbox_numbers n
		WHERE NOT EXISTS (SELECT 1 FROM outbox o WHERE o.seq = n.entry AND o.dead = 0)`},
}
