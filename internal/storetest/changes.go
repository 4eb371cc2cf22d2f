package storetest

import (
	"context"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// patience is how long a hint may take before the test fails, on a busy machine.
const patience = 30 * time.Second

// A store that hints at changes does so for those that other processes wait for.
func hintsAtChangesOfOthers(w *world) {
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	changes := w.Watch(ctx)
	if changes == nil {
		return
	}
	other := w.open()
	hinted := func(what string) {
		w.Helper()
		select {
		case <-changes:
		case <-time.After(patience):
			w.Errorf("no hint at %s", what)
		}
	}
	w.putInto(other, delivery(event(uuid(1), ""), inbox.Yes))
	hinted("a delivery")
	sink := w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	claimed, _, err := other.ClaimEntries(w.Context(), sink, 1, time.Now())
	w.must(err)
	w.same("entries", len(claimed), 1)
	for len(changes) > 0 {
		<-changes
	}
	w.must(other.SettleEntry(w.Context(), claimed[0].ID, inbox.Settlement{Disposition: inbox.Sent, Now: time.Now(), Status: 200}))
	hinted("a result")
}
