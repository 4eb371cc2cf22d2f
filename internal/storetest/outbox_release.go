package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// deliverUnverified puts a delivery with one event that is not verified.
func (w *world) deliverUnverified(number string) int64 {
	w.Helper()
	return w.put(fmt.Sprintf(`[{"eventId":"%d","event":"x","data":{"trackingNumber":%q}}]`, rand.Uint64(), number), inbox.Unknown).Delivery //nolint:gosec // not a secret
}

func acceptVerified(rows []inbox.Event) bool {
	for _, e := range rows {
		if e.Verified == inbox.Yes {
			return true
		}
	}
	return false
}

// sendAll sends all that is due, and what is due then, and returns it.
func (w *world) sendAll(sink int64) []int64 {
	w.Helper()
	var all []int64
	for {
		of, entries := w.claimEntries(sink)
		if len(of) == 0 {
			return all
		}
		all = append(all, of...)
		for _, l := range entries {
			w.recordAttempt(l, inbox.Sent)
		}
	}
}

func releasedAreReadOnce(w *world) {
	behind, ahead := w.sink(nil), w.sink(nil)
	w.same("one sink", behind, ahead)
	first, second := w.deliverUnverified("A"), w.deliverUnverified("B")
	w.same("not verified", w.advance(behind, acceptVerified), []int64(nil))
	third := w.deliverUnverified("C")
	w.setVerdict(second, inbox.Yes)
	w.setVerdict(third, inbox.Yes)
	w.setVerdict(first, inbox.No)
	w.same("released, and not passed yet", w.advance(behind, acceptVerified), []int64{second, third})
	w.setVerdict(first, inbox.Yes)
	w.same("released later", w.advance(behind, acceptVerified), []int64{first})
	w.kill()
	w.same("nothing more", w.advance(behind, all), []int64(nil))
	w.same("sent", len(w.sendAll(behind)), 3)
}

// What was released, and what was taken for it, outlives the process.
func releasesSurviveKill(w *world) {
	sink := w.sink(nil)
	first, second := w.deliverUnverified("A"), w.deliverUnverified("B")
	w.same("not verified", w.advance(sink, acceptVerified), []int64(nil))
	w.setVerdict(second, inbox.Yes)
	w.kill()
	w.setVerdict(first, inbox.Yes)
	w.same("in the order of their release", have(w.Advance(w.Context(), sink, 1, acceptVerified))(w).Queued, []int64{second})
	w.kill()
	w.same("the other", w.advance(sink, acceptVerified), []int64{first})
	w.kill()
	w.same("nothing more", w.advance(sink, acceptVerified), []int64(nil))
	w.same("sent", w.sendAll(sink), []int64{second, first})
	later := have(w.OpenSink(w.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:2/"}, nil))(w)
	w.same("begun later", w.advance(later.ID, all), []int64(nil))
}

// Many are released in another order than that in which they came, while the
// cursor has not read most of them: none is read twice.
func manyReleasedAreReadOnce(w *world) {
	sink := w.sink(nil)
	var seqs []int64
	for i := range 30 {
		seqs = append(seqs, w.deliverUnverified(fmt.Sprint(i)))
	}
	for _, seq := range append(append([]int64{}, seqs[15:]...), seqs[:15]...) {
		w.setVerdict(seq, inbox.Yes)
	}
	w.same("taken", w.advance(sink, acceptVerified), seqs)
}

// One is released just when a cursor has read where it is.
func releasedWhileRead(w *world) {
	sink := w.sink(nil)
	seqs := []int64{w.deliverUnverified("A"), w.deliverUnverified("B"), w.deliverUnverified("C")}
	released := false
	taken := w.advance(sink, func(rows []inbox.Event) bool {
		if !released {
			released = true
			w.setVerdict(seqs[0], inbox.Yes) // shown as it was before
			w.setVerdict(seqs[1], inbox.Yes) // will be shown as it is now
		}
		return acceptVerified(rows)
	})
	w.same("taken", taken, seqs[:2])
}

// What was sent before it verified is not sent again because it does.
func sentBeforeItVerified(w *world) {
	sink := w.sink(nil)
	done, dead, waits := w.deliverUnverified("A"), w.deliverUnverified("B"), w.deliverUnverified("C")
	w.same("taken", w.advance(sink, all), []int64{done, dead, waits})
	_, entries := w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.Sent)
	w.recordAttempt(entries[1], inbox.GivenUp)
	w.recordAttempt(entries[2], inbox.Retry)
	w.kill()
	for _, seq := range []int64{done, dead, waits} {
		w.setVerdict(seq, inbox.Yes)
	}
	w.advance(sink, all)
	w.same("the others", w.sendAll(sink), []int64{waits, dead})
	w.same("nothing more", w.advance(sink, all), []int64(nil))

	// Set back, it is sent like any other.
	w.sink(&inbox.StartPosition{Delivery: done})
	w.same("set back", w.advance(sink, all), []int64{done, dead, waits})
}

// A sink that was set back, and then accepts verified deliveries only, gets them
// even if they were sent unverified once.
func setBackBeforeItVerified(w *world) {
	sink := w.sink(nil)
	d := w.deliverUnverified("A")
	w.advance(sink, all)
	w.same("sent", w.sendAll(sink), []int64{d})
	w.sink(&inbox.StartPosition{})
	w.same("not wanted now", w.advance(sink, acceptVerified), []int64(nil))
	w.setVerdict(d, inbox.Yes)
	w.same("verified", w.advance(sink, acceptVerified), []int64{d})
}

// pruningKeepsWaiting keeps what is still to be sent.
func pruningKeepsWaiting(w *world) {
	sink := w.sink(nil)
	sentOne, dead, waits, mine := w.deliver("A"), w.deliver("B"), w.deliver("C"), w.deliver("D")
	w.advance(sink, all)
	_, entries := w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.Sent)
	w.recordAttempt(entries[1], inbox.GivenUp)
	w.recordAttempt(entries[2], inbox.Retry)
	p := have(w.Prune(w.Context(), sent.Add(time.Hour)))(w)
	w.same("pruned", []int64{p.Deliveries, p.Dead, p.Waiting}, []int64{2, 1, 2})
	w.same("given up", len(collect(w, w.DeadEntries(w.Context()))), 0)
	for seq, want := range map[int64]bool{sentOne: false, dead: false, waits: true, mine: true} {
		w.same(fmt.Sprint("kept ", seq), have(w.Delivery(w.Context(), seq))(w).Body != nil, want)
	}
	w.same("sent", w.sendAll(sink), []int64{waits})
	p = have(w.Prune(w.Context(), sent.Add(time.Hour)))(w)
	w.same("then", []int64{p.Deliveries, p.Dead, p.Waiting}, []int64{1, 0, 1})
	w.recordAttempt(entries[3], inbox.Sent)
	// What is pruned before a cursor comes to it is given up, and goes next.
	late := w.deliver("E")
	have(w.Prune(w.Context(), sent.Add(time.Hour)))(w)
	w.same("late", w.advance(sink, all), []int64{late})
	_, entries = w.claimEntries(sink)
	w.recordAttempt(entries[0], inbox.GivenUp)
	p = have(w.Prune(w.Context(), sent.Add(time.Hour)))(w)
	w.same("at last", []int64{p.Deliveries, p.Dead, p.Waiting}, []int64{0, 1, 0})
}

