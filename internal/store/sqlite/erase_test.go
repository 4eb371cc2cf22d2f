package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// TestNothingOfWhatWasErasedIsLeft reads every byte of the files of a store in which a
// number was wherever one can be, in pages that are free now too.
func TestNothingOfWhatWasErasedIsLeft(t *testing.T) {
	const ref, number, spaced = "ORD-ERASE-77", "1Z999AA10123456784", "1z 999-aa10 123456784"
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "waybill.db")
	d, err := Open(ctx, path, store.Options{})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	defer func() { must(d.Close()) }()

	input := func(files ...string) ledger.Run {
		t.Helper()
		staging, err := d.Stage(ctx, ledger.Plan{Files: files, Mode: ledger.Async, BatchSize: 5})
		must(err)
		var entries []ledger.Entry
		for i := range 12 {
			entries = append(entries, ledger.Entry{Line: i + 2, Item: tracking.Item{ReferID: fmt.Sprintf("ORD-%04d", i), Number: fmt.Sprintf("1ZOTHER%011d", i)}})
		}
		entries[7].Item = tracking.Item{ReferID: ref, Number: spaced}
		_, err = staging.Add(ctx, entries)
		must(err)
		run, err := staging.Open(ctx)
		must(err)
		return run
	}
	run := input("orders.csv", "label "+number+".csv")
	for {
		batches, err := d.Claim(ctx, run.ID, 1, 1000)
		must(err)
		if len(batches) == 0 {
			break
		}
		long := strings.Repeat("x", 4000) // is compressed
		must(d.RecordOutcomes(ctx, []ledger.BatchOutcome{{
			Batch: batches[0].ID, State: ledger.Rejected, Reason: "invalid number " + number, HTTPStatus: 422, Began: time.Now(),
			Answer: fmt.Appendf(nil, `{"message":"\u0031Z999AA10123456784 of %s","more":%q}`, ref, long),
		}}))
	}
	for n := range 3 { // earlier ones become versions
		seen := ledger.NewSighting(tracking.Tracking{Report: tracking.Report{Status: "1", RouterID: "R-ERASE-77"}},
			ledger.Processed, tracking.Key{ReferID: ref, Number: number}, time.Now(), ledger.FromQuery)
		must(d.Record(ctx, []ledger.RecordedAnswer{{
			ReferID: ref, Asked: time.Now(), Seen: []ledger.Sighting{seen},
			Raw: fmt.Appendf(nil, `{"trackingNumber":%q,"n":%d}`, number, n),
		}}))
	}
	put := func(body string) inbox.Delivery {
		t.Helper()
		delivery, rows := inbox.Decode(inbox.Delivery{
			ReceivedAt: time.Now(), Path: "/" + number, RawQuery: "n=" + number, Header: []webhook.Field{{Name: "X-Number", Value: number}},
			Body: []byte(body), Verified: inbox.Yes,
		})
		_, err := d.Put(ctx, delivery, rows)
		must(err)
		return delivery
	}
	event := func(id int, number, more string) string {
		text, err := json.Marshal(number)
		must(err)
		return fmt.Sprintf(`{"eventId":"00000000-0000-4000-8000-%012d","data":{"trackingNumber":%s,"routerId":"R-ERASE-77"%s}}`, id, text, more)
	}
	sink, err := d.OpenSink(ctx, inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:1/", Filter: "number=" + number}, &inbox.StartPosition{})
	must(err)
	refused := put("[" + event(1, spaced, "") + "," + event(2, "1ZOTHER00000000001", "") + "]")
	put("[" + event(3, number, `,"note":"for `+number+`"`) + "]")
	put("no JSON, " + number)
	_, err = d.PutRefused(ctx, refused)
	must(err)
	_, err = d.Advance(ctx, sink.ID, 9, func([]inbox.Event) bool { return true })
	must(err)
	// Space that is free, and pages that were freed before.
	must(d.Close())
	direct(t, reopen(t, &d, path), "CREATE TABLE gone AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT '"+number+"' AS a FROM n")
	direct(t, d, "DROP TABLE gone")
	run = input("again.csv")
	if run.Tally.Known != 12 {
		t.Fatalf("%+v", run.Tally)
	}
	direct(t, d, "INSERT INTO observed (origin, kind, name, count, first_seen, last_seen, documented) VALUES ('verified', 'field', '/data/"+number+"/status', 1, 1, 1, 0)")
	_, err = d.BeginSweep(ctx, "from=x "+number, time.Now().Add(-time.Hour))
	must(err)
	if !holds(t, path, number) {
		t.Fatal("the number is not there before")
	}

	done, err := d.Erase(ctx, []tracking.Query{{ReferID: ref}}, ledger.EraseOptions{})
	must(err)
	if !holds(t, path, number) {
		t.Error("free pages hold nothing: they are not what is tested")
	}
	left, err := d.Compact(ctx)
	must(err)
	if len(left) > 0 || done.Rows != 1 || done.Events != 2 || done.Responses != 4 || done.Refused != 1 {
		t.Errorf("left %v, done %+v", left, done)
	}
	for _, name := range []string{ref, number, spaced, tracking.FoldNumber(spaced), "1Z999AA1", "999-aa10"} {
		if holds(t, path, name) {
			t.Errorf("%s is still there", name)
		}
	}
	if run = input("again.csv"); run.Tally.Known != 11 || run.Tally.Erased != 1 || run.Tally.New != 0 {
		t.Errorf("the same input again: %+v", run.Tally)
	}
	must(d.Check(ctx))
}

// reopen opens a store that was closed.
func reopen(t *testing.T, d **store.DB, path string) *store.DB {
	t.Helper()
	var err error
	if *d, err = Open(t.Context(), path, store.Options{}); err != nil {
		t.Fatal(err)
	}
	return *d
}

// holds reports whether a text is in a file of a store.
func holds(t *testing.T, path, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.IsDir() {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}
