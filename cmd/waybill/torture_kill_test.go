package main_test

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// troubles are what networks and servers do, each to one request in twenty.
func troubles() []string {
	return []string{"500-before", "502-after", "cut-before", "cut-after", "truncate", "stall"}
}

// Random kills over a create on a bad day, then the same command until it has
// come to an end: every row is accepted or honestly rejected, and the service
// has each accepted one once.
func TestTortureKills(t *testing.T) {
	t.Parallel()
	killTorture(t, 1)
}

// The same with two processes that share a store.
func TestTortureKillsOfTwo(t *testing.T) {
	t.Parallel()
	killTorture(t, 2)
}

func killTorture(t *testing.T, processes int) {
	kills, rounds := either(6, 500), 0
	for met := 0; met < kills; rounds++ {
		if rounds > kills {
			t.Fatalf("only %d kills met a living process in %d rounds: the test proves too little", met, rounds)
		}
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			met += killRound(t, processes, min(kills-met, either(4, 25)))
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d kills in %d rounds", kills, rounds)
}

// killRound kills what works on one input, up to so many times, and then lets
// it come to its end. It returns how many processes were met alive.
func killRound(t *testing.T, processes, kills int) (met int) {
	random := dice(t)
	n, longest := either(1000, 50_000), either(400*time.Millisecond, 4*time.Second)
	w := newWorld(t, "--processing", "0s", "--seed", fmt.Sprint(random.Uint32()), "--reject", "^94001.*0250.$")
	rows := append(pairs(n, parcels), w.control())
	bad := 0
	for i := 250; i < n; i += 10_000 {
		bad++
	}
	args := []string{
		"create", orders(t, w.home, n, parcels), "-o", "json", "--settle", "0s",
		"--request-timeout", either("200ms", "1s"), "--batch-size", either("50", "1000"), "--concurrency", "8",
	}
	w.chance(0.05, troubles()...)
	for tries := 0; met < kills && tries < 4*kills; tries++ {
		delays := make([]time.Duration, processes)
		for i := range delays {
			u := random.Float64()
			delays[i] = time.Duration(u * u * float64(longest))
		}
		hits := make([]bool, processes)
		if err := together(processes, func(i int) (err error) {
			hits[i], err = w.killed(delays[i], args...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, hit := range hits {
			if hit {
				met++
			}
		}
		if b := w.audit(rows); t.Failed() {
			t.Fatalf("after %d kills, the last after %v: %+v", met, delays, b)
		}
		if !slices.Contains(hits, true) && w.done(len(rows)) {
			break
		}
	}
	if processes > 1 {
		if err := together(processes, func(int) error { _, err := w.killed(time.Hour, args...); return err }); err != nil {
			t.Fatal(err)
		}
	}
	w.finish(20, args...)
	w.whole(rows, bad)
	return met
}

// done reports whether every one of so many rows is accepted or rejected.
func (w *world) done(rows int, flags ...string) bool {
	w.tb.Helper()
	recorded := 0
	for _, state := range w.ledger(flags...) {
		if state == "accepted" || state == "rejected" {
			recorded++
		}
	}
	return recorded == rows
}

// A service that stores what it took seconds after the connection broke, and
// until then says that it has nothing of the kind. A --settle time that is longer
// than that is all there is against creating twice.
func TestTortureLate(t *testing.T) {
	t.Parallel()
	batches := either(1, 60)
	w := newWorld(t, "--processing", "0s")
	rows := append(pairs(20*batches, parcels), w.control())
	late := batches - batches/2
	w.fault("late", "createV2", late)
	sent := w.stats("?rows=0").Requests["createV2"]
	args := []string{"create", orders(t, w.home, 20*batches, parcels), "-o", "json", "--settle", "5s", "--batch-size", "20", "--concurrency", "4"}
	began := time.Now()
	for done := false; !done; {
		var r createResult
		var said []byte
		if r, said, done = w.again(args...); time.Since(began) > patience && !full() {
			t.Fatalf("it does not come to an end: %+v\nstderr: %s", r, said)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if sent = w.stats("?rows=0").Requests["createV2"] - sent; sent != batches {
		t.Errorf("%d requests for %d batches: something was sent again before what was late came", sent, batches)
	}
	time.Sleep(either(0, 4*time.Second)) // for what is late and was sent last
	w.whole(rows, 0)
}
