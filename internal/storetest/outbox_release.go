package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// claimed puts a delivery with one event that nobody has verified yet.
func (w *world) claimed(number string) int64 {
	w.Helper()
	return w.put(fmt.Sprintf(`[{"eventId":"%d","event":"x","data":{"trackingNumber":%q}}]`, rand.Uint64(), number), inbox.Unknown).Delivery //nolint:gosec // not a secret
}

// genuine wants what verified.
func genuine(rows []inbox.Event) bool {
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
		of, entries := w.fetch(sink)
		if len(of) == 0 {
			return all
		}
		all = append(all, of...)
		for _, l := range entries {
			w.became(l, inbox.Sent)
		}
	}
}

func releasedAreShownOnce(w *world) {
	behind, ahead := w.sink(nil), w.sink(nil)
	w.same("one sink", behind, ahead)
	first, second := w.claimed("A"), w.claimed("B")
	w.same("not verified", w.advance(behind, genuine), []int64(nil))
	third := w.claimed("C")
	w.rejudge(second, inbox.Yes)
	w.rejudge(third, inbox.Yes)
	w.rejudge(first, inbox.No)
	w.same("released, and not passed yet", w.advance(behind, genuine), []int64{second, third})
	w.rejudge(first, inbox.Yes)
	w.same("released later", w.advance(behind, genuine), []int64{first})
	w.kill()
	w.same("nothing more", w.advance(behind, all), []int64(nil))
	w.same("sent", len(w.sendAll(behind)), 3)
}

// Many are released in another order than that in which they came, while the
// cursor has not come to most of them: none is shown twice.
func manyReleasedAreShownOnce(w *world) {
	sink := w.sink(nil)
	var seqs []int64
	for i := range 30 {
		seqs = append(seqs, w.claimed(fmt.Sprint(i)))
	}
	for _, seq := range append(append([]int64{}, seqs[15:]...), seqs[:15]...) {
		w.rejudge(seq, inbox.Yes)
	}
	w.same("taken", w.advance(sink, genuine), seqs)
}

// One is released just when a cursor has read where it is.
func releasedWhileTheyAreShown(w *world) {
	sink := w.sink(nil)
	seqs := []int64{w.claimed("A"), w.claimed("B"), w.claimed("C")}
	released := false
	taken := w.advance(sink, func(rows []inbox.Event) bool {
		if !released {
			released = true
			w.rejudge(seqs[0], inbox.Yes) // shown as it was before
			w.rejudge(seqs[1], inbox.Yes) // will be shown as it is now
		}
		return genuine(rows)
	})
	w.same("taken", taken, seqs[:2])
}

// What was sent before it verified is not sent again because it does.
func sentBeforeItVerified(w *world) {
	sink := w.sink(nil)
	done, dead, waits := w.claimed("A"), w.claimed("B"), w.claimed("C")
	w.same("taken", w.advance(sink, all), []int64{done, dead, waits})
	_, entries := w.fetch(sink)
	w.became(entries[0], inbox.Sent)
	w.became(entries[1], inbox.GivenUp)
	w.became(entries[2], inbox.Retry)
	w.kill()
	for _, seq := range []int64{done, dead, waits} {
		w.rejudge(seq, inbox.Yes)
	}
	w.advance(sink, all)
	w.same("the others", w.sendAll(sink), []int64{waits, dead})
	w.same("nothing more", w.advance(sink, all), []int64(nil))

	// Set back, it is sent like any other.
	w.sink(&inbox.StartPosition{Delivery: done})
	w.same("set back", w.advance(sink, all), []int64{done, dead, waits})
}

// A sink that was set back, and then wants only what verified, gets that even
// if it was sent unverified once.
func setBackBeforeItVerified(w *world) {
	sink := w.sink(nil)
	d := w.claimed("A")
	w.advance(sink, all)
	w.same("sent", w.sendAll(sink), []int64{d})
	w.sink(&inbox.StartPosition{})
	w.same("not wanted now", w.advance(sink, genuine), []int64(nil))
	w.rejudge(d, inbox.Yes)
	w.same("verified", w.advance(sink, genuine), []int64{d})
}

