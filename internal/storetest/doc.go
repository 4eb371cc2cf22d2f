// Package storetest holds what every store must pass: [Ledger] for the
// contracts of package ledger, [Inbox] for that of package inbox, and [Observed] for that
// of package observed.
package storetest

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/observed"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Store is all that the suites ask for, in two parts of one store.
type Store struct {
	Trackings
	Deliveries
	Observed observed.Store
	Close    func() error
}

// Trackings is what a store keeps of trackings.
type Trackings struct {
	ledger.Stager
	ledger.Queue
	ledger.UnknownRows
	ledger.History
	ledger.Keys
	ledger.Accounts
	ledger.Trackings
	ledger.Statistics
	ledger.Sweeps
	ledger.Eraser
	ledger.EventFollower
}

// Deliveries is what a store keeps of deliveries.
type Deliveries struct {
	inbox.Store
	inbox.Overviews
	inbox.Verdicts
	inbox.Retention
	inbox.Outbox
	inbox.Forwardings
	inbox.Listeners
	inbox.Changes
}

// Harness is how the suites get at stores.
type Harness struct {
	// Place returns a place for a store, where there is none yet.
	Place func(t testing.TB) string
	// Open opens the store at a place, and makes it if there is none. Each call
	// stands for a process of its own. It calls t.Fatal if it can't.
	Open func(t testing.TB, place string) Store
	// Kill ends a store as the death of its process would: nothing is written
	// and nothing cleared away.
	Kill func(t testing.TB, s Store)
	// Check calls t.Error if what the store at a place holds is damaged.
	Check func(t testing.TB, place string)
}

// world is one store and a process that has it open.
type world struct {
	testing.TB
	h     Harness
	place string
	Store
}

func newWorld(t testing.TB, h Harness) *world {
	t.Helper()
	w := &world{TB: t, h: h, place: h.Place(t)}
	t.Cleanup(func() { h.Check(t, w.place) })
	w.Store = w.open()
	return w
}

// open opens the store once more, as another process would.
func (w *world) open() Store {
	w.Helper()
	s := w.h.Open(w, w.place)
	w.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return s
}

// kill ends the process that has the store open, and opens it in another.
func (w *world) kill() {
	w.Helper()
	w.h.Kill(w, w.Store)
	w.Store = w.open()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// have returns what takes the world and returns the value, if there is no error. It is for
// calls that return both: x := have(f())(w).
func have[T any](value T, err error) func(w *world) T {
	return func(w *world) T {
		w.Helper()
		w.must(err)
		return value
	}
}

// is reports whether err matches want, which may be nil for no error.
func (w *world) is(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// same shows how got differs from want.
func (w *world) same(what string, got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

// plan is for batches of three.
func plan() ledger.Plan {
	return ledger.Plan{Files: []string{"orders.csv", "-"}, Mode: ledger.Async, BatchSize: 3}
}

func item(n int) tracking.Item {
	return tracking.Item{ReferID: fmt.Sprintf("order-%04d", n), Number: fmt.Sprintf("1Z-%04d", n), CarrierCode: "ups"}
}

// entries returns the items from..to, one a line from line 2 on.
func entries(from, to int) []ledger.Entry {
	var all []ledger.Entry
	for n := from; n <= to; n++ {
		all = append(all, ledger.Entry{Line: len(all) + 2, Item: item(n)})
	}
	return all
}

// begin begins a staging and adds the entries, which must not contradict each
// other.
func (w *world) begin(s ledger.Stager, p ledger.Plan, all ...ledger.Entry) ledger.Staging {
	w.Helper()
	staging := have(s.Stage(w.Context(), p))(w)
	conflicts := have(staging.Add(w.Context(), all))(w)
	if len(conflicts) > 0 {
		w.Fatalf("conflicts: %v", conflicts)
	}
	return staging
}

// run stages the entries and opens the run.
func (w *world) run(p ledger.Plan, all ...ledger.Entry) ledger.Run {
	w.Helper()
	run := have(w.begin(w.Store, p, all...).Open(w.Context()))(w)
	return run
}

// claim claims up to n batches.
func (w *world) claim(run int64, n int) []ledger.Batch {
	w.Helper()
	batches := have(w.Claim(w.Context(), run, n, 1000))(w)
	return batches
}

// record makes the batches end in that state.
func (w *world) record(state ledger.State, batches ...ledger.Batch) {
	w.Helper()
	var outcomes []ledger.BatchOutcome
	for _, b := range batches {
		outcomes = append(outcomes, outcome(b, state))
	}
	w.must(w.RecordOutcomes(w.Context(), outcomes))
}

// sent is when requests of the suite begin.
var sent = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// outcome is what a batch ends with.
func outcome(b ledger.Batch, state ledger.State) ledger.BatchOutcome {
	s := ledger.BatchOutcome{Batch: b.ID, State: state, HTTPStatus: 200, Answer: []byte("{}\n"), Began: sent, Took: 20 * time.Millisecond}
	if state == ledger.Rejected || state == ledger.Unknown {
		s.Reason = "because of the batch"
	}
	return s
}

// counts checks how many rows of a run's input are in which state.
func (w *world) counts(run int64, want ledger.Counts) {
	w.Helper()
	w.same(fmt.Sprintf("counts of run %d", run), have(w.CountRows(w.Context(), run))(w), want)
}

// states returns the states of the records of a run's input, in order.
func (w *world) states(run int64) []ledger.State {
	w.Helper()
	return each(w, w.Rows(w.Context(), run), func(r ledger.Row) ledger.State { return r.State })
}

func collect[T any](w *world, seq iter.Seq2[T, error]) []T {
	w.Helper()
	var all []T
	for v, err := range seq {
		w.must(err)
		all = append(all, v)
	}
	return all
}

// each returns what of makes of all that seq yields.
func each[T, V any](w *world, seq iter.Seq2[T, error], of func(T) V) []V {
	w.Helper()
	var all []V
	for _, v := range collect(w, seq) {
		all = append(all, of(v))
	}
	return all
}

func end[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// suite runs tests side by side with other suites.
func suite(t *testing.T, h Harness, tests map[string]func(*world)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(newWorld(t, h)) })
	}
}
