package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// indexUses has for each index, but those of primary and unique keys, what of a query of
// the store it is for.
var indexUses = map[string]string{
	"runs_by_row":           "runs WHERE first_row <= 7 ORDER BY first_row DESC, id DESC LIMIT 1",
	"batches_of_run":        "batches WHERE run_id = 7",
	"batches_pending":       "batches WHERE run_id = 7 AND state = 'pending'",
	"batches_sending":       "batches WHERE run_id = 7 AND state = 'sending' AND owner = 'x'",
	"rows_apart":            "rows WHERE batch_id = 7 AND state IS NOT NULL",
	"rows_by_state":         "rows WHERE state IN ('rejected', 'unknown')",
	"run_known_rows_by_row": "run_known_rows WHERE run_id = 7 AND row_id <= 9 ORDER BY row_id DESC LIMIT 1",
	"run_batches_by_batch":  "run_batches WHERE batch_id = 7",
	"sightings_by_number":   "sightings WHERE folded = 'x'",
	"sightings_by_router":   "sightings WHERE router_id = 'x' AND router_id <> ''",
	"sightings_by_status":   "sightings WHERE status_id IN (0, 7)",
	"deliveries_released":   "deliveries WHERE released > 7 AND released > 0 ORDER BY released LIMIT 1",
	"deliveries_readmitted": "deliveries WHERE refused = 7 AND refused > 0",
	"deliveries_unverified": "deliveries WHERE verified <> 'yes' AND body IS NOT NULL",
	"deliveries_sources":    "deliveries WHERE verified = 'yes' AND rtrim(remote, '0123456789') = 'x' LIMIT 1",
	"events_by_key":         "events WHERE event_key = 'x' AND mark = '' AND synthetic = 0",
	"events_by_delivery":    "events WHERE delivery = 7",
	"events_by_number":      "events WHERE folded = 'x'",
	"events_unverified":     "events WHERE folded = 'x' AND verified <> 'yes' AND mark = '' AND synthetic = 0",
	"events_by_other_id":    "events WHERE length(event_key) > 16 AND event_id <> '' AND length(event_id) <= 512 AND event_id >= 'x' AND event_id <= 'y'",
	"refused_groups":        "refused WHERE class = 7 AND source = 'x' AND minute = 7 ORDER BY lot LIMIT 1",
	"outbox_ready":          "outbox WHERE sink = 7 AND blocked = 0 AND owner = '' AND dead = 0 AND due > 7 ORDER BY due, seq LIMIT 1",
	"outbox_claimed":        "outbox WHERE sink = 7 AND owner <> ''",
	"outbox_dead":           "outbox WHERE sink = 7 AND dead <> 0",
	"outbox_numbers_of":     "outbox_numbers WHERE entry = 7",
}

// What a reader of the store has to hold in the head. The number only goes down.
func TestServerHasFewTables(t *testing.T) {
	const most = 26
	if n := strings.Count(schemaText, "CREATE TABLE "); n == 0 || n > most {
		t.Errorf("the store of a server has %d tables; want at most %d", n, most)
	}
}

func TestEachIndexIsUsed(t *testing.T) {
	conn := newSchema(t)
	if conn == nil {
		return
	}
	lines := func(query string) []string {
		rows, err := conn.Query(t.Context(), query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		return all
	}
	for _, name := range lines(`SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
		WHERE i.relnamespace = to_regnamespace(current_schema()) AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.oid)`) {
		if indexUses[name] == "" {
			t.Errorf("no query uses index %s", name)
		}
	}
	exec(t, conn, "SET enable_seqscan = off") // the tables are empty
	for index, query := range indexUses {
		plan := strings.Join(lines("EXPLAIN SELECT 1 FROM "+query), "\n")
		if !strings.Contains(plan, " "+index+" ") {
			t.Errorf("%s is not used:\n%s", index, plan)
		}
	}
}
