package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// ServerHarness is how the suite of what only a server has gets at one. Its places are
// on that server, which nobody else uses meanwhile.
type ServerHarness struct {
	Harness

	// OpenBehind opens a store as a process does that has a network of its own to the server, and
	// waits for the server until a time; zero: for some seconds.
	OpenBehind func(t testing.TB, place string, until time.Time) (Store, Network)
	// OpenStandby opens the store of a server that follows the server, and only reads.
	OpenStandby func(t testing.TB, place string) Store

	Restart   func(t testing.TB) // as after a crash of the server
	Terminate func(t testing.TB) // ends all connections
	// Remember remembers what the server holds. What it returns starts the server anew
	// with that, as another one that did not get what was committed since.
	Remember func(t testing.TB) (forget func(t testing.TB))
	// IsLost reports whether an error says that the server lost commits.
	IsLost func(err error) bool
}

// Network is what is between a process and the server.
type Network struct {
	// CutBefore cuts the connection on which the process next sends a commit before the
	// server gets it, and CutAfter while the answer is on its way.
	CutBefore, CutAfter func()
	Refuse              func() // cuts all connections, and lets none be made
	RefuseNew           func() // lets none be made; all are cut with the next that is
	Heal                func() // lets connections be made again
}

// Server tests a store on a server against what the contracts of packages ledger and
// inbox promise, while connections, and the server, fail.
func Server(t *testing.T, h ServerHarness) {
	t.Helper()
	for name, test := range map[string]func(*serverWorld){
		"LostCommitsAreDoneAgain":        lostCommitsAreDoneAgain,
		"UnknownCommitsAreNamed":         unknownCommitsAreNamed,
		"UnknownClaimsAreGivenBack":      unknownClaimsAreGivenBack,
		"LateResultsChangeNoOtherClaim":  lateResultsChangeNoOtherClaim,
		"ServerRestarts":                 serverRestarts,
		"ConnectionsAreTerminated":       connectionsAreTerminated,
		"NoDeliveryIsLostOrTwice":        noDeliveryIsLostOrTwice,
		"WhoWasTakenForDeadWritesNo":     whoWasTakenForDeadWritesNothing,
		"WhoWasTakenForDeadStagesNo":     whoWasTakenForDeadStagesNothing,
		"WhoComesBackInTimeGoesOn":       whoComesBackInTimeGoesOn,
		"ForgottenCommitsAreNamed":       forgottenCommitsAreNamed,
		"StandbyIsRead":                  standbyIsRead,
		"CloseDoesNotWaitForTheServer":   closeDoesNotWait,
		"ServerThatIsAwayIsNamedAndBack": awayIsNamed,
		"ServerThatIsAwayIsNoOneStaging": awayIsNotBusy,
	} {
		t.Run(name, func(t *testing.T) { test(&serverWorld{newWorld(t, h.Harness), h}) })
	}
}

// serverWorld is a store on the server, and a process that has it open.
type serverWorld struct {
	*world
	server ServerHarness
}

// behind makes the process one that has a network of its own.
func (w *serverWorld) behind() Network {
	w.Helper()
	s, n := w.openBehind(w.place)
	w.Store = s
	return n
}

func (w *serverWorld) openBehind(place string) (Store, Network) {
	w.Helper()
	s, n := w.server.OpenBehind(w, place, time.Time{})
	w.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return s, n
}

// work is a row's and a delivery's way through a store.
type work struct {
	*serverWorld
	staging ledger.Staging
	run     ledger.Run
	batches []ledger.Batch
	sink    int64
	entries []inbox.OutboxEntry
}

// prepared returns the rows of a delivery.
func prepared(d inbox.Delivery) []inbox.Event { return inbox.Prepare(d, webhook.Decode(d.Body)) }

