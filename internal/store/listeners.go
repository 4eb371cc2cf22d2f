package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
)

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

func scanListener(s scanner) (l listener, err error) {
	var text []byte
	if err := s.Scan(&l.owner, &text); err != nil {
		return l, err
	}
	err = json.Unmarshal(text, &l.Listener)
	return l, err
}
