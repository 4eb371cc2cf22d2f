package storetest

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Ledger tests a store against the contracts of package ledger.
func Ledger(t *testing.T, h Harness) {
	t.Helper()
	for name, tests := range map[string]map[string]func(*world){
		"Stage":     stageTests,
		"Send":      sendTests,
		"Adopt":     adoptTests,
		"Doubts":    doubtTests,
		"History":   historyTests,
		"Accounts":  accountTests,
		"Trackings": trackingTests,
	} {
		t.Run(name, func(t *testing.T) { suite(t, h, tests) })
	}
	t.Run("Model", func(t *testing.T) { model(t, h) })
}

var accountTests = map[string]func(*world){
	"KeyIsNewUntilTrusted": func(w *world) {
		ctx := w.Context()
		see := func(name, key string, want ledger.KeyNews) {
			w.Helper()
			got, err := w.SeeKey(ctx, name, key)
			w.must(err)
			w.same("news of "+key+" for "+name, got, want)
		}
		see(account, "k1", ledger.KeyNews{})
		see(account, "k1", ledger.KeyNews{}) // asking records nothing
		w.must(w.TrustKey(ctx, account, "k1"))
		w.must(w.TrustKey(ctx, account, "k1"))
		see(account, "k1", ledger.KeyNews{Seen: true})
		see(account, "k2", ledger.KeyNews{})
		see("other", "k1", ledger.KeyNews{})
		w.run(plan(), entries(1, 1)...)
		see(account, "k1", ledger.KeyNews{Seen: true, HasRuns: true})
		see(account, "k2", ledger.KeyNews{HasRuns: true})
		see("other", "k1", ledger.KeyNews{})
		w.must(w.TrustKey(ctx, account, "k2"))
		see(account, "k1", ledger.KeyNews{Seen: true, HasRuns: true})
		see(account, "k2", ledger.KeyNews{Seen: true, HasRuns: true})
	},
	"KeySurvivesTheProcess": func(w *world) {
		w.must(w.TrustKey(w.Context(), account, "k1"))
		w.kill()
		got, err := w.SeeKey(w.Context(), account, "k1")
		w.must(err)
		w.same("news", got, ledger.KeyNews{Seen: true})
	},
}
