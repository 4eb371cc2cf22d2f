package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// older is what every version of the store had: a run of an accepted and a
// pending row, what was seen of the first, a delivery with two events, one of
// which was sent twice, and a refusal. The numbers of rows stand in no index.
const older = `
INSERT INTO accounts (id, name, salt) VALUES (1, 'https://api.example', x'00');
UPDATE counters SET value = 2 WHERE name IN ('row');
UPDATE counters SET value = 1 WHERE name IN ('run');
INSERT INTO runs VALUES (1, 1, 'open', '', 1000, '["orders.csv"]', 'v2', 1000, 1, 2, 2, 0, 0, 0, 0, 0, 1, 1000);
INSERT INTO batches VALUES (1, 1, 'accepted', 1, 1, 1, NULL, 1000, 1000, 5, 200, ''), (2, 1, 'pending', 1, 2, 2, NULL, 0, 0, 0, 0, '');
INSERT INTO parts VALUES (1, 1, 1), (1, 2, 1);
INSERT INTO rows VALUES (1, 1, 'R1', 'N-1', '', 1, 0, 2, NULL, NULL), (2, 1, 'R2', 'N2', '', 2, 0, 3, NULL, NULL);
INSERT INTO sightings (account_id, refer_id, number, folded, phase, status, status_label, status_track, latest_event, latest_time, carrier, seen, source)
	VALUES (1, 'R1', 'N-1', 'N1', 'processed', '7', 'IN TRANSIT', 'in_transit', 'Left', '', 'dhl', 5000, 'query');
INSERT INTO answers (account_id, refer_id, seen, raw) VALUES (1, 'R1', 5000, x'1f8b0800000000000203ab564a54b232ac0500afac1b5607000000');
INSERT INTO deliveries VALUES (1, 6000, 'POST', x'2f', x'', '127.0.0.1:1', 'yes', '', 'mine', 'env:S', 1, 0, '', x'',
	CAST('[{"eventId":"a","event":"x","eventTime":"1970-01-01T00:00:07Z","data":{"trackingNumber":"N1","status":1}},{"eventId":"a"}]' AS BLOB)),
	(2, 7000, 'POST', x'2f', x'', '127.0.0.1:1', 'no', 'signature_mismatch', 'mine', '', 0, 0, '', x'', CAST('[{"eventId":"b","data":{"trackingNumber":"N2","status":1}}]' AS BLOB));
INSERT INTO events (seq, delivery, received, place, start, length, event_key, sum, event_id, kind, event_time, tracking_number, status, status_track, status_label,
	latest_event, router_id, verified, reason, body_authenticated, mark, anomaly) VALUES
	(1, 1, 6000, 0, 1, 96, x'61', x'00', 'a', 'x', '1970-01-01T00:00:07Z', 'N1', '1', '', '', '', '', 'yes', '', 1, '', ''),
	(2, 1, 6000, 1, 98, 15, x'61', x'01', 'a', '', '', '', '', '', '', '', '', 'yes', '', 1, 'conflict', ''),
	(3, 2, 7000, 0, 1, 57, x'62', x'02', 'b', '', '', 'N2', '1', '', '', '', '', 'no', 'signature_mismatch', 0, '', '');
INSERT INTO refused VALUES (1, 8000, 'POST', x'2f', x'', '127.0.0.1:1', 'no', 'signature_missing', 'mine', '', 0, 0, '', x'', CAST('[]' AS BLOB), 2);
`

// olderTables is the last version whose tables are those of older.
const olderTables = 4

// makeOlder makes a store of a version with all of that in it.
func makeOlder(t *testing.T, path string, steps []string) {
	t.Helper()
	ctx := t.Context()
	if _, err := resolvePath(path, false); err != nil {
		t.Fatal(err)
	}
	openAs := func(version int) {
		t.Helper()
		d, err := openWritable(ctx, path, steps[:version])
		if err != nil {
			t.Fatal(err)
		}
		if err := d.abandon(); err != nil {
			t.Fatal(err)
		}
	}
	openAs(min(len(steps), olderTables))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, older); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	openAs(len(steps))
}

// A store of each older version is brought up to date with all that is in it,
// and a copy is left of what it was.
func TestOlderStoresAreBroughtUpToDate(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for version := 1; version < len(steps); version++ {
		t.Run(fmt.Sprint("from ", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "waybill.db")
			makeOlder(t, path, steps[:version])
			d, err := Open(t.Context(), path, store.Options{MustExist: true})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if d.New() || d.Backup() != fmt.Sprintf("%s.bak-v%d", path, version) {
				t.Errorf("new %v, backup %q", d.New(), d.Backup())
			}
			if err := d.Check(t.Context()); err != nil {
				t.Error(err)
			}
			keepsWhatItHeld(t, d)
			isOfVersion(t, d.Backup(), version)
			again, err := Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if again.Backup() != "" {
				t.Errorf("opened again, it makes a copy: %q", again.Backup())
			}
		})
	}
}

