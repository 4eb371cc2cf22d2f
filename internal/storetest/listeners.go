package storetest

import (
	"cmp"
	"slices"

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
	w.must(other.Close())
	w.same("one has ended", running(third), []inbox.Listener{all[0], all[2]})
	w.kill()
	w.same("one has died", running(third), all[2:])
	fourth := inbox.Listener{URL: "http://127.0.0.1:4", Host: "pc-1", Sinks: []int64{7}}
	w.must(w.AddListener(w.Context(), fourth))
	w.same("again", running(third), []inbox.Listener{all[2], fourth})
}
