package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// sender is where genuine deliveries of the suite come from.
const sender = "192.0.2.1"

// Sizes of floods: deliveries that were refused after a secret changed, requests of anybody among them, and
// forgeries, more than are kept.
const (
	lateSecrets  = 500
	junkRequests = 10_000
	forgeries    = inbox.MaxRefused + lateSecrets
)

// lateSecret is a delivery that was refused after the sender changed its secret.
func lateSecret(n int) inbox.Delivery {
	d := delivery("["+event(fmt.Sprintf("late %d", n), "")+"]", inbox.No)
	d.RemoteAddr = fmt.Sprintf("%s:%d", sender, 1024+n)
	return d
}

// junk is a request that anybody may send, from that address.
func junk(address string, reason webhook.Reason) inbox.Delivery {
	d := delivery("junk", inbox.No)
	d.RemoteAddr, d.Reason = address, reason
	return d
}

// flood refuses n deliveries, many at once, and returns the numbers of those kept at first.
func (w *world) flood(n int, next func(n int) inbox.Delivery) map[int64]bool {
	w.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	kept := map[int64]bool{}
	var done atomic.Int64
	for range 512 {
		wg.Go(func() {
			for i := int(done.Add(1)); i <= n; i = int(done.Add(1)) {
				seq, err := w.PutRefused(w.Context(), next(i))
				if err != nil {
					w.Errorf("put: %v", err)
					return
				}
				mu.Lock()
				kept[seq] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return kept
}

// genuineLeft checks that all genuine deliveries are kept whole, within the
// bounds, and returns their numbers.
func (w *world) genuineLeft() []int64 {
	w.Helper()
	want := map[string]inbox.Delivery{}
	for i := range lateSecrets {
		d := lateSecret(i + 1)
		want[string(d.Body)] = d
	}
	var left []int64
	all := 0
	for d, err := range w.Refused(w.Context(), 0) {
		w.must(err)
		all++
		if string(d.Body) == "junk" {
			continue
		}
		left = append(left, d.Seq)
		d.Seq = 0
		w.same("delivery", d, want[string(d.Body)])
		delete(want, string(d.Body))
	}
	w.same("genuine deliveries that are lost", len(want), 0)
	w.same("all", all, inbox.MaxRefused)
	return left
}

// refusedSurviveJunk refuses 500 genuine deliveries among 10,000 requests, more than
// twice what is kept: half of them without a signature, half with a wrong one; most of these
// from one address, a fifth from an address each. Deliveries from the sender verified once.
func refusedSurviveJunk(w *world) {
	known := delivery("["+event(uuid(1), "")+"]", inbox.Yes)
	known.RemoteAddr = sender + ":443"
	have(w.Put(w.Context(), known, inbox.Prepare(known, webhook.Decode(known.Body))))(w)
	w.flood(junkRequests+lateSecrets, func(n int) inbox.Delivery {
		if n%(junkRequests/lateSecrets+1) == 0 {
			return lateSecret(n / (junkRequests/lateSecrets + 1))
		}
		address := "198.51.100.1:4711"
		if n%10 < 2 {
			address = fmt.Sprintf("[2001:db8:%x:%x::1]:4711", n>>16, n&0xffff)
		}
		if n%2 == 0 {
			return junk(address, webhook.ReasonSignatureMissing)
		}
		return junk(address, webhook.ReasonSignatureMismatch)
	})
	left := w.genuineLeft()
	for _, seq := range left {
		for d, err := range w.Refused(w.Context(), seq-1) {
			w.must(err)
			d.Seq, d.Verified, d.Reason = 0, inbox.Yes, ""
			receipt := have(w.Readmit(w.Context(), seq, d, inbox.Prepare(d, webhook.Decode(d.Body))))(w)
			w.same("new events", receipt.CountCurrent(), int64(1))
			break
		}
	}
	// What was freed is filled again, and no more, whoever fills it.
	more := func(int) inbox.Delivery { return junk("198.51.100.1:4711", webhook.ReasonSignatureMissing) }
	w.flood(600, more)
	other := w.open()
	for n := range 20 {
		have(other.PutRefused(w.Context(), more(n)))(w)
		w.refuse(more(n))
	}
	w.same("refused", have(w.Counts(w.Context()))(w).Refused, int64(inbox.MaxRefused))
}

// refusedSurviveForgeries refuses 500 genuine deliveries of a sender that never
// verified, and then wrong signatures: from one address at that hour, from all
// of its network, and from an address each an hour later.
func refusedSurviveForgeries(w *world) {
	w.flood(lateSecrets, lateSecret)
	w.flood(forgeries, func(n int) inbox.Delivery {
		return junk(fmt.Sprintf("198.51.100.1:%d", n), webhook.ReasonSignatureMismatch)
	})
	w.genuineLeft()
	w.flood(forgeries, func(n int) inbox.Delivery {
		return junk(fmt.Sprintf("[2001:db8::%x]:4711", n), webhook.ReasonTimestampTooOld)
	})
	w.genuineLeft()
	w.flood(forgeries, func(n int) inbox.Delivery {
		d := junk(fmt.Sprintf("10.0.%d.%d:4711", n>>8, n&0xff), webhook.ReasonSignatureMismatch)
		d.ReceivedAt = d.ReceivedAt.Add(time.Hour)
		return d
	})
	w.genuineLeft()
}

// refusedSurviveTheirAddress refuses 500 genuine deliveries, and from a minute
// later wrong signatures for two minutes from the same address: another program
// behind the same gateway.
func refusedSurviveTheirAddress(w *world) {
	w.flood(lateSecrets, lateSecret)
	w.flood(forgeries, func(n int) inbox.Delivery {
		d := junk(fmt.Sprintf("%s:%d", sender, n), webhook.ReasonSignatureMismatch)
		d.ReceivedAt = d.ReceivedAt.Add(time.Minute + time.Duration(n)*2*time.Minute/forgeries)
		return d
	})
	w.genuineLeft()
}
