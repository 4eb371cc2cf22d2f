package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// allIsSentInOrderAfterKills lets a process die at any point, over and over.
func allIsSentInOrderAfterKills(w *world) {
	seed := rand.Uint64() //nolint:gosec // not a secret
	defer func() {
		if w.Failed() {
			w.Logf("seed %d", seed)
		}
	}()
	const deliveries = 60
	p := &randomSender{
		world: w, sink: w.sink(nil), random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // not a secret
		of: map[int64][]string{}, done: map[int64]bool{}, last: map[string]int64{},
	}
	for steps := 0; len(p.done) < deliveries && steps < 5000; steps++ {
		switch p.random.IntN(6) {
		case 0:
			if len(p.of) < deliveries {
				p.receive()
			}
		case 1:
			have(w.Advance(w.Context(), p.sink, 1+p.random.IntN(4), all))(w)
		case 2:
			entries, _, err := w.ClaimEntries(w.Context(), p.sink, 1+p.random.IntN(3), time.Now().Add(time.Hour))
			w.must(err)
			p.claimed = append(p.claimed, entries...)
		case 3, 4:
			p.recordRandom()
		case 5:
			if p.random.IntN(4) == 0 {
				w.kill()
				p.claimed = nil
			}
		}
	}
	w.same("sent", len(p.done), deliveries)
}

// randomSender is a sink and the processes that send for it.
type randomSender struct {
	*world
	sink    int64
	random  *rand.Rand
	of      map[int64][]string  // tracking numbers of deliveries
	claimed []inbox.OutboxEntry // being sent
	done    map[int64]bool
	last    map[string]int64 // delivery that was sent last, by tracking number
}

func (p *randomSender) receive() {
	p.Helper()
	names := []string{fmt.Sprint("N", p.random.IntN(7))}
	if other := fmt.Sprint("N", p.random.IntN(7)); other != names[0] {
		names = append(names, other)
	}
	p.of[p.deliver(names...)] = names
}

// recordRandom records the outcome of one claimed entry at random.
func (p *randomSender) recordRandom() {
	p.Helper()
	if len(p.claimed) == 0 {
		return
	}
	i := p.random.IntN(len(p.claimed))
	l := p.claimed[i]
	p.claimed = slices.Delete(p.claimed, i, i+1)
	fate := []inbox.Disposition{inbox.Sent, inbox.Sent, inbox.Retry, inbox.Returned}[p.random.IntN(4)]
	p.recordAttempt(l, fate)
	if fate != inbox.Sent {
		return
	}
	p.done[l.Delivery] = true
	for _, n := range p.of[l.Delivery] {
		if l.Delivery < p.last[n] {
			p.Errorf("delivery %d of %s after %d", l.Delivery, n, p.last[n])
		}
		p.last[n] = l.Delivery
	}
}
