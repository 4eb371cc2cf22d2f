package store

import (
	"bytes"
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
		all, err := list(ctx, t.each, scanListener, selectListeners)
		if err != nil {
			return err
		}
		for _, l := range all {
			alive, err := t.isAlive(ctx, l.owner)
			switch old, _ := json.Marshal(l.Listener); {
			case err != nil:
			case !alive:
				_, err = t.exec(ctx, "DELETE FROM listeners WHERE owner = $1", l.owner)
			case l.owner == me && l.URL == added.URL && !bytes.Equal(old, text): // it verifies in another way now
				_, err = t.exec(ctx, "DELETE FROM listeners WHERE owner = $1 AND listener = $2", me, string(old))
			}
			if err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, "INSERT INTO listeners (owner, listener) VALUES ($1, $2) ON CONFLICT DO NOTHING",
			me, string(text))
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
