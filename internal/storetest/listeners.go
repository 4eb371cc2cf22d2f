package storetest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

func knowsListenersThatLive(w *world) {
	running := func(s Store) []inbox.Listener {
		w.Helper()
		all := have(s.RunningListeners(w.Context()))(w)
		slices.SortFunc(all, func(a, b inbox.Listener) int { return cmp.Compare(a.URL, b.URL) })
		return all
	}
	w.same("at first", running(w.Store), []inbox.Listener(nil))
	other, third := w.open(), w.open()
	all := []inbox.Listener{{URL: "http://127.0.0.1:1"}, {URL: "http://127.0.0.1:2", Host: "pc-2/1a", Verify: "enforce mine 1a2b"}, {URL: "http://127.0.0.1:3", Sinks: []int64{7, 19}}}
	w.must(w.AddListener(w.Context(), all[0]))
	w.must(w.AddListener(w.Context(), all[0]))
	w.must(other.AddListener(w.Context(), all[1]))
	w.must(third.AddListener(w.Context(), all[2]))
	w.same("three", running(w.Store), all)
	w.same("to another process", running(other), all)
	all[2].Verify = "observe mine 1a2b"
	w.must(third.AddListener(w.Context(), all[2]))
	w.same("one verifies in another way", running(w.Store), all)
	w.must(other.Close())
	w.same("one has ended", running(third), []inbox.Listener{all[0], all[2]})
	w.kill()
	w.same("one has died", running(third), all[2:])
	fourth := inbox.Listener{URL: "http://127.0.0.1:4", Host: "pc-1", Sinks: []int64{7}}
	w.must(w.AddListener(w.Context(), fourth))
	w.same("again", running(third), []inbox.Listener{all[2], fourth})
}

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
	w.must(other.RecordAttempt(w.Context(), claimed[0].ID, inbox.AttemptOutcome{Disposition: inbox.Sent, Now: time.Now(), Status: 200}))
	hinted("a result")
	late := w.putInto(other, delivery(event(uuid(2), ""), inbox.Unknown)).Delivery
	hinted("another delivery")
	for len(changes) > 0 {
		<-changes
	}
	have(other.SetVerdict(w.Context(), inbox.Delivery{Seq: late, Verified: inbox.Yes}))(w)
	hinted("that it verified")
}

// The revision differs after every change, whoever made it and whatever it is about.
func revisionFollowsEveryChange(w *world) {
	revision, err := w.Revision(w.Context())
	w.must(err)
	changed := func(what string) {
		w.Helper()
		now, err := w.Revision(w.Context())
		w.must(err)
		if now == revision {
			w.Errorf("the revision does not show %s", what)
		}
		revision = now
	}
	w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	changed("a delivery")
	other := w.open()
	w.putInto(other, delivery(event(uuid(2), ""), inbox.Unknown))
	changed("a delivery of another process")
	sink := w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	changed("what waits for a target")
	claimed, _, err := other.ClaimEntries(w.Context(), sink, 1, time.Now())
	w.must(err)
	changed("what is being sent")
	w.must(other.RecordAttempt(w.Context(), claimed[0].ID, inbox.AttemptOutcome{Disposition: inbox.Sent, Now: time.Now(), Status: 200}))
	changed("a result")
}