// eachIsSentOnceWheneverItVerifies lets deliveries verify at any point on their
// way through two sinks, one of which takes them before that too.
func eachIsSentOnceWheneverItVerifies(w *world) {
	seed := rand.Uint64() //nolint:gosec // not a secret
	defer func() {
		if w.Failed() {
			w.Logf("seed %d", seed)
		}
	}()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not a secret
	loose := have(w.OpenSink(w.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:2/"}, nil))(w)
	sinks := []*releaseSender{{world: w, sink: w.sink(nil), wants: acceptVerified, sent: map[int64]int{}}, {world: w, sink: loose.ID, wants: all, sent: map[int64]int{}}}
	var open, received []int64
	for range 400 {
		switch k := sinks[random.IntN(2)]; random.IntN(5) {
		case 0:
			if len(received) < 40 {
				received = append(received, w.deliverUnverified(fmt.Sprint(random.IntN(5))))
				open = append(open, received[len(received)-1])
			}
		case 1:
			if len(open) > 0 {
				i := random.IntN(len(open))
				w.setVerdict(open[i], inbox.Yes)
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		case 2:
			k.move(1 + random.IntN(4))
		case 3:
			k.claim()
		case 4:
			k.recordFirst()
		}
	}
	for _, seq := range open {
		w.setVerdict(seq, inbox.Yes)
	}
	for _, k := range sinks {
		for k.move(3) {
		}
		for k.claim(); len(k.under) > 0; k.claim() {
			k.recordFirst()
		}
		w.same("sent", len(k.sent), len(received))
		for seq, n := range k.sent {
			w.same(fmt.Sprint("how often ", seq), n, 1)
		}
	}
}

// releaseSender is a sink and the processes that send for it.
type releaseSender struct {
	*world
	sink  int64
	wants func([]inbox.Event) bool
	under []inbox.OutboxEntry
	sent  map[int64]int // how often, by delivery
}

func (k *releaseSender) move(n int) bool {
	k.Helper()
	p, err := k.Advance(k.Context(), k.sink, n, k.wants)
	k.must(err)
	return p.Read > 0
}

func (k *releaseSender) claim() {
	k.Helper()
	entries, _, err := k.ClaimEntries(k.Context(), k.sink, 3, time.Now().Add(time.Hour))
	k.must(err)
	k.under = append(k.under, entries...)
}

// recordFirst ends what was claimed first: as sent, but every fourth time.
func (k *releaseSender) recordFirst() {
	k.Helper()
	if len(k.under) == 0 {
		return
	}
	l := k.under[0]
	k.under = k.under[1:]
	if rand.IntN(4) == 0 { //nolint:gosec // not a secret
		k.recordAttempt(l, inbox.Retry)
		return
	}
	k.recordAttempt(l, inbox.Sent)
	k.sent[l.Delivery]++
}

// What a cursor has not read yet is kept for a day: a target may be away for as
// long. A sink that is never opened again keeps nothing.
func pruningWaitsForCursorsForADay(w *world) {
	sink := w.sink(nil)
	old, late := w.deliverUnverified("A"), delivery("["+event(uuid(1), "")+"]", inbox.Unknown)
	late.ReceivedAt = time.Now().Add(-time.Hour)
	seq := w.putInto(w.Store, late).Delivery
	prune := func(what string, pruned, waiting int64) {
		w.Helper()
		p := have(w.Prune(w.Context(), time.Now()))(w)
		w.same(what, []int64{p.Deliveries, p.Waiting}, []int64{pruned, waiting})
	}
	prune("not passed", 1, 1)
	w.same("pruned", have(w.Delivery(w.Context(), old))(w).Body == nil, true)
	w.advance(sink, acceptVerified)
	w.setVerdict(seq, inbox.Yes)
	prune("released", 0, 1)
	w.same("taken", w.advance(sink, acceptVerified), []int64{seq})
	prune("taken", 0, 1)
	w.same("sent", w.sendAll(sink), []int64{seq})
	prune("sent", 1, 0)
}
