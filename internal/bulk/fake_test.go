package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// fake is a service that remembers what it took. create decides about one
// request: whether it is taken, and what is answered; nil takes all.
type fake struct {
	create     func(call int, items []tracking.Item) (take bool, reply *tracking.Reply)
	processing bool // queries by referId answer Processing
	always     bool // they do so of everything
	blind      bool // queries find nothing, whatever was taken
	look       func() string
	noNumbers  bool                               // queries by number tell nothing
	evidence   func(asked int) *tracking.Evidence // instead of all that, unless nil
	misses     func(ref string, nth int) bool     // the nth query for ref finds nothing
	lag        time.Duration                      // how long it takes until what was taken is found

	mu      sync.Mutex
	created map[tracking.Key]int
	taken   map[string]time.Time // when, by referId
	refers  map[string]int
	sizes   []int // of requests
	asked   int
	times   map[string]int // asked, by referId
}

func newFake() *fake {
	return &fake{created: map[tracking.Key]int{}, refers: map[string]int{}, taken: map[string]time.Time{}, times: map[string]int{}}
}

func (f *fake) Create(_ context.Context, items []tracking.Item) *tracking.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes = append(f.sizes, len(items))
	take, reply := true, &tracking.Reply{Outcome: tracking.OutcomeAccepted, HTTPStatus: 200}
	if f.create != nil {
		take, reply = f.create(len(f.sizes), items)
	}
	if take {
		f.takes(items...)
	}
	reply.Began = time.Now()
	if reply.Shape == "" && reply.HTTPStatus != 0 {
		reply.Shape, reply.Agrees = shapeOf(reply.HTTPStatus), true
	}
	return reply
}

// shapeOf is the shape of what the fake answers.
func shapeOf(status int) string { return fmt.Sprintf("%d {}", status) }

func (f *fake) takes(items ...tracking.Item) {
	for _, it := range items {
		f.created[it.Key()]++
		f.refers[it.ReferID]++
		f.taken[it.ReferID] = time.Now()
	}
}

func (f *fake) Evidence(_ context.Context, q tracking.Query, it tracking.Item) tracking.Evidence {
	byNumber := q.ReferID == ""
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.evidence != nil {
		if e := f.evidence(f.asked); e != nil {
			return *e
		}
	}
	absent := tracking.Evidence{Presence: tracking.PresenceAbsent, Fingerprint: "404"}
	if f.look != nil {
		absent.Fingerprint = f.look()
	}
	switch {
	case f.blind, f.lag > 0 && time.Since(f.taken[it.ReferID]) < f.lag, f.misses != nil && f.missed(it.ReferID):
		return absent
	case byNumber && f.noNumbers:
		return tracking.Evidence{Why: "tells nothing"}
	case !byNumber && (f.always || f.processing && f.refers[it.ReferID] > 0):
		return tracking.Evidence{Presence: tracking.PresenceProcessing}
	case f.created[it.Key()] > 0:
		return tracking.Evidence{Presence: tracking.PresenceNamed, Own: true}
	case !byNumber && f.refers[it.ReferID] > 0:
		return tracking.Evidence{Why: "names other numbers only"}
	}
	return absent
}

func (f *fake) missed(ref string) bool {
	f.times[ref]++
	return f.misses(ref, f.times[ref])
}

// twice returns how many rows were created more than once.
func (f *fake) twice() int {
	n := 0
	for _, times := range f.created {
		if times > 1 {
			n++
		}
	}
	return n
}

var errLost = errors.New("no complete answer")

// lost is an answer that never came.
func lost() *tracking.Reply { return &tracking.Reply{Outcome: tracking.OutcomeUnknown, Err: errLost} }

func took() *tracking.Reply {
	return &tracking.Reply{Outcome: tracking.OutcomeAccepted, HTTPStatus: 200}
}

func refused(status int, o tracking.Outcome) *tracking.Reply {
	return &tracking.Reply{Outcome: o, HTTPStatus: status, Err: errors.New("refused")}
}

// proving is a run to be executed as the program does by default, but for its patience
// and its trust in what the service answers.
func proving(db *store.DB, run ledger.Run, s bulk.Service) *bulk.Job {
	return &bulk.Job{Ledger: contracts(db), Service: s, Gate: pace.New(4, 0), Run: run, Policy: bulk.Policy{
		Unknown: bulk.Reconcile, SkipProof: true, Workers: 4, MaxRejects: 100, QueryTimeout: 5 * time.Second, ConnectFor: 5 * time.Second, GiveUpAfter: 5 * time.Second,
	}}
}

// execute executes a run and checks the states of its rows.
func execute(t *testing.T, j *bulk.Job, db *store.DB, want ledger.Counts) {
	t.Helper()
	if _, err := j.Execute(t.Context(), t.Context()); err != nil {
		t.Errorf("execute: %v", err)
	}
	if got := counts(t, db, j.Run); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// reasons returns why rows are in that state.
func reasons(t *testing.T, db *store.DB, run ledger.Run, state ledger.State) []string {
	t.Helper()
	var all []string
	for row, err := range db.Rows(t.Context(), run.ID) {
		if err != nil {
			t.Fatal(err)
		}
		if row.State == state {
			all = append(all, row.Reason)
		}
	}
	return all
}

// stageItems stages rows as they are.
func stageItems(t *testing.T, db *store.DB, plan ledger.Plan, items ...tracking.Item) ledger.Run {
	t.Helper()
	plan.Files = []string{"orders.csv"}
	if plan.Mode == "" {
		plan.Mode = ledger.Async
	}
	run, err := bulk.Stage(t.Context(), db, plan, func(yield func(ledger.Entry, error) bool) {
		for i, it := range items {
			if !yield(ledger.Entry{Line: i + 2, Item: it}, nil) {
				return
			}
		}
	}, bulk.StageChecks{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}