// steps are what a store is asked to write on that way.
var steps = []struct {
	name string
	do   func(*work)
}{
	{"stage", func(w *work) {
		var err error
		w.staging, err = w.Stage(w.Context(), plan())
		w.must(err)
	}},
	{"add", func(w *work) {
		have(w.staging.Add(w.Context(), entries(1, 7)))(w.world)
	}},
	{"open", func(w *work) {
		var err error
		w.run, err = w.staging.Open(w.Context())
		w.must(err)
	}},
	{"claim", func(w *work) { w.batches = w.claim(w.run.ID, 2) }},
	{"record", func(w *work) { w.record(ledger.Accepted, w.batches...) }},
	{"record", func(w *work) {
		w.must(w.Record(w.Context(), []ledger.RecordedAnswer{{Seen: sightings(1)}}))
	}},
	{"put", func(w *work) { w.put(event(uuid(1), ""), inbox.Yes) }},
	{"put refused", func(w *work) {
		have(w.PutRefused(w.Context(), delivery("x", inbox.No)))(w.world)
	}},
	{"open sink", func(w *work) { w.sink = w.world.sink(&inbox.StartPosition{}) }},
	{"advance", func(w *work) { w.advance(w.sink, all) }},
	{"claim entries", func(w *work) { _, w.entries = w.claimEntries(w.sink) }},
	{"record attempt", func(w *work) { w.recordAttempt(w.entries[0], inbox.Sent) }},
}

// do takes all steps, and calls before with the name of each.
func (w *serverWorld) do(before func(step string)) {
	w.Helper()
	all := &work{serverWorld: w}
	for _, s := range steps {
		before(s.name)
		s.do(all)
	}
	w.isDone(all.run.ID)
}

// isDone checks what all steps leave, once each.
func (w *serverWorld) isDone(run int64) {
	w.Helper()
	w.counts(run, ledger.Counts{Accepted: 6, Pending: 1})
	w.same("requests", have(w.Run(w.Context(), run))(w.world).Requests, int64(2))
	w.same("runs", len(collect(w.world, w.Runs(w.Context(), 0))), 1)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current})
	w.same("refused", len(collect(w.world, w.Refused(w.Context(), 0))), 1)
	w.same("trackings", len(collect(w.world, w.Statuses(w.Context(), ledger.Filter{}))), 7)
	sink := w.onlySink()
	w.same("waiting", sink.Waiting, int64(0))
	w.same("left", len(have(w.Claim(w.Context(), run, 9, 1000))(w.world)), 1)
}

// Each step loses the connection, or its answer.
func lostCommitsAreDoneAgain(w *serverWorld) {
	for side, cut := range map[string]func(Network){
		"before": func(n Network) { n.CutBefore() },
		"after":  func(n Network) { n.CutAfter() },
	} {
		w.part(side, func(w *serverWorld) {
			n := w.behind()
			w.do(func(string) { cut(n) })
		})
	}
}

// part runs a part of a test in a store of its own.
func (w *serverWorld) part(name string, part func(*serverWorld)) {
	t, ok := w.TB.(*testing.T)
	if !ok {
		w.Fatal("no test")
	}
	t.Run(name, func(t *testing.T) { part(&serverWorld{newWorld(t, w.h), w.server}) })
}

// The answer to a commit is lost, and nobody can be asked: that is named, and what was
// stored is there, once.
func unknownCommitsAreNamed(w *serverWorld) {
	n := w.behind()
	w.put(event(uuid(1), ""), inbox.Yes)
	n.CutAfter()
	n.RefuseNew()
	d := delivery(event(uuid(2), ""), inbox.Yes)
	_, err := w.Put(w.Context(), d, prepared(d))
	w.is("put", err, inbox.ErrUnreachable)
	n.Heal()
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Current})
	w.put(event(uuid(2), ""), inbox.Yes) // whoever sent it sends it again
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Current, inbox.Duplicate})
}

// Entries whose claim was stored, without this process knowing it, are claimed again: it
// lives, so nobody else gets them.
func unknownClaimsAreGivenBack(w *serverWorld) {
	n := w.behind()
	want := []int64{w.deliver("A"), w.deliver("B")}
	sink := w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	n.CutAfter()
	n.RefuseNew()
	_, _, err := w.ClaimEntries(w.Context(), sink, 9, time.Now())
	w.is("claim", err, inbox.ErrUnreachable)
	n.Heal()
	of, entries := w.claimEntries(sink)
	w.same("claimed again", of, want)
	for _, e := range entries {
		w.same("attempt", e.Attempt, 1)
	}
	w.same("claimed while they are sent", firstOf(w.claimEntries(sink)), []int64(nil))
}

