package storetest

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Ledger tests a store against the contracts of package ledger, but for [Counts].
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
}

var accountTests = map[string]func(*world){
	"KeyIsNewUntilTrusted": func(w *world) {
		ctx := w.Context()
		see := func(key string, want ledger.KeyStatus) {
			w.Helper()
			w.same("status of "+key, have(w.LookUpKey(ctx, key))(w), want)
		}
		see("k1", ledger.KeyStatus{})
		see("k1", ledger.KeyStatus{}) // asking records nothing
		w.must(w.TrustKey(ctx, "k1"))
		w.must(w.TrustKey(ctx, "k1"))
		see("k1", ledger.KeyStatus{Seen: true})
		see("k2", ledger.KeyStatus{})
		w.run(plan(), entries(1, 1)...)
		see("k1", ledger.KeyStatus{Seen: true, HasRuns: true})
		see("k2", ledger.KeyStatus{HasRuns: true})
		w.must(w.TrustKey(ctx, "k2"))
		see("k1", ledger.KeyStatus{Seen: true, HasRuns: true})
		see("k2", ledger.KeyStatus{Seen: true, HasRuns: true})
	},
	"BelongsToTheFirstAccount": func(w *world) {
		ctx := w.Context()
		w.same("at first", have(w.Account(ctx))(w), "")
		have(w.Erase(ctx, []tracking.Query{{ReferID: "r"}}, ledger.EraseOptions{}))(w) // needs a salt, not an account
		w.must(w.TrustKey(ctx, "k1"))
		w.same("still", have(w.Account(ctx))(w), "")
		w.same("the first", have(w.Pin(ctx, "https://one.example"))(w), "https://one.example")
		w.same("another", have(w.Pin(ctx, "https://two.example"))(w), "https://one.example")
		w.kill()
		w.same("later", have(w.Account(ctx))(w), "https://one.example")
		w.same("keys", have(w.LookUpKey(ctx, "k1"))(w), ledger.KeyStatus{Seen: true})
		if _, err := w.Pin(ctx, "a\x00"); err == nil {
			w.Error("an account that is no text was taken")
		}
	},
	"ProofsAreKept":            proofs,
	"UnknownRowsWaitForAProof": rowsWaitForAProof,
	"KeySurvivesTheProcess": func(w *world) {
		w.must(w.TrustKey(w.Context(), "k1"))
		w.kill()
		w.same("news", have(w.LookUpKey(w.Context(), "k1"))(w), ledger.KeyStatus{Seen: true})
	},
}
