package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Failures are counted by what they are, on each database.
func TestFailures(t *testing.T) {
	dbs := map[string]*store.DB{"sqlite": opened(t, filepath.Join(t.TempDir(), "w.db"))}
	if url, ok := pgtest.URL(t); ok {
		d, err := serverAt(t, url, "")
		if err != nil {
			t.Fatal(err)
		}
		dbs["postgres"] = d
	}
	at := time.Now().Truncate(time.Millisecond).UTC()
	for name, d := range dbs {
		for _, reason := range []webhook.Reason{webhook.ReasonSignatureMismatch, webhook.ReasonSignatureMissing, webhook.ReasonSignatureMismatch} {
			if _, err := d.PutRefused(t.Context(), inbox.Delivery{ReceivedAt: at, Method: "POST", Path: "/", Verified: inbox.No, Reason: reason}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := d.Failures(t.Context())
		want := []store.Failure{
			{Of: "delivery refused", State: "signature_mismatch", Count: 2, Last: at},
			{Of: "delivery refused", State: "signature_missing", Count: 1, Last: at},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", name, err, diff)
		}
	}
}
