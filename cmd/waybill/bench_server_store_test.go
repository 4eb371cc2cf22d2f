//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store/postgres"
)

// serverSQL fills an empty store on PostgreSQL with the trackings and events of
// largeSQL.
const serverSQL = `
SET synchronous_commit TO off; SET work_mem TO '64MB';
INSERT INTO account (id, name, salt) VALUES (1, '` + largeAccount + `', uuid_send(gen_random_uuid()));
UPDATE counters SET value = :rows::bigint * 111 / 100 WHERE name IN ('row', 'indexed');
UPDATE counters SET value = 23 WHERE name = 'run';
UPDATE counters SET value = 5 * :rows::bigint WHERE name = 'followed';

INSERT INTO runs (id, state, owner, created, files, mode, batch_size, first_row, last_row, new_rows, known_rows,
		known_pending, known_open, other_carrier, repeats, requests, last_sent)
	SELECT i, 'open', '', :now - (24 - i) * 86400000, '["orders.csv"]', 'v2', 1000, first_row, last_row,
		CASE WHEN i IN (21, 22) THEN 0 ELSE last_row - first_row + 1 END, CASE WHEN i IN (21, 22) THEN last_row - first_row + 1 ELSE 0 END,
		0, 0, 0, 0, :rows / 20000, :now - (24 - i) * 86400000
	FROM (SELECT i, (i - 1) * :rows / 20 + 1 AS first_row, CASE i WHEN 23 THEN :rows / 100 * 111 ELSE i * :rows / 20 END AS last_row FROM generate_series(1::bigint, 23) i) spans;
INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step) VALUES (21, :rows + 1, 1, :rows / 20, 0, 2, 1);
INSERT INTO run_known_rows (run_id, pos, row_id, rows, file, line, step)
	SELECT 22, :rows / 100 * 105 + 1 + i, i * 7919 % (:rows / 20) * 20 + 1, 1, 0, i + 2, 1 FROM generate_series(0::bigint, :rows / 20 - 1) i;

INSERT INTO batches (id, run_id, state, rows, first_row, last_row, claimed, began, took, http_status, reason)
	SELECT i, (i * 1000 - 1) * 20 / :rows + 1, CASE WHEN i * 1000 BETWEEN :rows / 100 * 99 + 1 AND :rows THEN 'pending' ELSE 'accepted' END, 1000,
		(i - 1) * 1000 + 1, i * 1000, 0, :now - 2592000000, 200000, 200, ''
	FROM generate_series(1::bigint, :rows / 100000 * 111) i WHERE i <= :rows / 1000 OR i > :rows / 1000 + :rows / 10000;
INSERT INTO run_batches (run_id, batch_id, rows) SELECT run_id, id, rows FROM batches
	UNION ALL SELECT 21, id, rows FROM batches WHERE run_id = 1
	UNION ALL SELECT 22, id, rows / 20 FROM batches WHERE run_id <= 20;

INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line, state, reason)
	SELECT i, 'ORD-' || lpad(i::text, 9, '0'), '1Z999AA1' || lpad((i - (i % 50 = 0)::int)::text, 10, '0'), CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN 'ups' WHEN 2 THEN 'dhl' ELSE 'usps' END,
		(i - 1) / 1000 + 1, 0, (i - 1) % (:rows / 20) + 2, CASE i % 200 WHEN 77 THEN 'rejected' END,
		CASE i % 200 WHEN 77 THEN 'rawTrackingNumber is not valid (HTTP 422)' END
	FROM generate_series(1::bigint, :rows / 100 * 111) i WHERE i <= :rows OR i > :rows / 100 * 110;
INSERT INTO numbers (folded, row_id) SELECT number, id FROM rows ORDER BY number, id;

INSERT INTO statuses (id, phase, status, status_label, status_track) OVERRIDING SYSTEM VALUE VALUES
	(1, 'processed', '4', 'RETURNED', 'returned'), (2, 'processing', '', '', ''), (3, 'processed', '7', 'IN TRANSIT', 'in_transit'),
	(4, 'processed', '9', 'EXCEPTION', 'exception'), (5, 'processed', '1', 'DELIVERED', 'delivered');
SELECT setval(pg_get_serial_sequence('statuses', 'id'), 5);
INSERT INTO sightings (id, refer_id, number, folded, status_id, phase, status, status_label, status_track, latest_event, latest_time, carrier,
		seen, source, router_id, as_of, event, shared, checkpoint, updated, transit)
	SELECT s.id, s.refer_id, s.number, s.number, t.id, t.phase, t.status, t.status_label, t.status_track,
		(ARRAY['Delivered, front door', '', 'Departed from facility', 'Delivery attempted, nobody there', 'Delivered, front door'])[t.id],
		CASE t.id WHEN 2 THEN '' ELSE to_char(to_timestamp((s.seen - 3600000) / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END,
		CASE s.carrier WHEN '' THEN 'ups' ELSE s.carrier END, s.seen, CASE WHEN s.chance % 5 = 0 THEN 'query' ELSE 'event' END,
		lpad(to_hex(s.id * 2654435761 % 4294967296), 8, '0') || '-9f2d-4c1e-8b3a-' || lpad(to_hex(s.id), 12, '0'),
		s.seen - 60000, CASE WHEN s.chance % 5 = 0 THEN 0 ELSE 4 * :rows::bigint + s.id END, 0,
		s.seen - 3600000, s.seen - 60000, CASE t.status WHEN '1' THEN 43200000 * (1 + s.id % 20) ELSE 0 END
	FROM (SELECT id, refer_id, number, carrier, :now - 1000 * ((id * 7919) % 2592000) AS seen, (id * 2654435761 / 8) % 1000 AS chance
		FROM rows WHERE state IS NULL AND id <= :rows / 100 * 99) s
	JOIN statuses t ON t.id = CASE WHEN s.id % (:rows / 40) = 1234 THEN 1 WHEN s.chance < 20 THEN 2 WHEN s.chance < 80 THEN 3 WHEN s.chance < 90 THEN 4 ELSE 5 END
	WHERE s.chance < 970 ORDER BY s.id;
INSERT INTO sightings (id, refer_id, number, folded, status_id, phase, status, status_label, status_track, latest_event, latest_time, carrier,
		seen, source, router_id, as_of, event, shared, checkpoint, updated)
	SELECT -i, '', 'LX' || lpad(i::text, 9, '0') || 'DE', 'LX' || lpad(i::text, 9, '0') || 'DE', 5, 'processed', '1', 'DELIVERED', 'delivered', 'Delivered, front door', '2026-03-05T03:10:00Z', '',
		:now - 1000 * ((i * 7919) % 2592000), 'event', md5(i::text), :now, 4 * :rows::bigint + i, 0, :now - 3600000, :now FROM generate_series(1::bigint, :rows - 50, 50) i;
INSERT INTO answers (refer_id, seen, raw, asked)
	SELECT refer_id, :now, (SELECT string_agg(sha256(int8send(id * 100 + g)), '') FROM generate_series(1, 19) g), :now FROM rows WHERE id <= :rows AND id % 5 = 0;
INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)
	SELECT n.id, COALESCE(s.status_id, 0), COALESCE(NULLIF(s.carrier, ''), r.carrier), CASE COALESCE(s.transit, 0) WHEN 0 THEN -1 ELSE (s.transit + 43200000) / 86400000 END,
		COUNT(*)
	FROM rows r JOIN runs n ON n.id NOT IN (21, 22) AND r.id BETWEEN n.first_row AND n.last_row LEFT JOIN sightings s ON s.id = r.id GROUP BY 1, 2, 3, 4;
INSERT INTO tracking_counts (run_id, status_id, carrier, transit_days, trackings)
	SELECT -1, status_id, carrier, -1, COUNT(*) FROM sightings WHERE id < 0 GROUP BY 2, 3;

INSERT INTO deliveries (seq, received, method, path, raw_query, remote, verified, reason, scheme, secret_name, body_authenticated, single, anomaly, header)
	SELECT i, :now - 2592000000 + i * 25920000000 / :rows, 'POST', '/', '', '203.0.113.7:443', CASE i % 200 WHEN 13 THEN 'unknown' ELSE 'yes' END, '',
		CASE i % 200 WHEN 13 THEN '' ELSE 'hmac-body-hex' END, '', (i % 200 <> 13)::int, 0, '', '' FROM generate_series(1::bigint, :rows / 10) i;
INSERT INTO events (seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time, tracking_number, status, status_track,
		status_label, latest_event, router_id, verified, reason, body_authenticated, mark, anomaly, folded)
	SELECT i, (i - 1) / 50 + 1, :now - 2592000000 + i * 518400000 / :rows, (i - 1) % 50, (i - 1) % 50 * 900 + 1, 899, uuid_send(gen_random_uuid()), sha256(int8send(i)),
		lpad(to_hex(i * 2654435761 % 4294967296), 8, '0') || '-9f2d-4c1e-8b3a-' || lpad(to_hex(i), 12, '0'), CASE WHEN last THEN 'router.delivered' ELSE 'router.updated' END,
		'2026-03-05T03:10:00.000Z', number, CASE WHEN last THEN '1' ELSE '7' END, CASE WHEN last THEN 'delivered' ELSE 'in_transit' END,
		CASE WHEN last THEN 'DELIVERED' ELSE 'IN TRANSIT' END, CASE WHEN last THEN 'Delivered, front door' ELSE 'Departed from facility' END,
		lpad(to_hex(t * 2654435761 % 4294967296), 8, '0') || '-9f2d-4c1e-8b3a-' || lpad(to_hex(t), 12, '0'), CASE ((i - 1) / 50 + 1) % 200 WHEN 13 THEN 'unknown' ELSE 'yes' END, '',
		(((i - 1) / 50 + 1) % 200 <> 13)::int, '', '', number
	FROM (SELECT i, t, i > :events - :rows AS last, CASE t % 50 WHEN 1 THEN 'LX' || lpad(t::text, 9, '0') || 'DE' ELSE '1Z999AA1' || lpad((t - (t % 50 = 0)::int)::text, 10, '0') END AS number
		FROM (SELECT i, (i - 1) % :rows + 1 AS t FROM generate_series(1::bigint, :events) i) n) e;
`