// prunedIsWhatWaitsForNobody keeps what is still to be sent.
func prunedIsWhatWaitsForNobody(w *world) {
	sink := w.sink(nil)
	sentOne, dead, waits, mine := w.about("A"), w.about("B"), w.about("C"), w.about("D")
	w.advance(sink, all)
	_, entries := w.fetch(sink)
	w.became(entries[0], inbox.Sent)
	w.became(entries[1], inbox.GivenUp)
	w.became(entries[2], inbox.Retry)
	p, err := w.Prune(w.Context(), sent.Add(time.Hour))
	w.must(err)
	w.same("pruned", []int64{p.Deliveries, p.Dead, p.Waiting}, []int64{2, 1, 2})
	w.same("given up", len(collect(w, w.DeadEntries(w.Context()))), 0)
	for seq, want := range map[int64]bool{sentOne: false, dead: false, waits: true, mine: true} {
		d, err := w.Delivery(w.Context(), seq)
		w.must(err)
		w.same(fmt.Sprint("kept ", seq), d.Body != nil, want)
	}
	w.same("sent", w.sendAll(sink), []int64{waits})
	p, err = w.Prune(w.Context(), sent.Add(time.Hour))
	w.must(err)
	w.same("then", []int64{p.Deliveries, p.Dead, p.Waiting}, []int64{1, 0, 1})
	w.became(entries[3], inbox.Sent)
	// What is pruned before a cursor comes to it is given up, and goes next.
	late := w.about("E")
	_, err = w.Prune(w.Context(), sent.Add(time.Hour))
	w.must(err)
	w.same("late", w.advance(sink, all), []int64{late})
	_, entries = w.fetch(sink)
	w.became(entries[0], inbox.GivenUp)
	p, err = w.Prune(w.Context(), sent.Add(time.Hour))
	w.must(err)
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
	loose, err := w.OpenSink(w.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:2/"}, nil)
	w.must(err)
	sinks := []*releasing{{world: w, sink: w.sink(nil), wants: genuine, sent: map[int64]int{}}, {world: w, sink: loose.ID, wants: all, sent: map[int64]int{}}}
	var open, received []int64
	for range 400 {
		switch k := sinks[random.IntN(2)]; random.IntN(5) {
		case 0:
			if len(received) < 40 {
				received = append(received, w.claimed(fmt.Sprint(random.IntN(5))))
				open = append(open, received[len(received)-1])
			}
		case 1:
			if len(open) > 0 {
				i := random.IntN(len(open))
				w.rejudge(open[i], inbox.Yes)
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
			}
		case 2:
			k.move(1 + random.IntN(4))
		case 3:
			k.claim()
		case 4:
			k.end()
		}
	}
	for _, seq := range open {
		w.rejudge(seq, inbox.Yes)
	}
	for _, k := range sinks {
		for k.move(3) {
		}
		for k.claim(); len(k.under) > 0; k.claim() {
			k.end()
		}
		w.same("sent", len(k.sent), len(received))
		for seq, n := range k.sent {
			w.same(fmt.Sprint("how often ", seq), n, 1)
		}
	}
}

// releasing is a sink and whoever works for it.
type releasing struct {
	*world
	sink  int64
	wants func([]inbox.Event) bool
	under []inbox.OutboxEntry
	sent  map[int64]int // how often, by delivery
}

func (k *releasing) move(n int) bool {
	k.Helper()
	p, err := k.Advance(k.Context(), k.sink, n, k.wants)
	k.must(err)
	return p.Read > 0
}

func (k *releasing) claim() {
	k.Helper()
	entries, _, err := k.ClaimEntries(k.Context(), k.sink, 3, time.Now().Add(time.Hour))
	k.must(err)
	k.under = append(k.under, entries...)
}

// end ends what was claimed first: as sent, but every fourth time.
func (k *releasing) end() {
	k.Helper()
	if len(k.under) == 0 {
		return
	}
	l := k.under[0]
	k.under = k.under[1:]
	if rand.IntN(4) == 0 { //nolint:gosec // not a secret
		k.became(l, inbox.Retry)
		return
	}
	k.became(l, inbox.Sent)
	k.sent[l.Delivery]++
}

// What no cursor has come to yet is kept for a day: a target may be away for as
// long. One that is never heard of again keeps nothing.
func pruningWaitsForCursorsForADay(w *world) {
	sink := w.sink(nil)
	old, late := w.claimed("A"), delivery("["+event(uuid(1), "")+"]", inbox.Unknown)
	late.ReceivedAt = time.Now().Add(-time.Hour)
	seq := w.putInto(w.Store, late).Delivery
	prune := func(what string, pruned, waiting int64) {
		w.Helper()
		p, err := w.Prune(w.Context(), time.Now())
		w.must(err)
		w.same(what, []int64{p.Deliveries, p.Waiting}, []int64{pruned, waiting})
	}
	prune("not passed", 1, 1)
	d, err := w.Delivery(w.Context(), old)
	w.must(err)
	w.same("pruned", d.Body == nil, true)
	w.advance(sink, genuine)
	w.rejudge(seq, inbox.Yes)
	prune("released", 0, 1)
	w.same("taken", w.advance(sink, genuine), []int64{seq})
	prune("taken", 0, 1)
	w.same("sent", w.sendAll(sink), []int64{seq})
	prune("sent", 1, 0)
}
