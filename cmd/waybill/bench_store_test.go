package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// Properties of the large store. Its rows are of runs of equal size. Two more
// runs sent nothing new: the first run's input again, and every 20th row in no
// order.
const (
	largeAccount = "bench"
	lastRun      = 20
	runAgain     = 21
	runScattered = 22
)

// largeSQL fills an empty store, but for counts of rows. :rows is the number of
// rows, :now the time in milliseconds. Numbers by chance are remainders of
// products with a large prime.
//
// Of the rows, 1 in 200 is rejected and 1 in 50 has the number of the row before
// it; the last 1 % are pending. 3 % of the accepted were never asked about, 90 %
// are delivered, about 35 are "RETURNED". 2 % of the events are of numbers that
// no row has, 1 delivery in 200 did not verify.
const largeSQL = `
INSERT INTO account (id, name, salt) VALUES (1, '` + largeAccount + `', randomblob(16));
UPDATE counters SET value = :rows * 111 / 100 WHERE name = 'row';
UPDATE counters SET value = 23 WHERE name = 'run';
UPDATE counters SET value = 5 * :rows WHERE name = 'followed';

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 23),
	spans (i, first_row, last_row) AS (SELECT i, (i - 1) * :rows / 20 + 1, CASE i WHEN 23 THEN :rows * 111 / 100 ELSE i * :rows / 20 END FROM n)
INSERT INTO runs (id, state, owner, created, files, mode, batch_size, first_row, last_row, new_rows, known_rows,
		known_pending, known_open, other_carrier, repeats, requests, last_sent)
	SELECT i, 'open', '', :now - (24 - i) * 86400000, '["orders.csv"]', 'v2', 1000, first_row, last_row,
		CASE WHEN i IN (21, 22) THEN 0 ELSE last_row - first_row + 1 END, CASE WHEN i IN (21, 22) THEN last_row - first_row + 1 ELSE 0 END,
		0, 0, 0, 0, :rows / 20000, :now - (24 - i) * 86400000 FROM spans;
INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step) VALUES (21, :rows + 1, 1, :rows / 20, 0, 2, 1);
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :rows / 20 - 1)
INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step)
	SELECT 22, :rows * 105 / 100 + 1 + i, i * 7919 % (:rows / 20) * 20 + 1, 1, 0, i + 2, 1 FROM n;

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT CASE i WHEN :rows / 1000 THEN :rows * 11 / 10000 ELSE i END + 1 FROM n WHERE i < :rows * 111 / 100000)
INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
	SELECT i, (i * 1000 - 1) * 20 / :rows + 1, CASE WHEN i * 1000 BETWEEN :rows * 99 / 100 + 1 AND :rows THEN 'pending' ELSE 'accepted' END, 1000,
		(i - 1) * 1000 + 1, i * 1000, 0, :now - 2592000000, 200000, 200, '' FROM n;
INSERT INTO run_batches (run_id, batch_id, rows) SELECT run_id, id, rows FROM batches
	UNION ALL SELECT 21, id, rows FROM batches WHERE run_id = 1
	UNION ALL SELECT 22, id, rows / 20 FROM batches WHERE run_id <= 20;

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT CASE i WHEN :rows THEN :rows * 11 / 10 ELSE i END + 1 FROM n WHERE i < :rows * 111 / 100)
INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line, state, reason)
	SELECT i, printf('ORD-%09d', i), printf('1Z999AA1%010d', i - (i % 50 = 0)), CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN 'ups' WHEN 2 THEN 'dhl' ELSE 'usps' END,
		(i - 1) / 1000 + 1, 0, (i - 1) % (:rows / 20) + 2, CASE i % 200 WHEN 77 THEN 'rejected' END,
		CASE i % 200 WHEN 77 THEN 'rawTrackingNumber is not valid (HTTP 422)' END FROM n;

CREATE TEMP TABLE found (id INTEGER PRIMARY KEY, refer_id, number, phase, status, status_label, status_track, latest_event, latest_time, carrier,
	seen, source, router_id, as_of, event, shared, checkpoint, updated);
INSERT INTO found
	SELECT id, refer_id, number, CASE WHEN chance < 20 AND NOT rare THEN 'processing' ELSE 'processed' END,
		CASE WHEN rare THEN '4' WHEN chance < 20 THEN '' WHEN chance < 80 THEN '7' WHEN chance < 90 THEN '9' ELSE '1' END,
		CASE WHEN rare THEN 'RETURNED' WHEN chance < 20 THEN '' WHEN chance < 80 THEN 'IN TRANSIT' WHEN chance < 90 THEN 'EXCEPTION' ELSE 'DELIVERED' END,
		CASE WHEN rare THEN 'returned' WHEN chance < 20 THEN '' WHEN chance < 80 THEN 'in_transit' WHEN chance < 90 THEN 'exception' ELSE 'delivered' END,
		CASE WHEN chance < 20 THEN '' WHEN chance < 80 THEN 'Departed from facility' WHEN chance < 90 THEN 'Delivery attempted, nobody there' ELSE 'Delivered, front door' END,
		CASE WHEN chance < 20 THEN '' ELSE strftime('%Y-%m-%dT%H:%M:%SZ', (seen - 3600000) / 1000, 'unixepoch') END,
		CASE carrier WHEN '' THEN 'ups' ELSE carrier END, seen, CASE WHEN chance % 5 = 0 THEN 'query' ELSE 'event' END,
		printf('%08x-9f2d-4c1e-8b3a-%012x', id * 2654435761 % 4294967296, id), seen - 60000, CASE WHEN chance % 5 = 0 THEN 0 ELSE 4 * :rows + id END, 0,
		seen - 3600000, seen - 60000
	FROM (SELECT *, :now - 1000 * ((id * 7919) % 2592000) AS seen, (id * 2654435761 / 8) % 1000 AS chance,
		id % (:rows / 40) = 1234 AS rare FROM rows)
	WHERE chance < 970 AND state IS NULL AND id <= :rows * 99 / 100 ORDER BY id;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 50 FROM n WHERE i < :rows - 50)
INSERT INTO found
	SELECT -i, '', printf('LX%09dDE', i), 'processed', '1', 'DELIVERED', 'delivered', 'Delivered, front door', '2026-03-05T03:10:00Z', '',
		:now - 1000 * ((i * 7919) % 2592000), 'event', '', :now, 4 * :rows + i, 0, :now - 3600000, :now FROM n;
INSERT INTO statuses (phase, status, status_label, status_track)
	SELECT DISTINCT phase, status, status_label, status_track FROM found;
INSERT INTO sightings (id, refer_id, number, folded, status_id, phase, status, status_label, status_track, latest_event, latest_time, carrier,
		seen, source, router_id, as_of, event, shared, checkpoint, updated)
	SELECT f.id, f.refer_id, f.number, f.number, s.id, f.phase, f.status, f.status_label, f.status_track, f.latest_event, f.latest_time, f.carrier,
		f.seen, f.source, f.router_id, f.as_of, f.event, f.shared, f.checkpoint, f.updated
	FROM found f CROSS JOIN statuses s USING (phase, status, status_label, status_track) ORDER BY f.id;
DROP TABLE found;
INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)
	SELECT -1, status_id, carrier, -1, COUNT(*) FROM sightings WHERE id < 0 GROUP BY 2, 3;

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :rows / 10)
INSERT INTO deliveries (seq, received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly, header)
	SELECT i, :now - 2592000000 + i * 25920000000 / :rows, 'POST', '/', '', '203.0.113.7:443', CASE i % 200 WHEN 13 THEN 'unknown' ELSE 'yes' END, '',
		CASE i % 200 WHEN 13 THEN '' ELSE 'hmac-body-hex' END, '', i % 200 <> 13, 0, '', x'5b5d' FROM n;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5 * :rows)
INSERT INTO events (seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time, tracking_number, status, status_track,
		status_label, latest_event, router_id, verified, reason, body_authenticated, mark, anomaly, folded)
	SELECT i, (i - 1) / 50 + 1, :now - 2592000000 + i * 518400000 / :rows, (i - 1) % 50, (i - 1) % 50 * 900 + 1, 899, randomblob(16), randomblob(32),
		printf('%08x-9f2d-4c1e-8b3a-%012x', i * 2654435761 % 4294967296, i), CASE last WHEN 1 THEN 'router.delivered' ELSE 'router.updated' END,
		'2026-03-05T03:10:00.000Z', number, CASE last WHEN 1 THEN '1' ELSE '7' END, CASE last WHEN 1 THEN 'delivered' ELSE 'in_transit' END,
		CASE last WHEN 1 THEN 'DELIVERED' ELSE 'IN TRANSIT' END, CASE last WHEN 1 THEN 'Delivered, front door' ELSE 'Departed from facility' END,
		printf('%08x-9f2d-4c1e-8b3a-%012x', t * 2654435761 % 4294967296, t), CASE ((i - 1) / 50 + 1) % 200 WHEN 13 THEN 'unknown' ELSE 'yes' END, '',
		((i - 1) / 50 + 1) % 200 <> 13, '', '', number
	FROM (SELECT i, t, last, CASE t % 50 WHEN 1 THEN printf('LX%09dDE', t) ELSE printf('1Z999AA1%010d', t - (t % 50 = 0)) END AS number
		FROM (SELECT i, (i - 1) % :rows + 1 AS t, i > 4 * :rows AS last FROM n));
`

