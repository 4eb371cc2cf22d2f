package store

import "context"

// AddListener records that this process takes deliveries, see [inbox.Listeners].
func (d *DB) AddListener(ctx context.Context, url string) error {
	me, err := d.owner.acquire()
	if err != nil {
		return d.fail("lock", err)
	}
	return d.run(ctx, func(ctx context.Context, t *tx) error {
		all, err := list(ctx, t.each, scanListener, selectListeners)
		if err != nil {
			return err
		}
		for _, l := range all {
			alive, err := d.owner.isAlive(l.owner)
			if err == nil && !alive {
				_, err = t.exec(ctx, "DELETE FROM listeners WHERE owner = $1", l.owner)
			}
			if err != nil {
				return err
			}
		}
		_, err = t.exec(ctx, "INSERT INTO listeners (owner, url) VALUES ($1, $2) ON CONFLICT DO NOTHING", me, clean(url))
		return err
	})
}

// RunningListeners returns where deliveries are taken, see [inbox.Listeners].
func (d *DB) RunningListeners(ctx context.Context) ([]string, error) {
	all, err := list(ctx, d.each, scanListener, selectListeners)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, l := range all {
		alive, err := d.owner.isAlive(l.owner)
		if err != nil {
			return nil, d.fail("lock", err)
		}
		if alive {
			urls = append(urls, l.url)
		}
	}
	return urls, nil
}

const selectListeners = "SELECT owner, url FROM listeners"

// listener is a row of the table: a listener, perhaps of a dead process.
type listener struct{ owner, url string }

func scanListener(s scanner) (l listener, err error) {
	err = s.Scan(&l.owner, &l.url)
	return l, err
}
