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

// lateSecret is a delivery that was refused after the sender changed its secret.
func lateSecret(n int) inbox.Delivery {
	d := delivery(fmt.Sprintf("genuine %d", n), inbox.No)
	d.RemoteAddr = fmt.Sprintf("%s:%d", sender, 1024+n)
	return d
}

// junk is a request that anybody may send, from that address.
func junk(address string, reason webhook.Reason) inbox.Delivery {
	d := delivery("junk", inbox.No)
	d.RemoteAddr, d.Reason = address, reason
	return d
}

// flood refuses n deliveries, many at once.
func (w *world) flood(n int, next func(n int) inbox.Delivery) {
	w.Helper()
	var wg sync.WaitGroup
	var done atomic.Int64
	for range 512 {
		wg.Go(func() {
			for i := int(done.Add(1)); i <= n; i = int(done.Add(1)) {
				if err := w.PutRefused(w.Context(), next(i)); err != nil {
					w.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// genuineLeft checks that n genuine deliveries are kept, within the bounds.
func (w *world) genuineLeft(n int) {
	w.Helper()
	left, all := map[string]bool{}, 0
	for d, err := range w.Refused(w.Context(), 0) {
		w.must(err)
		all++
		if string(d.Body) != "junk" {
			left[string(d.Body)] = true
		}
	}
	w.same("genuine deliveries", len(left), n)
	w.same("all", all, inbox.MaxRefused)
}

// refusedSurviveJunk refuses 500 genuine deliveries among 100,000 requests: half
// of them without a signature, half with a wrong one; half of these from one
// address, half from an address each. Deliveries from the sender verified once.
func refusedSurviveJunk(w *world) {
	known := delivery("["+event(uuid(1), "")+"]", inbox.Yes)
	known.RemoteAddr = sender + ":443"
	_, err := w.Put(w.Context(), known, inbox.Prepare(known, webhook.Decode(known.Body)))
	w.must(err)
	w.flood(100_500, func(n int) inbox.Delivery {
		if n%201 == 0 {
			return lateSecret(n / 201)
		}
		address := "198.51.100.1:4711"
		if n%4 < 2 {
			address = fmt.Sprintf("[2001:db8:%x:%x::1]:4711", n>>16, n&0xffff)
		}
		if n%2 == 0 {
			return junk(address, webhook.ReasonSignatureMissing)
		}
		return junk(address, webhook.ReasonSignatureMismatch)
	})
	w.genuineLeft(500)
}

// refusedSurviveForgeries refuses 500 genuine deliveries of a sender that never
// verified, and then wrong signatures: from one address at that hour, from all
// of its network, and from an address each an hour later.
func refusedSurviveForgeries(w *world) {
	w.flood(500, lateSecret)
	w.flood(6000, func(n int) inbox.Delivery {
		return junk(fmt.Sprintf("198.51.100.1:%d", n), webhook.ReasonSignatureMismatch)
	})
	w.genuineLeft(500)
	w.flood(6000, func(n int) inbox.Delivery {
		return junk(fmt.Sprintf("[2001:db8::%x]:4711", n), webhook.ReasonTimestampTooOld)
	})
	w.genuineLeft(500)
	w.flood(6000, func(n int) inbox.Delivery {
		d := junk(fmt.Sprintf("10.0.%d.%d:4711", n>>8, n&0xff), webhook.ReasonSignatureMismatch)
		d.ReceivedAt = d.ReceivedAt.Add(time.Hour)
		return d
	})
	w.genuineLeft(500)
}