// keepsWhatItHeld looks for all of older, by the ways of now.
func keepsWhatItHeld(t *testing.T, d *store.DB) {
	t.Helper()
	ctx := t.Context()
	const account = "https://api.example"
	var rows []string
	for st, err := range d.Statuses(ctx, account, ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(st.Item.ReferID, st.Item.Number, st.State, st.Unverified)
		if s := st.Sighting; s != nil {
			line += fmt.Sprint(s.Status, s.LatestEvent, s.Source, s.Seen.UnixMilli(), s.AsOf.IsZero())
		}
		rows = append(rows, line)
	}
	if want := []string{"R1N-1accepted07Leftquery5000 true", "R2N2pending3"}; !slices.Equal(rows, want) {
		t.Errorf("rows %q; want %q", rows, want)
	}
	countsOfOlder(t, d)
	dl, err := d.Delivery(ctx, 1)
	if err != nil || dl.Verified != inbox.Yes || len(dl.Body) == 0 {
		t.Errorf("delivery %+v, %v", dl, err)
	}
	counts, err := d.Counts(ctx, true)
	if err != nil || counts.Deliveries != 2 || counts.LastEvent != 3 || counts.Refused != 1 || counts.Unverified != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	var class, minute, size int64
	var source string
	ask(t, d, []any{&class, &source, &minute, &size}, "SELECT class, source, minute, bytes FROM refused")
	if class != 0 || source != "127.0.0.1" || minute != 0 || size != 16384 {
		t.Errorf("refused: class %d, source %q, minute %d, %d bytes", class, source, minute, size)
	}
	at, last, err := d.Followed(ctx)
	if err != nil || at != 0 || last != 3 {
		t.Errorf("followed %d of %d, %v; want what came before to be taken in", at, last, err)
	}
	n, err := d.UnverifiedBytes(ctx)
	if err != nil || n == 0 {
		t.Errorf("%d unverified bytes, %v", n, err)
	}
	// What is new works on what is old.
	if err := d.RecordAssumption(ctx, account, ledger.CheckedAssumption{Assumption: ledger.RefusedNotStored, Holds: true}); err != nil {
		t.Error(err)
	}
	if err := d.Record(ctx, account, []ledger.RecordedAnswer{{ReferID: "R1", Asked: time.UnixMilli(9000), Raw: []byte("{}"), Digest: []byte("d")}}); err != nil {
		t.Error(err)
	}
	var versions []string
	for v, err := range d.AnswerVersions(ctx, account, "R1") {
		versions = append(versions, fmt.Sprint(v.First.UnixMilli(), " ", v.Last.UnixMilli(), " ", string(v.Raw), err))
	}
	if want := []string{`5000 5000 {"a":1}<nil>`, "9000 9000 {}<nil>"}; !slices.Equal(versions, want) {
		t.Errorf("versions %q; want %q", versions, want)
	}
	s, err := d.OpenSink(ctx, inbox.SinkKey{Name: "forward", URL: "http://x"}, &inbox.StartPosition{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Advance(ctx, s.ID, 9, func(rows []inbox.Event) bool { return rows[0].Verified == inbox.Yes })
	if err != nil || len(p.Queued) != 1 || len(p.Skipped) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	dl = inbox.Delivery{Body: []byte(`[{"eventId":"c"}]`), Verified: inbox.Yes}
	if _, err := d.Put(ctx, dl, inbox.Prepare(dl, webhook.Decode(dl.Body))); err != nil {
		t.Error(err)
	}
}

// countsOfOlder compares the counts with what older holds.
func countsOfOlder(t *testing.T, d *store.DB) {
	t.Helper()
	groups, err := d.Count(t.Context(), "https://api.example", ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range groups {
		lines = append(lines, fmt.Sprint(g.Trackings, g.State, g.Phase, g.StatusLabel, g.Carrier, g.Run, g.TransitDays, g.Created.UnixMilli()))
	}
	slices.Sort(lines)
	if want := []string{"1pending1 -1 1000", "1processedIN TRANSITdhl1 -1 1000"}; !slices.Equal(lines, want) {
		t.Errorf("groups %q; want %q", lines, want)
	}
}

// Of a store whose rows are numbered, the counts are made of these.
func TestNumberedRowsAreCounted(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for numbered := range 3 {
		path := filepath.Join(t.TempDir(), "waybill.db")
		makeOlder(t, path, steps[:6])
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(`UPDATE counters SET value = %[1]d WHERE name = 'numbered';
			INSERT INTO numbers (account_id, folded, row_id) SELECT 1, fold, id FROM (SELECT 1 AS id, 'N1' AS fold UNION SELECT 2, 'N2') WHERE id <= %[1]d`, numbered)); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), path, store.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		countsOfOlder(t, d)
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// isOfVersion sees that a file is a whole store of that version.
func isOfVersion(t *testing.T, path string, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var is, deliveries int
	if err := errors.Join(
		db.QueryRowContext(t.Context(), "PRAGMA user_version").Scan(&is),
		db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM deliveries").Scan(&deliveries),
	); err != nil || is != version || deliveries != 2 {
		t.Errorf("%s: version %d with %d deliveries, %v; want version %d with 2", path, is, deliveries, err, version)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want a file for its user alone", info, err)
	}
}

// A store that was written by a newer waybill is left as it is.
func TestNewerStoresAreLeftAlone(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "waybill.db")
	if _, err := resolvePath(path, false); err != nil {
		t.Fatal(err)
	}
	newer, err := openWritable(t.Context(), path, append(slices.Clone(steps), "CREATE TABLE later (x TEXT)"))
	if err != nil {
		t.Fatal(err)
	}
	if err := newer.abandon(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.WithoutCancel(t.Context()), path, store.Options{}); !errors.Is(err, store.ErrTooNew) {
		t.Errorf("%v; want %v", err, store.ErrTooNew)
	}
	after, err := os.ReadFile(path)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("the file has changed (%v)", err)
	}
}

// Numbers that an older version folded by ASCII alone are found as those of
// now, the times of sightings are read, and what waits in an outbox still waits
// for what is before it.
func TestNumbersAreFoldedFurther(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "waybill.db")
	makeOlder(t, path, steps[:4])
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const more = `
INSERT INTO rows VALUES (3, 1, 'R3', 'ä' || char(160) || '-3', '', 2, 0, 4, NULL, NULL);
UPDATE batches SET rows = 2, last_row = 3 WHERE id = 2;
UPDATE counters SET value = 3 WHERE name IN ('row', 'numbered');
INSERT INTO numbers VALUES (1, 'N1', 1), (1, 'N2', 2), (1, 'ä' || char(160) || '3', 3);
INSERT INTO sightings (account_id, refer_id, number, folded, phase, status, status_label, status_track, latest_event, latest_time, carrier, seen, source)
	VALUES (0, '', 'ö' || char(160) || '4', 'ö' || char(160) || '4', 'processed', '7', '', '', '', '2026-01-05T09:00:00.123Z', '', 5000, 'event'),
		(0, '', 'odd', 'ODD', 'processed', '7', '', '', '', 'yesterday', '', 5000, 'event');
INSERT INTO sinks VALUES (1, 'forward', 'http://x', '', 9, 0);
INSERT INTO outbox VALUES (1, 1, 1, 1, 0, '', 1, 0, 0, 0, 0, 0, '', x''), (2, 1, 2, 1, 0, '', 1, 0, 0, 0, 0, 0, '', x'');
INSERT INTO outbox_numbers VALUES (1, 'Ä3', 1), (1, 'N1', 1), (1, 'ä' || char(160) || '3', 2), (1, char(160), 2);
`
	if _, err := db.ExecContext(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), path, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for number, want := range map[string]string{"Ä3": "R3", "Ö\u20104": ""} {
		found, err := d.Find(t.Context(), "https://api.example", "", number)
		if err != nil || len(found) != 1 || found[0].Item.ReferID != want {
			t.Errorf("%s: %+v, %v; want that of %q", number, found, err, want)
		}
	}
	for number, want := range map[string]time.Time{"Ö4": time.Date(2026, 1, 5, 9, 0, 0, 123e6, time.UTC), "odd": {}} {
		found, err := d.Find(t.Context(), "https://api.example", "", number)
		if err != nil || len(found) != 1 || !found[0].Sighting.Times.Checkpoint.Equal(want) {
			t.Errorf("%s: %+v, %v; want a checkpoint of %v", number, found, err, want)
		}
	}
	for e, err := range d.Events(t.Context(), inbox.Query{TrackingNumber: "n\u00a02"}) {
		if err != nil || e.Seq != 3 {
			t.Errorf("event %d, %v; want 3", e.Seq, err)
		}
	}
	ready := func(now int64) (ids []int64) {
		entries, _, err := d.ClaimEntries(t.Context(), 1, 9, time.UnixMilli(now))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range entries {
			ids = append(ids, l.ID)
		}
		return ids
	}
	if got := ready(10); !slices.Equal(got, []int64{1}) {
		t.Errorf("%v can go; want the first", got)
	}
	if err := d.SettleEntry(t.Context(), 1, inbox.Settlement{Now: time.UnixMilli(11), Disposition: inbox.Sent}); err != nil {
		t.Fatal(err)
	}
	if got := ready(12); !slices.Equal(got, []int64{2}) {
		t.Errorf("%v can go after it; want the second", got)
	}
}
