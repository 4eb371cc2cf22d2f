package store

import (
	"context"
	"strconv"
	"strings"
)

// sinkRow begins the rows of sinks that listeners send to.
const sinkRow = "sink:"

// AddListener records that this process takes deliveries, see [inbox.Listeners].
func (d *DB) AddListener(ctx context.Context, url string, sinks ...int64) error {
	rows := []string{clean(url)}
	for _, sink := range sinks {
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

// RunningListeners returns where deliveries are taken, see [inbox.Listeners].
func (d *DB) RunningListeners(ctx context.Context) ([]string, error) {
	var urls []string
	err := d.eachRunning(ctx, func(row string) {
		if !strings.HasPrefix(row, sinkRow) {
			urls = append(urls, row)
		}
	})
	return urls, err
}

// RunningSinks returns where running listeners send to, see [inbox.Listeners].
func (d *DB) RunningSinks(ctx context.Context) ([]int64, error) {
	var sinks []int64
	err := d.eachRunning(ctx, func(row string) {
		if id, err := strconv.ParseInt(strings.TrimPrefix(row, sinkRow), 10, 64); err == nil {
			sinks = append(sinks, id)
		}
	})
	return sinks, err
}

// eachRunning calls do with the rows of listeners that live.
func (d *DB) eachRunning(ctx context.Context, do func(row string)) error {
	all, err := list(ctx, d.each, scanListener, selectListeners)
	if err != nil {
		return err
	}
	for _, l := range all {
		alive, err := d.isAlive(ctx, l.owner)
		if err != nil {
			return err
		}
		if alive {
			do(l.url)
		}
	}
	return nil
}

const selectListeners = "SELECT owner, url FROM listeners"

// listener is a row of the table: a listener, perhaps of a dead process.
type listener struct{ owner, url string }

func scanListener(s scanner) (l listener, err error) {
	err = s.Scan(&l.owner, &l.url)
	return l, err
}
