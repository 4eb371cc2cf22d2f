package main_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"
)

// A kill at any point of a create, then the same command: every row is accepted
// and created once.
func TestKilledCreateGoesOn(t *testing.T) {
	const kills, rows = 12, 20_000
	w := newWorld(t, "--latency", "5ms", "--processing", "0s")
	file := orders(t, w.home, rows, ascending)
	began := time.Now()
	if code, r := w.create(file, "--store", filepath.Join(w.home, "whole.db")); code != 0 || r.Accepted != rows {
		t.Fatalf("an undisturbed create ended with %d: %+v", code, r)
	}
	whole := time.Since(began)
	random := rand.New(rand.NewPCG(1, 2))
	met := 0
	for i := range kills {
		post(t, w.url+"/_sandbox/reset")
		account := "kill" + string(rune('A'+i))
		args := []string{file, "--store", filepath.Join(w.home, "killed.db"), "--account", account, "--settle", "0s"}
		cmd := w.command(append([]string{"create", "-o", "json"}, args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		delay := time.Duration(random.Int64N(int64(whole)))
		time.Sleep(delay)
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, or done before
		if w.stats("?rows=0").Distinct > 0 {
			met++
		}
		code, r := w.create(args[0], append(args[1:], "--same-account")...)
		s := w.stats("?rows=0")
		if code != 0 || r.Accepted != rows || s.Created != rows || s.Distinct != rows {
			t.Errorf("kill %d after %v: exit status %d, %+v; the service has %d, created %d", i, delay, code, r, s.Distinct, s.Created)
		}
	}
	if met == 0 {
		t.Error("no kill met a create under way: the test proves too little")
	}
}