// A result that was stored, without this process knowing it, is recorded again only after
// the entry was claimed again: that claim stays.
func lateResultsChangeNoOtherClaim(w *serverWorld) {
	n := w.behind()
	want := []int64{w.deliver("A")}
	sink := w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	failed := inbox.AttemptOutcome{Disposition: inbox.Retry, Attempt: entries[0].Attempt, Now: time.Now(), Due: time.Now(), Problem: "busy"}
	n.CutAfter()
	n.RefuseNew()
	w.is("record", w.RecordAttempt(w.Context(), entries[0].ID, failed), inbox.ErrUnreachable)
	n.Heal()
	of, again := w.claimEntries(sink)
	w.same("claimed again", of, want)
	w.must(w.RecordAttempt(w.Context(), entries[0].ID, failed))
	w.same("claimed while it is sent", firstOf(w.claimEntries(sink)), []int64(nil))
	failed.Attempt = again[0].Attempt
	w.must(w.RecordAttempt(w.Context(), again[0].ID, failed))
	_, entries = w.claimEntries(sink)
	w.same("failures", entries[0].Failures, 2)
}

func serverRestarts(w *serverWorld) {
	w.do(func(step string) {
		if step == "add" || step == "record" || step == "put" || step == "record attempt" {
			w.server.Restart(w)
		}
	})
}

func connectionsAreTerminated(w *serverWorld) {
	w.do(func(string) { w.server.Terminate(w) })
}

