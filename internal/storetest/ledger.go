package storetest

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Ledger tests a store against the contracts of package ledger.
func Ledger(t *testing.T, h Harness) {
	t.Helper()
	for name, tests := range map[string]map[string]func(*world){
		"Stage":       stageTests,
		"Send":        sendTests,
		"Adopt":       adoptTests,
		"UnknownRows": unknownTests,
		"Rejected":    rejectedTests,
		"History":     historyTests,
		"Accounts":    accountTests,
		"Trackings":   trackingTests,
		"Statistics":  statisticsTests,
		"Answers":     answerTests,
		"Erase":       eraseTests,
	} {
		t.Run(name, func(t *testing.T) { suite(t, h, tests) })
	}
	t.Run("Model", func(t *testing.T) { model(t, h) })
	t.Run("Counts", func(t *testing.T) { statistics(t, h) })
}

var accountTests = map[string]func(*world){
	"KeyIsNewUntilTrusted": func(w *world) {
		ctx := w.Context()
		see := func(name, key string, want ledger.KeyStatus) {
			w.Helper()
			got := have(w.LookUpKey(ctx, name, key))(w)
			w.same("news of "+key+" for "+name, got, want)
		}
		see(account, "k1", ledger.KeyStatus{})
		see(account, "k1", ledger.KeyStatus{}) // asking records nothing
		w.must(w.TrustKey(ctx, account, "k1"))
		w.must(w.TrustKey(ctx, account, "k1"))
		see(account, "k1", ledger.KeyStatus{Seen: true})
		see(account, "k2", ledger.KeyStatus{})
		see("other", "k1", ledger.KeyStatus{})
		w.run(plan(), entries(1, 1)...)
		see(account, "k1", ledger.KeyStatus{Seen: true, HasRuns: true})
		see(account, "k2", ledger.KeyStatus{HasRuns: true})
		see("other", "k1", ledger.KeyStatus{Others: []string{account}})
		see("other", "k2", ledger.KeyStatus{})
		w.must(w.TrustKey(ctx, "other", "k1"))
		see("other", "k1", ledger.KeyStatus{Seen: true, Others: []string{account}})
		see(account, "k1", ledger.KeyStatus{Seen: true, HasRuns: true}) // the other has no runs
		w.must(w.TrustKey(ctx, account, "k2"))
		see(account, "k1", ledger.KeyStatus{Seen: true, HasRuns: true})
		see(account, "k2", ledger.KeyStatus{Seen: true, HasRuns: true})
	},
	"NamesAreThoseWithRuns": func(w *world) {
		w.must(w.TrustKey(w.Context(), "other", "k1"))
		w.run(plan(), entries(1, 1)...)
		w.same("names", have(w.AccountNames(w.Context()))(w), []string{account})
	},
	"ProofsAreKeptByAccount":   proofs,
	"UnknownRowsWaitForAProof": rowsWaitForAProof,
	"KeySurvivesTheProcess": func(w *world) {
		w.must(w.TrustKey(w.Context(), account, "k1"))
		w.kill()
		w.same("news", have(w.LookUpKey(w.Context(), account, "k1"))(w), ledger.KeyStatus{Seen: true})
	},
}
