package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// refuse puts a refused delivery and returns its number.
func (w *world) refuse(d inbox.Delivery) int64 {
	w.Helper()
	seq := have(w.PutRefused(w.Context(), d))(w)
	return seq
}

func refusedHaveTheirOwnNumbers(w *world) {
	first, second := delivery("\x00\xff", inbox.No), delivery("", inbox.No)
	second.Body, second.Anomaly = []byte{}, "odd"
	numbers := []int64{w.refuse(first), w.refuse(second)}
	got := collect(w, w.Refused(w.Context(), 0))
	if len(got) != 2 || got[0].Seq >= got[1].Seq || got[0].Seq < 1 {
		w.Fatalf("refused: %v", got)
	}
	w.same("numbers", numbers, []int64{got[0].Seq, got[1].Seq})
	first.Seq, second.Seq = got[0].Seq, got[1].Seq
	w.same("refused", got, []inbox.Delivery{first, second})
	w.same("after the first", collect(w, w.Refused(w.Context(), first.Seq)), []inbox.Delivery{second})
	w.same("after both", collect(w, w.Refused(w.Context(), second.Seq)), []inbox.Delivery(nil))
	w.same("rows", len(w.marks()), 0)
	r := w.put("["+event(uuid(1), "")+"]", inbox.Yes)
	w.same("numbers of their own", r.Delivery, int64(1))
}

func refusedAreBoundInNumber(w *world) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range (inbox.MaxRefused + 80) / 8 {
				if _, err := w.PutRefused(w.Context(), delivery("x", inbox.No)); err != nil {
					w.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := collect(w, w.Refused(w.Context(), 0))
	w.same("kept", len(got), inbox.MaxRefused)
	w.same("dropped", have(w.Counts(w.Context()))(w).RefusedDropped, int64(80))
}

// Forgeries of the same address and minute do not wash genuine deliveries out, come they before or after:
// all leave their share.
func refusedLeaveTheirShare(w *world) {
	w.flood(lateSecrets, lateSecret)
	forged := func(n int) inbox.Delivery {
		return junk(fmt.Sprintf("%s:%d", sender, n), webhook.ReasonSignatureMismatch)
	}
	kept := w.flood(5700, forged)
	for n := range 300 {
		kept[w.refuse(forged(n))] = true
	}
	genuine, all := 0, 0
	for d, err := range w.Refused(w.Context(), 0) {
		w.must(err)
		all++
		if string(d.Body) != "junk" {
			genuine++
		} else if !kept[d.Seq] {
			w.Errorf("refused:%d is kept, and was said not to be", d.Seq)
		}
	}
	// 500 of 6,500, and 4,096 are kept: 315, give or take 10 (a standard deviation).
	if genuine < 250 || genuine > 380 || all != inbox.MaxRefused {
		w.Errorf("%d genuine ones of %d are left; want their share, about 315", genuine, all)
	}
}

func refusedAreBoundInBytes(w *world) {
	big := delivery(strings.Repeat("x", inbox.MaxRefusedBytes/4), inbox.No)
	for range 6 {
		w.refuse(big)
	}
	kept := 0
	last := int64(0)
	for d, err := range w.Refused(w.Context(), 0) {
		w.must(err)
		kept += len(d.Body)
		last = d.Seq
		if !bytes.Equal(d.Body, big.Body) {
			w.Error("a body changed")
		}
	}
	w.same("kept bytes", kept, 3*len(big.Body)) // the headers need room too
	w.refuse(delivery("small", inbox.No))
	got := collect(w, w.Refused(w.Context(), last))
	w.same("newest", string(got[0].Body), "small")
}

// allWritersConcurrently lets everything that writes happen at once, with
// something among it that fails.
func allWritersConcurrently(w *world) {
	const each = 30
	run := w.run(plan(), entries(1, 3*each)...)
	stores := []Store{w.Store, w.open()}
	bad := errors.New("it was stored")
	var wg sync.WaitGroup
	for i, s := range stores {
		for name, do := range map[string]func(n int) error{
			"put": func(n int) error {
				d := delivery("["+event(fmt.Sprintf("%d-%d", i, n), "")+"]", inbox.Yes)
				_, err := s.Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
				return err
			},
			"bad put": func(int) error {
				d := delivery("x", inbox.Yes)
				if _, err := s.Put(w.Context(), d, []inbox.Event{{Event: webhook.Event{Length: 1}}}); err == nil {
					return bad
				}
				return nil
			},
			"refused": func(int) error {
				_, err := s.PutRefused(w.Context(), delivery("x", inbox.No))
				return err
			},
			"learn": func(n int) error {
				return s.Record(w.Context(), []ledger.RecordedAnswer{{Seen: sightings(n)}})
			},
			"trust": func(n int) error { return s.TrustKey(w.Context(), fmt.Sprint(n)) },
			"send": func(int) error {
				b, err := s.Claim(w.Context(), run.ID, 1, 1000)
				if err != nil || len(b) == 0 {
					return err
				}
				return s.RecordOutcomes(w.Context(), accepted(b))
			},
			"bad record": func(int) error {
				if s.RecordOutcomes(w.Context(), accepted(nil, -1)) == nil {
					return bad
				}
				return nil
			},
		} {
			wg.Go(func() {
				for n := range each {
					if err := do(n); err != nil {
						w.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	c := have(w.Counts(w.Context()))(w)
	w.same("deliveries", c.Deliveries, int64(2*each))
	w.same("refused", c.Refused, int64(2*each))
	w.same("accepted", have(w.CountRows(w.Context(), run.ID))(w).Accepted, int64(3*each))
}
