package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// A check shows sizes, settings and who works on the store.
func TestInspect(t *testing.T) {
	url, ok := pgtest.URL(t)
	if !ok {
		return
	}
	db, err := openAt(t, url, Options{Version: "1.2", Command: "listen"})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.AddListener(t.Context(), inbox.Listener{URL: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	d := inbox.Delivery{ReceivedAt: time.Now(), Verified: inbox.Yes, Body: []byte(`[{"eventId":"e1","data":{"trackingNumber":"N"}}]`)}
	if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	staging, err := db.Stage(t.Context(), ledger.Plan{Account: "a", Files: []string{"f"}, Mode: ledger.Async, BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := staging.Add(t.Context(), []ledger.Entry{{Line: 2, Item: tracking.Item{ReferID: "R", Number: "N"}}}); err != nil {
		t.Fatal(err)
	}
	other, err := openAt(t, url, Options{Command: "store check"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := other.Inspect(t.Context())
	if err != nil || len(found.Problems) > 0 || found.FreeBytes != nil {
		t.Fatalf("%+v, %v", found, err)
	}
	if len(found.Processes) != 1 {
		t.Fatalf("%d processes; want 1", len(found.Processes))
	}
	if p := found.Processes[0]; !p.Alive || p.Command != "listen" || p.Version != "1.2" || p.PID == 0 || p.Host == "" || time.Since(p.Started) > time.Minute ||
		!slices.Equal(p.URLs, []string{"http://127.0.0.1:1"}) || p.Staging == 0 {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"deliveries", "rows"} {
		i := slices.IndexFunc(found.Tables, func(s store.TableSize) bool { return s.Name == name })
		if s := found.Tables[i]; s.Rows != 1 || s.Bytes < 8192 {
			t.Errorf("%+v; want one row and its page", s)
		}
	}
	for _, s := range found.Settings {
		if s.Value == "" || s.Warning != "" && s.Name != "fsync" && s.Name != "full_page_writes" { // tests run without
			t.Errorf("%+v", s)
		}
	}
	if err := staging.Discard(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if found, err = other.Inspect(t.Context()); err != nil || len(found.Problems) > 0 || len(found.Processes) > 0 && found.Processes[0].Alive {
		t.Errorf("%+v, %v; want nobody alive", found, err)
	}
}
