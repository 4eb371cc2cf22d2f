//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// relays are listeners on machines of their own, which share a store on a
// PostgreSQL server and pass deliveries to one target.
func relays(t *testing.T, n int, schema, target string) []*relay {
	t.Helper()
	all := make([]*relay, n)
	for i := range all {
		w := newHome(t)
		w.env = append(w.env, "WAYBILL_STORE="+schema, "WAYBILL_WEBHOOK_SECRET="+hookSecret, "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_WEBHOOK_VERIFY=observe")
		all[i] = &relay{w: w, args: []string{"listen", "--addr", "127.0.0.1:0", "-o", "jsonl", "--forward-to", target}}
		all[i].start(t)
	}
	return all
}

// Three listeners stand behind one address, with one store. They are killed, and
// the server is restarted: each delivery that got a 200 is in the store, each
// event stands once, and all arrive at the target, those that share a tracking
// number in the order in which they were received.
func TestTorturePostgresListen(t *testing.T) {
	t.Parallel()
	kills, restarts := either(3, 100), either(1, 5)
	numbers, each, lasts := either(6, 20), either(8, 500), either(3*time.Second, 5*time.Minute)
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	random, target, schema := dice(t), newFlaky(t), server.NewURL(t)
	target.open(t)
	all := relays(t, 3, schema, target.url+"/in?k=v")
	ctx, cancel := context.WithTimeout(t.Context(), allowed())
	defer cancel()
	var next atomic.Int64
	roundRobin := func() string { return *all[int(next.Add(1))%len(all)].url.Load() }
	var sending sync.WaitGroup
	errs := make([]error, numbers)
	for n := range numbers {
		sending.Go(func() { errs[n] = sendHooks(ctx, roundRobin, n, each, lasts/time.Duration(each)) })
	}
	events := slices.Concat(slices.Repeat([]string{"kill"}, kills), slices.Repeat([]string{restart}, restarts))
	random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, event := range events {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(2 * lasts / time.Duration(len(events)))))):
		case <-ctx.Done():
			t.Fatal("no time is left")
		}
		if event == restart {
			if err := server.Restart(ctx, "immediate"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		l := all[random.IntN(len(all))]
		l.kill(t)
		l.start(t)
	}
	sending.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	target.well.Store(true)
	target.wait(ctx, t, numbers*each)
	for _, l := range all {
		l.stop(t)
	}
	target.mu.Lock()
	defer target.mu.Unlock()
	if len(target.wrong) > 0 {
		t.Errorf("%d are wrong at the target: %s", len(target.wrong), target.wrong[0])
	}
	standing := all[0].w.standing()
	for n := range numbers {
		for i := range each {
			body := hookBody(n, i)
			if target.taken[target.bodies[body]] != body {
				t.Errorf("%q did not arrive as it was", body)
			}
			if id := fmt.Sprintf("%d-%d", n, i); standing[id] != 1 {
				t.Errorf("event %s was answered with 200 and stands %d times", id, standing[id])
			}
		}
	}
	t.Logf("%d deliveries, %d kills, %d restarts: all arrived in %d tries, %d of them repeats of what had been taken", numbers*each, kills, restarts, target.tries, target.repeats)
}

// standing counts the verified events of the store by their ids, without
// repeated ones.
func (w *world) standing() map[string]int {
	w.tb.Helper()
	code, stdout, stderr := w.run("events", "list", "--limit", "0", "-o", "jsonl")
	if code != 0 {
		w.tb.Fatalf("events list ended with %d: %s", code, stderr)
	}
	counts := map[string]int{}
	for line := range bytes.Lines(stdout) {
		var e struct{ Type, EventID, Verified string }
		if err := json.Unmarshal(line, &e); err != nil {
			w.tb.Fatalf("%v: %s", err, line)
		}
		if e.Type == "event" && e.Verified == "yes" {
			counts[e.EventID]++
		}
	}
	return counts
}

// A listener that was stopped for longer than its claims last, while its target
// had not answered yet: another passes the delivery on, and what the first is told
// afterwards counts for nothing. It goes on as a listener.
func TestTorturePostgresStoppedListener(t *testing.T) {
	t.Parallel()
	schema, ok := pgtest.URL(t)
	if !ok {
		return
	}
	target := newFlaky(t)
	target.well.Store(true)
	held := newHolder(target)
	at := openDoor(t, held)
	first := relays(t, 1, schema, "http://"+at.addr+"/in?k=v")[0]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	held.hold(true)
	if err := sendHooks(ctx, func() string { return *first.url.Load() }, 0, 1, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held.holding:
	case <-ctx.Done():
		t.Fatal("nothing was passed on")
	}
	if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	held.hold(false)
	began := time.Now()
	second := relays(t, 1, schema, "http://"+at.addr+"/in?k=v")[0]
	if err := sendHooks(ctx, func() string { return *second.url.Load() }, 1, 1, 0); err != nil {
		t.Fatal(err)
	}
	second.w.pending(ctx, 0)
	took := time.Since(began)
	close(held.release)
	if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := sendHooks(ctx, func() string { return *first.url.Load() }, 2, 1, 0); err != nil {
		t.Fatal(err)
	}
	second.w.pending(ctx, 0)
	first.stop(t)
	second.stop(t)
	if len(target.wrong) > 0 || len(target.taken) != 3 {
		t.Errorf("%d of 3 arrived; wrong: %q", len(target.taken), target.wrong)
	}
	t.Logf("taken over after %v", took.Round(100*time.Millisecond))
}

// pending waits until so many deliveries wait for their target.
func (w *world) pending(ctx context.Context, want int) {
	w.tb.Helper()
	for {
		code, stdout, stderr := w.run("events", "list", "--pending", "-o", "jsonl")
		got := bytes.Count(stdout, []byte("\n"))
		if code == 0 && got == want {
			return
		}
		select {
		case <-ctx.Done():
			w.tb.Fatalf("%d deliveries are pending; want %d; code %d: %s", got, want, code, stderr)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
