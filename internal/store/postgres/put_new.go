package postgres

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybill-cli/waybill/internal/store"
)

// countNew counts a transaction of owner $1, as [writer.count] does, if its arrivals are new:
// keys are $4. It also tells the statements after it whether that is so. A number up to $2 or
// a schema beyond $3 is left to [writer.count] too.
const countNew = `WITH last (delivery, event, erased) AS MATERIALIZED (SELECT ` + store.LastNumbers + `),
	count AS (UPDATE counters SET value = value + 1 FROM last WHERE name = 'commits' AND value >= $2 AND NOT last.erased
		AND (SELECT version FROM meta) <= $3
		AND EXISTS (SELECT 1 FROM owner_commits WHERE owner = $1)
		AND NOT EXISTS (SELECT 1 FROM events WHERE mark = '' AND event_key = ANY($4)) RETURNING value),
	own AS (UPDATE owner_commits SET number = count.value FROM count WHERE owner = $1 RETURNING number)
	SELECT COALESCE((SELECT number FROM own), 0), ` + clockMillis + `, last.delivery, last.event,
		set_config('` + store.LastDeliverySetting + `', last.delivery::text, true), set_config('` + store.LastEventSetting + `', last.event::text, true),
		set_config('` + store.StoresSetting + `', (EXISTS (SELECT 1 FROM own))::text, true) FROM last`

// putNew is for [store.Engine]. A transaction that stores nothing is one that only read.
func (w *writer) putNew(ctx context.Context, conn *sql.Conn, n store.NewArrivals) (before store.Last, stored bool, err error) {
	name, _ := w.engine.owners.own()
	if name == "" || w.isFirst || name != w.lastOwner || w.lost != nil || w.engine.backends.arePooled() {
		return store.Last{}, false, nil //nolint:nilerr // a transaction step by step reports w.lost
	}
	var number, shown int64
	var alive bool
	sent := uptime()
	err = native(conn, func(on *pgx.Conn) error {
		err := rollBackAfter(ctx, on, w.sendNew(ctx, on, name, n, &number, &shown, &before))
		alive = !on.IsClosed() && on.PgConn().TxStatus() == 'I'
		return err
	})
	switch {
	case err == nil && number == 0, err != nil && alive && !breaks(err):
		return store.Last{}, false, nil
	case err == nil:
		w.engine.clock.observe(sent, uptime(), shown)
		w.committed, w.lastOwner, w.known, w.last = number, name, before.Delivery, nil
		return before, true, nil
	}
	w.owner = name
	o, err := w.findOutcome(ctx, conn, err)
	switch {
	case err != nil:
		return store.Last{}, false, err
	case o.stored != n.Deliveries: // which numbers they got is not certain
		return store.Last{}, false, w.engine.trouble(store.ErrUnreachable, errUnknown)
	}
	return store.Last{Delivery: o.delivery - 1, Event: max(0, o.event-1)}, true, nil
}

// sendNew sends the whole transaction and reads what the server says.
func (w *writer) sendNew(ctx context.Context, on *pgx.Conn, name string, n store.NewArrivals, number, shown *int64, before *store.Last) error {
	var batch pgx.Batch
	for _, text := range w.beginning(name) {
		batch.Queue(text)
	}
	begins := batch.Len()
	batch.Queue(countNew, name, w.committed, store.SchemaVersion, n.Keys)
	for _, s := range n.Statements {
		batch.Queue(s.Text, s.Args...)
	}
	batch.Queue("COMMIT")
	results := on.SendBatch(ctx, &batch)
	_, err := readTags(results, begins)
	if err == nil {
		err = results.QueryRow().Scan(number, shown, &before.Delivery, &before.Event, nil, nil, nil)
	}
	var tag pgconn.CommandTag
	if err == nil {
		tag, err = readTags(results, len(n.Statements)+1)
	}
	if err = cmp.Or(err, results.Close()); err == nil && tag.String() != "COMMIT" {
		err = errRolledBack
	}
	return err
}
