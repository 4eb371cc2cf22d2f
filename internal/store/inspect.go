package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// Inspection is what [DB.Inspect] found.
type Inspection struct {
	Problems  []Problem
	Damage    error     // see [DB.Damage]; nil without problems
	Settings  []Setting // of the database
	Tables    []TableSize
	Processes []Process // that have the store open to write, and the dead ones that left work
	FreeBytes *int64    // in the file, for reuse; nil for a store that is no file
}

// Setting is one of the database that matters to the store.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Warning string `json:"warning,omitempty"` // what is wrong with it, empty for nothing
}

// TableSize is how much a table holds.
type TableSize struct {
	Name  string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"` // on disk, indexes included
}

// Process is one that has the store open to write, or died and left work.
type Process struct {
	Name    string // as owner
	Alive   bool
	Host    string // empty if it is not known
	PID     int64  // 0 if it is not known
	Command string // likewise empty
	Version string
	Started time.Time // zero if it is not known

	URLs       []string // where it takes deliveries
	Staging    int64    // the run it reads the input of, 0 for none
	Batches    int64    // that it is sending
	Rows       int64    // in them
	Deliveries int64    // that it is forwarding
}

// Inspect reads the whole store, see [DB.Problems], and what is known of its size, its
// database and those who use it. It writes nothing.
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

// Settings returns those of the database that matter to the store.
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
	err = d.each(ctx, func(s scanner) error {
		var name string
		var n int64
		err := s.Scan(&name, &n)
		bytes[name] = n
		return err
	}, d.engine.Upkeep.TableBytes)
	if err != nil {
		return err
	}
	for _, t := range copied {
		size := TableSize{Name: t.name, Bytes: bytes[t.name]}
		if _, err := d.row(ctx, []any{&size.Rows}, "SELECT COUNT(*) FROM "+t.name); err != nil {
			return err
		}
		i.Tables = append(i.Tables, size)
	}
	return nil
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
	if err := d.each(ctx, func(s scanner) error {
		l, err := scanListener(s)
		p := find(l.owner)
		host, _, _ := strings.Cut(l.Host, "/") // its name; what follows tells it from others
		if p.Host = cmp.Or(p.Host, host); p.Alive {
			p.URLs = append(p.URLs, l.URL)
		}
		return err
	}, selectListeners); err != nil {
		return nil, err
	}
	for _, work := range []struct {
		columns string
		set     func(p *Process, number, rows int64)
	}{
		{"id, 0 FROM runs WHERE state = 'staged' OR filling > 0", func(p *Process, run, _ int64) { p.Staging = run }},
		{
			"COUNT(*), CAST(SUM(rows) AS BIGINT) FROM batches WHERE state = 'sending' GROUP BY owner",
			func(p *Process, n, rows int64) { p.Batches, p.Rows = n, rows },
		},
		{"COUNT(*), 0 FROM outbox WHERE owner <> '' GROUP BY owner", func(p *Process, n, _ int64) { p.Deliveries = n }},
	} {
		if err := d.each(ctx, func(s scanner) error {
			var owner string
			var number, rows int64
			err := s.Scan(&owner, &number, &rows)
			work.set(find(owner), number, rows)
			return err
		}, "SELECT owner, "+work.columns); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(p Process) bool {
		return !p.Alive && p.Staging == 0 && p.Batches == 0 && p.Deliveries == 0
	}), nil
}

// AddListener records that this process takes deliveries, see [inbox.Listeners].
func (d *DB) AddListener(ctx context.Context, added inbox.Listener) error {
	added.URL, added.Host, added.Verify = clean(added.URL), clean(added.Host), clean(added.Verify)
	added.Sinks = slices.Sorted(slices.Values(added.Sinks))
	text, err := json.Marshal(added)
	if err != nil {
		return err
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		me, err := t.owner(ctx)
		if err != nil {
			return err
		}
		owners, err := list(ctx, t.each, scanOne[string], "SELECT DISTINCT owner FROM listeners")
		if err != nil {
			return err
		}
		for _, name := range owners {
			alive, err := t.isAlive(ctx, name)
			if err == nil && !alive {
				_, err = t.exec(ctx, "DELETE FROM listeners WHERE owner = $1", name)
			}
			if err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, `INSERT INTO listeners (owner, url, listener) VALUES ($1, $2, $3)
			ON CONFLICT (owner, url) DO UPDATE SET listener = excluded.listener`, me, added.URL, string(text))
		return err
	})
}

// RunningListeners returns the listeners that live, see [inbox.Listeners].
func (d *DB) RunningListeners(ctx context.Context) ([]inbox.Listener, error) {
	all, err := list(ctx, d.each, scanListener, selectListeners+" ORDER BY owner")
	var running []inbox.Listener
	for _, l := range all {
		if err != nil {
			return nil, err
		}
		var alive bool
		if alive, err = d.isAlive(ctx, l.owner); alive {
			running = append(running, l.Listener)
		}
	}
	return running, err
}

const selectListeners = "SELECT owner, listener FROM listeners"

// listener is a row of the table: a listener, perhaps of a dead process.
type listener struct {
	owner string
	inbox.Listener
}

var scanListener = scanInto(func(l *listener) []any { return []any{&l.owner, storedJSON{&l.Listener}} })