// Many processes store deliveries while connections fail: each that was stored by a call
// without an error is there, and there once; numbers grow.
func noDeliveryIsLostOrTwice(w *serverWorld) {
	const processes, each = 3, 40
	var wg sync.WaitGroup
	var stored sync.Map // number of delivery to its body
	for p := range processes {
		s, n := w.openBehind(w.place)
		wg.Go(func() {
			for i := range each {
				switch i % 4 {
				case 1:
					n.CutBefore()
				case 3:
					n.CutAfter()
				}
				d := delivery(event(uuid(p*each+i), ""), inbox.Yes)
				r, err := s.Put(w.Context(), d, prepared(d))
				if err != nil {
					w.Errorf("put: %v", err)
					continue
				}
				if _, twice := stored.LoadOrStore(r.Delivery, string(d.Body)); twice {
					w.Errorf("delivery %d was given to two", r.Delivery)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	last, seen := int64(0), 0
	read := func() {
		for e, err := range w.Events(w.Context(), inbox.Query{After: last}) {
			if err != nil {
				continue // it reads on from the last
			}
			last = e.Seq
			seen++
			if e.Mark != inbox.Current {
				w.Errorf("event %d is %s", e.Seq, e.Mark)
			}
		}
	}
	for range 5 {
		w.server.Terminate(w)
		read()
	}
	<-done
	read()
	w.same("events, read as they came", seen, processes*each)
	w.same("events", len(w.marks()), processes*each)
}

// Whose time to wait for another staging runs out while the server is away learns that.
func awayIsNotBusy(w *serverWorld) {
	n := w.behind()
	n.Refuse()
	ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := w.Stage(ctx, plan())
	w.is("staging", err, inbox.ErrUnreachable)
	if errors.Is(err, ledger.ErrBusy) {
		w.Errorf("staging: %v, but nobody is in the way", err)
	}
	n.Heal()
	w.must(w.begin(w.Store, plan(), entries(1, 1)...).Discard(w.Context()))
}

// cutOffUntilDead cuts a process off until another may take over.
func (w *serverWorld) cutOff(n Network) Store {
	w.Helper()
	n.Refuse()
	return w.open()
}

// What a process was sending when it was taken for dead is another's.
func whoWasTakenForDeadWritesNothing(w *serverWorld) {
	n := w.behind()
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 1)
	w.put(event(uuid(1), ""), inbox.Yes)
	sink := w.sink(&inbox.StartPosition{})
	w.advance(sink, all)
	_, claimed := w.claimEntries(sink)
	w.must(w.CheckOwner(b[0].Owner))
	other := w.cutOff(n)
	w.same("unknown", have(other.Recover(w.Context()))(w.world), int64(3))
	w.is("owner", w.CheckOwner(b[0].Owner), ledger.ErrNotClaimed)
	err := w.CheckOwner(claimed[0].Owner)
	w.is("owner", err, inbox.ErrNotClaimed)
	w.same("place in the text", strings.Count(err.Error(), "://"), 1)
	taken, _, err := other.ClaimEntries(w.Context(), sink, 9, time.Now())
	w.must(err)
	w.same("taken over", len(taken), 1)
	n.Heal()
	err = w.RecordOutcomes(w.Context(), []ledger.BatchOutcome{outcome(b[0], ledger.Accepted)})
	w.is("record", err, ledger.ErrNotClaimed)
	w.is("owner", w.CheckOwner(b[0].Owner), ledger.ErrNotClaimed)
	w.recordAttempt(claimed[0], inbox.GivenUp)
	w.counts(run.ID, ledger.Counts{Unknown: 3, Pending: 3})
	w.must(other.RecordAttempt(w.Context(), taken[0].ID, inbox.AttemptOutcome{Disposition: inbox.Sent, Now: sent, Status: 200}))
	w.same("given up", w.onlySink().Dead, int64(0))
	w.record(ledger.Accepted, w.claim(run.ID, 1)...) // it goes on under another name
	w.counts(run.ID, ledger.Counts{Unknown: 3, Accepted: 3})
}

func whoWasTakenForDeadStagesNothing(w *serverWorld) {
	n := w.behind()
	staging := w.begin(w.Store, plan(), entries(1, 4)...)
	begun, other := staging, w.cutOff(n)
	next := w.begin(other, plan(), entries(3, 6)...)
	n.Heal()
	_, err := begun.Add(w.Context(), entries(5, 9))
	w.is("add", err, ledger.ErrNotClaimed)
	_, err = begun.Open(w.Context())
	w.is("open", err, ledger.ErrNotClaimed)
	w.must(begun.Discard(w.Context()))
	run := have(next.Open(w.Context()))(w.world)
	w.same("tally", run.Tally, ledger.Tally{New: 4})
	w.counts(run.ID, ledger.Counts{Pending: 4})
}

func whoComesBackInTimeGoesOn(w *serverWorld) {
	n := w.behind()
	run := w.run(plan(), entries(1, 6)...)
	b := w.claim(run.ID, 1)
	other := w.cutOff(n)
	n.Heal()
	w.same("unknown", have(other.Recover(w.Context()))(w.world), int64(0))
	w.must(w.CheckOwner(b[0].Owner))
	w.record(ledger.Accepted, b...)
	w.counts(run.ID, ledger.Counts{Accepted: 3, Pending: 3})
}

// A server that lost what a process stored is not written to by that process.
func forgottenCommitsAreNamed(w *serverWorld) {
	run := w.run(plan(), entries(1, 3)...)
	b := w.claim(run.ID, 1)
	forget := w.server.Remember(w)
	w.record(ledger.Accepted, b...)
	forget(w)
	d := delivery(event(uuid(1), ""), inbox.Yes)
	for range 2 {
		if _, err := w.Put(w.Context(), d, prepared(d)); !w.server.IsLost(err) {
			w.Errorf("put: %v", err)
		}
	}
	other := w.open()
	w.putInto(other, d) // who knows nothing of what was lost goes on
}

func standbyIsRead(w *serverWorld) {
	run := w.run(plan(), entries(1, 3)...)
	w.put(event(uuid(1), ""), inbox.Yes)
	w.Store = w.server.OpenStandby(w, w.place)
	w.counts(run.ID, ledger.Counts{Pending: 3})
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current})
	d := delivery(event(uuid(2), ""), inbox.Yes)
	_, err := w.Put(w.Context(), d, prepared(d))
	w.is("put", err, inbox.ErrReadOnly)
	_, err = w.Claim(w.Context(), run.ID, 1, 1000)
	w.is("claim", err, inbox.ErrReadOnly)
	w.must(w.Close())
}

// Whoever would wait an hour for the server to write does not wait for it to close.
func closeDoesNotWait(w *serverWorld) {
	s, n := w.server.OpenBehind(w, w.place, time.Now().Add(time.Hour))
	w.putInto(s, delivery(event(uuid(1), ""), inbox.Yes))
	n.Refuse()
	defer n.Heal()
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		w.must(err)
	case <-time.After(time.Minute):
		w.Error("closing waits for the server")
	}
}

func awayIsNamed(w *serverWorld) {
	n := w.behind()
	w.put(event(uuid(1), ""), inbox.Yes)
	n.Refuse()
	d := delivery(event(uuid(2), ""), inbox.Yes)
	for range 2 {
		_, err := w.Put(w.Context(), d, prepared(d))
		w.is("put", err, inbox.ErrUnreachable)
	}
	w.is("events", end(w.Events(w.Context(), inbox.Query{})), inbox.ErrUnreachable)
	n.Heal()
	w.put(event(uuid(2), ""), inbox.Yes)
	w.same("marks", w.marks(), []inbox.Mark{inbox.Current, inbox.Current})
}
