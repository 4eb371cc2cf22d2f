//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// Kills while the input is still being staged and its first batches are sent.
// The run says that it is not whole, and the same command creates the rest, and
// nothing twice. So does one that begins while another waybill still stages.
func TestTortureFeed(t *testing.T) {
	t.Parallel()
	partial, kills := 0, either(3, 40)
	for i := 0; i < kills || partial == 0 && i < 5*kills; i++ { // on a busy machine, staging may end first
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if killFeed(t, i%kills) {
				partial++
			}
		})
	}
	if partial == 0 {
		t.Error("no kill met a run that was not staged to its end: the test proves nothing")
	}
}

// killFeed kills a create at its i-th request or later, and reports whether it was
// still staging then.
func killFeed(t *testing.T, i int) (partial bool) {
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	points := []point{afterRequest, midAnswer, midRequest}
	e := &executioner{box: box, point: points[i%len(points)], in: i, stores: i%2 == 0}
	d := openDoor(t, e)
	w := newHome(t).at("http://" + d.addr)
	n := either(20_000, 200_000)
	rows := append(pairs(n, parcels), w.control())
	args := []string{
		"create", orders(t, w.home, n, parcels), "-o", "json", "--settle", "0s", "--request-timeout", "2s",
		"--batch-size", "50", "--concurrency", "8",
	}
	cmd := w.command(args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{})
	e.mu.Lock()
	e.kill = func() {
		_ = cmd.Process.Kill()
		<-dead
	}
	e.mu.Unlock()
	code, err := ended(cmd, allowed())
	close(dead)
	if err != nil || code != -1 {
		t.Fatalf("ended with %d before it was killed: %v\nstderr: %s", code, err, cmd.Stderr)
	}
	w.audit(rows)
	code, stdout, stderr := w.run("runs", "show", "2", "-o", "json")
	var run struct {
		Partial bool
		New     int
		State   string
	}
	// All may be staged, and the run not be whole yet.
	if err := json.Unmarshal(stdout, &run); code != 0 || err != nil || !run.Partial && run.New < n || run.State != "unfinished" {
		t.Errorf("runs show ended with %d: %v\nstdout: %s\nstderr: %s", code, err, stdout, stderr)
	}
	if err := together(2, func(int) error { _, err := w.killed(allowed(), args...); return err }); err != nil {
		t.Fatal(err)
	}
	w.finish(20, args...)
	w.whole(rows, 0)
	return run.Partial
}