// largeStore returns the path of a store with so many trackings and five times
// as many events. BENCHSTORE names a folder that keeps it for the next run: it
// is to be removed when largeSQL or the schema changes.
func largeStore(b *testing.B, rows int) string {
	b.Helper()
	dir := os.Getenv("BENCHSTORE")
	if dir == "" {
		dir = b.TempDir()
	}
	path := filepath.Join(dir, fmt.Sprintf("large-%d.db", rows))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	began := time.Now()
	if err := errors.Join(os.MkdirAll(dir, 0o700), writeLarge(b.Context(), path+".part", rows)); err != nil {
		b.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+".part"+suffix, path+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			b.Fatal(err)
		}
	}
	b.Logf("a store of %d trackings and %d events was made in %v", rows, 5*rows, time.Since(began).Round(time.Second))
	return path
}

// writeLarge makes a store, fills it and has the store index its numbers.
func writeLarge(ctx context.Context, path string, rows int) (err error) {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	open := func() (*store.DB, error) { return sqlite.Open(ctx, path, store.Options{}) }
	d, err := open()
	if err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)&_pragma=cache_size(-400000)")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	exec := func(query string) {
		if err == nil {
			_, err = db.ExecContext(ctx, query)
		}
	}
	indexes, drop := "", "" // they are made faster when the tables are full
	err = db.QueryRowContext(ctx, `SELECT group_concat(sql, ';'), group_concat('DROP INDEX ' || name, ';') FROM sqlite_master
		WHERE type = 'index' AND sql IS NOT NULL`).Scan(&indexes, &drop)
	exec(drop)
	exec(strings.NewReplacer(":rows", strconv.Itoa(rows), ":now", strconv.FormatInt(time.Now().UnixMilli(), 10)).Replace(largeSQL + largeTransit))
	exec(indexes)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if d, err = open(); err != nil {
		return err
	}
	if rows >= dividedRows {
		err = consistent(ctx, d)
	}
	return errors.Join(err, d.Close())
}

// dividedRows is the least number of rows of which the SQL makes whole parts. Of fewer it makes
// stores to look at, in which the tables do not agree.
const dividedRows = 100_000

// consistent returns an error unless the tables that SQL has filled agree. It has the numbers indexed.
func consistent(ctx context.Context, d *store.DB) error {
	for _, err := range d.Statuses(ctx, ledger.Filter{Order: ledger.ByNumber, Limit: 1}) {
		if err != nil {
			return err
		}
	}
	problems, err := d.Problems(ctx)
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("the store is not consistent: %v", problems)
	}
	return err
}

// largeTransit gives what was delivered transit times of up to ten days.
const largeTransit = `
UPDATE sightings SET transit = 43200000 * (1 + id % 20) WHERE id > 0 AND status = '1';
INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)
	SELECT n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier),
		CASE COALESCE(s.transit, 0) WHEN 0 THEN -1 ELSE (s.transit + 43200000) / 86400000 END, COUNT(*)
	FROM runs n CROSS JOIN rows r ON r.id BETWEEN n.first_row AND n.last_row LEFT JOIN sightings s ON s.id = r.id GROUP BY 1, 2, 3, 4;`
