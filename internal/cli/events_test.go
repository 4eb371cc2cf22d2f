package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// died returns a store in which a target got none of n deliveries, which were
// given up one day after the other.
func died(t *testing.T, first time.Time, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	sink, err := db.OpenSink(t.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:9/hook?token=secret", Filter: "event=x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		d := inbox.Delivery{ReceivedAt: first, Method: "POST", Path: "/", Body: []byte(`[{"event":"x"}]`), Verified: inbox.Yes}
		if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Advance(t.Context(), sink.ID, n, func([]inbox.Event) bool { return true }); err != nil {
		t.Fatal(err)
	}
	entries, _, err := db.ClaimEntries(t.Context(), sink.ID, n, time.Now().Add(time.Hour))
	if err != nil || len(entries) != n {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, l := range entries {
		o := inbox.AttemptOutcome{Disposition: inbox.GivenUp, Now: first.AddDate(0, 0, i), Status: 503, Problem: "answered 503", Reply: []byte("no\x1b[2J")}
		if err := db.RecordAttempt(t.Context(), l.ID, o); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestDeadEntriesAreListed(t *testing.T) {
	first := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	env := []string{"WAYBILL_STORE=" + died(t, first, 3)}
	code, stdout, stderr := run(t, env, "events", "list", "--dead", "-o", "json")
	var all []struct {
		Delivery                int64
		Target, Filter, Problem string
		Attempts, Status        int
		FailingSince, GivenUpAt *time.Time
	}
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != command.OK || len(all) != 3 {
		t.Fatalf("status %d, %s (%v)", code, stdout, err)
	}
	d := all[1]
	if d.Delivery != 2 || d.Target != "http://127.0.0.1:9/hook" || d.Filter != "event=x" || d.Problem != "answered 503" || d.Attempts != 1 || d.Status != 503 {
		t.Errorf("%+v", d)
	}
	if at := first.AddDate(0, 0, 1); d.FailingSince == nil || !d.FailingSince.Equal(at) || d.GivenUpAt == nil || !d.GivenUpAt.Equal(at) {
		t.Errorf("failing since %v, given up %v; want %v", d.FailingSince, d.GivenUpAt, at)
	}
	if !strings.Contains(stderr, `"nextCommand":"waybill events replay --dead"`) {
		t.Errorf("stderr %s; want the next command", stderr)
	}
	code, stdout, stderr = run(t, env, "events", "list", "--dead", "--since", "2026-03-02T00:00:00Z", "--limit", "1")
	if want := "2\tevent=x=>http://127.0.0.1:9/hook\t1\t"; code != command.OK || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, want) {
		t.Errorf("status %d, %s; want %q alone", code, stdout, want)
	}
	if !strings.Contains(stderr, "next: waybill events replay --dead") {
		t.Errorf("stderr %s; want the next command", stderr)
	}
	if strings.Contains(stdout+stderr, "secret") || strings.Contains(stdout, "\x1b") {
		t.Errorf("shown too much: %q", stdout)
	}
}

func TestDeadEntriesOfAnEmptyStore(t *testing.T) {
	code, stdout, stderr := run(t, nil, "events", "list", "--dead")
	if code != command.OK || stdout != "" || !strings.Contains(stderr, "Nothing was given up") || strings.Contains(stderr, "replay") {
		t.Errorf("status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestEventsOfAReferIDAreFoundByNumberAndRouterID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sighting := ledger.Sighting{
		Key: tracking.Key{ReferID: "R1", Number: "1Z 9"}, Phase: ledger.Processed,
		Report: tracking.Report{RouterID: "0190-A"}, Seen: time.Now(), Source: ledger.FromQuery,
	}
	if err := db.Record(t.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{sighting}, Raw: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	d := inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Yes, Body: []byte(`[{"eventId":"number","data":{"trackingNumber":"1z-9"}},
		{"eventId":"router","data":{"trackingNumber":"OTHER","routerId":"0190-a"}},{"eventId":"neither","data":{"trackingNumber":"OTHER"}}]`)}
	if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t, []string{"WAYBILL_STORE=" + path, "WAYBILL_ACCOUNT=acc"}, "events", "list", "--refer-id", "R1", "-o", "jsonl", "--jq", ".eventId")
	if code != command.OK || stdout != "router\nnumber\n" {
		t.Errorf("status %d, %q, %s; want both, newest first", code, stdout, stderr)
	}
}
