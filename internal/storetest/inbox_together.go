package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// putTogetherAsOneByOne puts deliveries of few keys, many at once and in two
// processes. Each receipt, and what is stored, is that of the deliveries one after the
// other by their numbers.
func putTogetherAsOneByOne(w *world) {
	const deliveries, senders, keys = 400, 64, 40
	type stored struct {
		inbox.Delivery
		receipt inbox.Receipt
	}
	all := make([]stored, deliveries)
	rng := rand.New(rand.NewPCG(12, 3)) //nolint:gosec // the same each time
	for i := range all {
		var events []string
		for range 1 + rng.IntN(4) {
			events = append(events, event(uuid(rng.IntN(keys)), fmt.Sprintf(`,"a":%d`, rng.IntN(3))))
		}
		all[i].Delivery = delivery("["+strings.Join(append(events, `{"event":"x"}]`), ","), []inbox.Verified{inbox.Yes, inbox.No, inbox.Unknown, inbox.Unknown}[rng.IntN(4)])
	}
	stores := []Store{w.Store, w.open()}
	var next atomic.Int64
	var wg sync.WaitGroup
	for n := range senders {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < deliveries; i = int(next.Add(1)) - 1 {
				var err error
				d := all[i].Delivery
				if all[i].receipt, err = stores[n%8/7].Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
					w.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.receipt.Delivery, b.receipt.Delivery) })
	expected := sequence{current: map[string]currentEvent{}}
	for i, d := range all {
		want := inbox.Receipt{Delivery: int64(i + 1), Rows: expected.put(d.Delivery)}
		w.same(fmt.Sprintf("receipt of delivery %d", i+1), d.receipt, want)
	}
	w.same("marks", w.marks(), expected.marks)
}

// sequence marks the events of deliveries that are put one after the other.
type sequence struct {
	marks   []inbox.Mark            // of all events
	current map[string]currentEvent // by key
}

type currentEvent struct {
	at       int // in marks
	verified bool
	raw      string
}

func (q *sequence) put(d inbox.Delivery) (rows []inbox.Placement) {
	for _, e := range inbox.Prepare(d, webhook.Decode(d.Body)) {
		one := currentEvent{len(q.marks), d.Verified == inbox.Yes, string(d.Body[e.Offset : e.Offset+e.Length])}
		before, known := q.current[string(e.Key)]
		mark := inbox.Current
		switch {
		case known && one.verified && !before.verified:
			q.marks[before.at] = inbox.Superseded
		case known && one.raw == before.raw:
			mark = inbox.Duplicate
		case known:
			mark = inbox.Conflict
		}
		if mark == inbox.Current {
			q.current[string(e.Key)] = one
		}
		q.marks = append(q.marks, mark)
		rows = append(rows, inbox.Placement{Seq: int64(len(q.marks)), Mark: mark})
	}
	return rows
}