// fillServer makes a store with so many trackings, and five times as many events, on
// the server.
func fillServer(b *testing.B, url string, rows int) {
	b.Helper()
	began := time.Now()
	target, err := postgres.Parse(url, postgres.ParseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	d, err := postgres.Open(b.Context(), target, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	sql := strings.NewReplacer(":rows", strconv.Itoa(rows)+"::bigint", ":events", strconv.Itoa(5*rows)+"::bigint", ":now", strconv.FormatInt(time.Now().UnixMilli(), 10)).Replace(serverSQL)
	conn := pgtest.Connect(b, url).PgConn()
	for _, query := range []string{sql, "VACUUM ANALYZE"} {
		if _, err := conn.Exec(b.Context(), query).ReadAll(); err != nil {
			b.Fatal(err)
		}
	}
	if d, err = postgres.Open(b.Context(), target, postgres.Options{}); err != nil {
		b.Fatal(err)
	}
	if rows >= dividedRows {
		err = consistent(b.Context(), d)
	}
	if err := errors.Join(err, d.Close()); err != nil {
		b.Fatal(err)
	}
	b.Logf("a store of %d trackings and %d events was made in %v", rows, 5*rows, time.Since(began).Round(time.Second))
}

// BenchmarkServerList measures lists of a store on PostgreSQL with a million trackings
// and five million events. A first page and sums have 300 ms.
func BenchmarkServerList(b *testing.B) {
	url, ok := pgtest.URL(b)
	if !ok {
		return
	}
	w := newHome(b)
	fillServer(b, url, rowsOf(b, 1_000_000))
	w.env = append(w.env, "WAYBILL_ACCOUNT="+largeAccount, "WAYBILL_STORE="+url)
	w.run("list", "--limit", "1") // whatever the first list of a store has to do
	for _, command := range []string{
		"list --limit 20", "list --limit 20 --status delivered", "list --limit 20 --status EXCEPTION", "list --limit 20 --status RETURNED",
		"list --limit 20 --run 1", fmt.Sprint("list --limit 20 --run ", runAgain), fmt.Sprint("list --limit 20 --run ", runScattered),
		"list --limit 20 --updated 1h", "list --limit 20 --updated 29d", "list --limit 20 --updated ..48h", "list --limit 20 --created 29d",
		"list --limit 20 --status rejected", "list --limit 20 --status pending",
		"list --limit 20 --sort -received", "list --limit 20 --sort reference", "list --limit 20 --sort number", "list --limit 20 --sort status",
		"list --limit 20 --refer-id ORD-00010*", "list --limit 20 --status not-checked", "list --limit 20 --stuck",
		"stats", "stats --run 1", "stats --carrier dhl", "events list --limit 20", "runs list",
	} {
		b.Run(strings.ReplaceAll(command, " ", "_"), func(b *testing.B) {
			w.best(b, func() { measure(b, w.command(append(strings.Fields(command), "-o", "csv")...)) })
		})
	}
}
