package store

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// What begins the rows of a listener that are not its URL.
const (
	hostRow = "host:" // its computer
	sinkRow = "sink:" // a sink that it sends to

	verifyRow = "verify:" // how it verifies
)

// AddListener records that this process takes deliveries, see [inbox.Listeners].
func (d *DB) AddListener(ctx context.Context, added inbox.Listener) error {
	rows := []string{clean(added.URL)}
	if added.Host != "" {
		rows = append(rows, hostRow+clean(added.Host))
	}
	if added.Verify != "" {
		rows = append(rows, verifyRow+clean(added.Verify))
	}
	for _, sink := range added.Sinks {
		rows = append(rows, sinkRow+strconv.FormatInt(sink, 10))
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		me, err := t.owner(ctx)
		if err != nil {
			return err
		}
		all, err := list(ctx, t.each, scanListener, selectListeners)
		if err != nil {
			return err
		}
		for _, l := range all {
			alive, err := t.isAlive(ctx, l.owner)
			if err == nil && !alive {
				_, err = t.exec(ctx, "DELETE FROM listeners WHERE owner = $1", l.owner)
			}
			if err != nil {
				return err
			}
		}
		for _, row := range rows {
			if _, err := t.exec(ctx, "INSERT INTO listeners (owner, url) VALUES ($1, $2) ON CONFLICT DO NOTHING", me, row); err != nil {
				return err
			}
		}
		return nil
	})
}

// RunningListeners returns the listeners that live, see [inbox.Listeners].
func (d *DB) RunningListeners(ctx context.Context) ([]inbox.Listener, error) {
	all, err := list(ctx, d.each, scanListener, selectListeners+" ORDER BY owner")
	if err != nil {
		return nil, err
	}
	var running []inbox.Listener
	for len(all) > 0 {
		rows := all
		if n := slices.IndexFunc(all, func(l listener) bool { return l.owner != all[0].owner }); n > 0 {
			rows = all[:n]
		}
		all = all[len(rows):]
		alive, err := d.isAlive(ctx, rows[0].owner)
		if err != nil {
			return nil, err
		}
		if alive {
			running = append(running, listenersOf(rows)...)
		}
	}
	return running, nil
}

// listenersOf returns the listeners of one process.
func listenersOf(rows []listener) []inbox.Listener {
	var all []inbox.Listener
	var shared inbox.Listener
	for _, row := range rows {
		if host, ok := strings.CutPrefix(row.url, hostRow); ok {
			shared.Host = host
		} else if verify, ok := strings.CutPrefix(row.url, verifyRow); ok {
			shared.Verify = verify
		} else if sink, ok := strings.CutPrefix(row.url, sinkRow); !ok {
			all = append(all, inbox.Listener{URL: row.url})
		} else if id, err := strconv.ParseInt(sink, 10, 64); err == nil {
			shared.Sinks = append(shared.Sinks, id)
		}
	}
	slices.Sort(shared.Sinks)
	for i := range all {
		all[i].Host, all[i].Sinks, all[i].Verify = shared.Host, shared.Sinks, shared.Verify
	}
	return all
}

const selectListeners = "SELECT owner, url FROM listeners"

// listener is a row of the table: a listener, perhaps of a dead process.
type listener struct{ owner, url string }

func scanListener(s scanner) (l listener, err error) {
	err = s.Scan(&l.owner, &l.url)
	return l, err
}
