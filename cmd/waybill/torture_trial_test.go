package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dice returns this test's chance.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := either[uint64](1, uint64(time.Now().UnixNano()))
	if s := os.Getenv("TORTURE_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("TORTURE_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("TORTURE_SEED=%d", seed)
	name := fnv.New64a()
	_, _ = io.WriteString(name, t.Name()) // so that no two tests throw the same
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}

// chance lets every request meet a fault with this probability.
func (w *world) chance(probability float64, names ...string) {
	w.tb.Helper()
	for _, name := range names {
		w.steer("faults", map[string]any{"name": name, "probability": probability})
	}
}

// fault lets the next count requests of an operation meet a fault.
func (w *world) fault(name, operation string, count int) {
	w.tb.Helper()
	w.steer("faults", map[string]any{"name": name, "operation": operation, "count": count})
}

func (w *world) steer(what string, v any) {
	w.tb.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		w.tb.Fatal(err)
	}
	res, err := http.Post(w.url+"/_sandbox/"+what, "application/json", bytes.NewReader(body))
	if err != nil {
		w.tb.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.tb.Fatalf("_sandbox/%s %s answered %s", what, body, res.Status)
	}
}

// finish runs the same command until it ends for good: every row accepted, or
// rejected. A run that brings nothing new may be followed by so many like it.
func (w *world) finish(stuck int, args ...string) createResult {
	w.tb.Helper()
	var last createResult
	for same := 0; ; same++ {
		r, said, done := w.again(args...)
		switch {
		case done:
			return r
		case r.Accepted != last.Accepted || r.Unknown != last.Unknown || r.Pending != last.Pending:
			same = 0
		case same == stuck:
			w.tb.Fatalf("%q does not come to an end: %+v\nstderr: %s", args, r, said)
		}
		last = r
	}
}

// again runs a create, and reports what it said and whether it ended for good.
// It fails the test if it ended as no create does that can be repeated.
func (w *world) again(args ...string) (r createResult, stderr []byte, done bool) {
	w.tb.Helper()
	code, stdout, stderr := w.run(args...)
	err := json.Unmarshal(stdout, &r)
	if err != nil || !slices.Contains(w.endings(), code) {
		w.tb.Fatalf("%q ended with %d: %v\nstdout: %s\nstderr: %s", args, code, err, stdout, stderr)
	}
	return r, stderr, code == 0 || r.Rejected > 0 && r.Unknown+r.Pending == 0
}

// endings are the exit statuses of a create that can be repeated.
func (w *world) endings() []int {
	codes := []int{0, 5, 6, 7, 8, 11}
	if w.storeFails {
		codes = append(codes, 10)
	}
	return codes
}

// killed starts a command and kills it after a delay. It reports whether the
// command was still running then.
func (w *world) killed(delay time.Duration, args ...string) (bool, error) {
	cmd := w.command(args...)
	if err := cmd.Start(); err != nil {
		return false, err
	}
	kill := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	code, err := ended(cmd, allowed())
	switch {
	case err != nil:
		return false, fmt.Errorf("%w\nstderr: %s", err, cmd.Stderr)
	case code == -1:
		return true, nil
	case !slices.Contains(w.endings(), code):
		return false, fmt.Errorf("%q ended with %d\nstdout: %s\nstderr: %s", args, code, cmd.Stdout, cmd.Stderr)
	}
	return false, nil
}

// rowsFile writes rows as an input and returns its name.
func rowsFile(tb testing.TB, dir, name string, rows []pair) string {
	tb.Helper()
	var b strings.Builder
	b.WriteString("referId,rawTrackingNumber\n")
	for _, p := range rows {
		fmt.Fprintf(&b, "%s,%s\n", p.refer, p.number)
	}
	return writeFile(tb, dir, name, b.String())
}

// together runs a command several times at once and returns the error of each
// process that ended as it never should.
func together(n int, run func(int) error) error {
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- run(i) }()
	}
	var all error
	for range n {
		all = errors.Join(all, <-errs)
	}
	return all
}
