package storetest

import "slices"

func knowsListenersThatLive(w *world) {
	running := func(s Store) []string {
		w.Helper()
		urls, err := s.RunningListeners(w.Context())
		w.must(err)
		slices.Sort(urls)
		return urls
	}
	w.same("at first", running(w.Store), []string(nil))
	other, third := w.open(), w.open()
	w.must(w.AddListener(w.Context(), "http://127.0.0.1:1"))
	w.must(w.AddListener(w.Context(), "http://127.0.0.1:1"))
	w.must(other.AddListener(w.Context(), "http://127.0.0.1:2"))
	w.must(third.AddListener(w.Context(), "http://127.0.0.1:3", 7, 9))
	all := []string{"http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"}
	w.same("three", running(w.Store), all)
	w.same("to another process", running(other), all)
	sinks, err := other.RunningSinks(w.Context())
	w.must(err)
	slices.Sort(sinks)
	w.same("sinks", sinks, []int64{7, 9})
	w.must(other.Close())
	w.same("one has ended", running(third), []string{all[0], all[2]})
	w.kill()
	w.same("one has died", running(third), all[2:])
	w.must(w.AddListener(w.Context(), "http://127.0.0.1:4"))
	w.same("again", running(third), []string{all[2], "http://127.0.0.1:4"})
}
