package main_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The torture tests do to creates whatever a bad day does, and then count: no
// row lost, none created twice, none called accepted that the service lacks.
// `go test` runs a short form of each; `make torture` (TORTURE=full) the one
// with the counts that were promised. TORTURE_SEED repeats what chance did.

// full reports whether the long forms are wanted.
func full() bool { return os.Getenv("TORTURE") == "full" }

// either returns the count for the short or the full form.
func either[T any](short, long T) T {
	if full() {
		return long
	}
	return short
}

// allowed is how long one process may take.
func allowed() time.Duration { return either(patience, 15*time.Minute) }

// pair is what a row is known by.
type pair struct{ refer, number string }

// pairs are the rows of an input that [orders] wrote.
func pairs(n int, refer func(int) string) []pair {
	all := make([]pair, n)
	for i := range all {
		all[i] = pair{refer(i), parcelNumber(i)}
	}
	return all
}

// parcels lets every tenth order have a second parcel.
func parcels(i int) string {
	if i%10 == 9 {
		i--
	}
	return ascending(i)
}

// control creates one row while the service is well, in a run of its own, so
// that there is something the service is known to have.
func (w *world) control(flags ...string) pair {
	w.tb.Helper()
	p := pair{"CONTROL-1", "1Z999AA10123456784"}
	code, stdout, stderr := w.run(append([]string{"create", "--refer-id", p.refer, "--tracking-number", p.number, "-o", "json"}, flags...)...)
	if code != 0 {
		w.tb.Fatalf("the control row's create ended with %d\nstdout: %s\nstderr: %s", code, stdout, stderr)
	}
	return p
}

// books is what the ledger and the service say of the same rows.
type books struct {
	accepted, rejected, unknown, pending int // rows of the ledger
	made                                 int // trackings of the service
}

// audit compares the ledger with the service. Whatever happened, and however
// far a create got, nothing may be in the service twice, nor be accepted that
// the service lacks, nor rejected that it has. rows are all there may be.
func (w *world) audit(rows []pair, flags ...string) books {
	w.tb.Helper()
	service := w.service(rows)
	b := books{made: len(service)}
	for p, state := range w.ledger(flags...) {
		switch state {
		case "accepted":
			b.accepted++
			if service[p] == 0 {
				w.tb.Errorf("%v is said to be accepted, and the service lacks it", p)
			}
		case "rejected":
			b.rejected++
			if service[p] != 0 {
				w.tb.Errorf("%v is said to be rejected, and the service has it", p)
			}
		case "unknown":
			b.unknown++
		case "pending", "sending":
			b.pending++
		default:
			w.tb.Errorf("%v is in state %q", p, state)
		}
	}
	return b
}

// service returns what the service has, and how often each was created. It
// fails the test for whatever was made twice, or was never asked for.
func (w *world) service(rows []pair) map[pair]int {
	w.tb.Helper()
	asked := make(map[pair]bool, len(rows))
	for _, p := range rows {
		asked[p] = true
	}
	made := map[pair]int{}
	twice := 0
	for _, r := range w.stats("").Rows {
		p := pair{r.ReferID, r.RawTrackingNumber}
		made[p] = r.Created
		if r.Created > 1 {
			twice++
		}
		if !asked[p] {
			w.tb.Errorf("the service has %v, which is in no input", p)
		}
	}
	if twice > 0 {
		w.tb.Errorf("%d of %d rows were created twice", twice, len(made))
	}
	return made
}

// ledger returns the state of every row that the ledger holds.
func (w *world) ledger(flags ...string) map[pair]string {
	w.tb.Helper()
	code, stdout, stderr := w.run(append([]string{"list", "-o", "jsonl"}, flags...)...)
	if code != 0 {
		w.tb.Fatalf("list ended with %d: %s", code, stderr)
	}
	states := map[pair]string{}
	for line := range bytes.Lines(stdout) {
		var r struct{ ReferID, TrackingNumber, State string }
		if err := json.Unmarshal(line, &r); err != nil {
			w.tb.Fatalf("list: %v: %s", err, line)
		}
		states[pair{r.ReferID, r.TrackingNumber}] = r.State
	}
	return states
}

// whole checks that every row was accepted, but for so many rejected ones, and
// that the service has all those.
func (w *world) whole(rows []pair, rejected int, flags ...string) {
	w.tb.Helper()
	b := w.audit(rows, flags...)
	if want := len(rows) - rejected; b.accepted != want || b.rejected != rejected || b.made != want {
		w.tb.Errorf("of %d rows, %d of them bad: %+v", len(rows), rejected, b)
	}
}

func writeFile(tb testing.TB, dir, name, text string) string {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// listenAt starts a server at a loopback address.
func listenAt(t *testing.T, address string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("%s: %v (a second address of this computer is part of the test)", address, err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return s
}
