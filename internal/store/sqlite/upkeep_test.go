package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// A backup has what was committed when it began, also while others write, and opens
// as a store.
func TestWriteBackup(t *testing.T) {
	folder := t.TempDir()
	d := opened(t, filepath.Join(folder, "waybill.db"))
	run := stageAll(t, d, 1000, inputOf(5000))
	writing := make(chan error, 1)
	go func() {
		var err error
		for range 20 {
			if _, err = d.LookUpKey(t.Context(), "key"); err != nil {
				break
			}
		}
		writing <- err
	}()
	copied := filepath.Join(folder, "copy.db")
	if err := os.WriteFile(copied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteBackup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	if err := <-writing; err != nil {
		t.Error(err)
	}
	b := opened(t, copied)
	if c, err := b.CountRows(t.Context(), run.ID); err != nil || c != (ledger.Counts{Pending: 5000}) {
		t.Errorf("%+v, %v; want 5000 pending", c, err)
	}
}

// A copy that can't be written names its file, not the store.
func TestWriteBackupNamesTheCopy(t *testing.T) {
	folder := t.TempDir()
	d := opened(t, filepath.Join(folder, "waybill.db"))
	copied := filepath.Join(folder, "no", "copy.db")
	err := d.WriteBackup(t.Context(), copied)
	if e, ok := errors.AsType[*store.Error](err); !ok || e.Path != copied {
		t.Errorf("%v; want the path %s", err, copied)
	}
}

// Each thing that tables must agree on is looked at, and reading changes nothing.
func TestProblems(t *testing.T) {
	for what, damage := range map[string]string{
		"":                                    "UPDATE runs SET requests = requests + 1",
		"beyond the last one":                 "UPDATE counters SET value = 1 WHERE name = 'row'",
		"without a run":                       "DELETE FROM runs",
		"rows without a batch":                "DELETE FROM batches WHERE id = 1",
		"count other rows than they":          "UPDATE batches SET rows = rows + 1 WHERE id = 1",
		"count other rows than their batches": "UPDATE run_batches SET rows = rows - 1 WHERE batch_id = 1",
		"more rows in a batch":                "UPDATE run_batches SET rows = rows + CASE batch_id WHEN 1 THEN 5 ELSE -5 END",
		"records of missing rows":             "INSERT INTO run_known_rows VALUES (1, 90, -91, 0, 0, 1, 0, NULL)",
		"index of numbers lacks":              "DELETE FROM numbers WHERE row_id = 3",
		"in the index of numbers":             "INSERT INTO numbers VALUES ('N', 12345)",
		"trackings without their row":         "UPDATE sightings SET id = 77 WHERE id = 1",
		"without their row":                   "UPDATE sightings SET id = -1 WHERE id = 1",
		"without their status":                "UPDATE sightings SET status = 'x'",
		"wrong counts of trackings":           "UPDATE tracking_counts SET trackings = trackings + 1",
		"events that their delivery":          "UPDATE events SET length = length + 100",
		"without a delivery or a target":      "DELETE FROM sinks",
		"the wrong number of others":          "UPDATE outbox SET blocked = 1",
		"numbers of missing outbox":           "INSERT INTO outbox_numbers VALUES (1, 'N', 99)",
	} {
		t.Run(what, func(t *testing.T) {
			d := opened(t, filepath.Join(t.TempDir(), "waybill.db"))
			fill(t, d)
			if problems, err := d.Problems(t.Context()); err != nil || len(problems) > 0 {
				t.Fatalf("%v, %v; want none", problems, err)
			}
			direct(t, d, damage)
			problems, err := d.Problems(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if found := fmt.Sprint(problems); what == "" && len(problems) > 0 || !strings.Contains(found, what) {
				t.Errorf("%s: found %s; want %q", damage, found, what)
			}
			if again, err := d.Problems(t.Context()); err != nil || !slices.Equal(again, problems) {
				t.Errorf("then %v, %v; want the same", again, err)
			}
		})
	}
}

// fill puts something of each kind into a store.
func fill(t *testing.T, d *store.DB) {
	t.Helper()
	ctx := t.Context()
	stageAll(t, d, 10, inputOf(30))
	if err := d.Record(ctx, []ledger.RecordedAnswer{{
		Asked: time.Now(), Raw: []byte("{}"), Seen: []ledger.Sighting{{
			Key: inputOf(1)[0].Item.Key(), Seen: time.Now(), Phase: ledger.Processed,
			Report: tracking.Report{Status: "1"},
		}},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, err := range d.Statuses(ctx, ledger.Filter{Order: ledger.ByNumber}) { // which indexes the numbers
		if err != nil {
			t.Fatal(err)
		}
	}
	sink, err := d.OpenSink(ctx, inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dl := inbox.Delivery{ReceivedAt: time.Now(), Verified: inbox.Yes, Body: []byte(`[{"eventId":"e1","data":{"trackingNumber":"N"}}]`)}
	if _, err := d.Put(ctx, dl, inbox.Prepare(dl, webhook.Decode(dl.Body))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Advance(ctx, sink.ID, 9, func([]inbox.Event) bool { return true }); err != nil {
		t.Fatal(err)
	}
}
