package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store/postgres"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// BenchmarkPut stores deliveries of one event from so many senders. Beside it, by
// turns, pgbench inserts rows of the same bytes on the same server with as many clients;
// the best turn of each counts. x-pgbench is our rate as a part of pgbench's: 0.8 is
// the aim.
func BenchmarkPut(b *testing.B) {
	for _, senders := range []int{16, 64} {
		b.Run(fmt.Sprint(senders), func(b *testing.B) {
			of, ok := pgtest.URL(b)
			if !ok {
				return
			}
			peer, _ := pgtest.URL(b)
			target, err := postgres.Parse(of, postgres.ParseOptions{})
			if err != nil {
				b.Fatal(err)
			}
			d, err := postgres.Open(b.Context(), target, postgres.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var ours, theirs float64
			for i := range b.N {
				for turn := range 8 {
					all := benchDeliveries(i*8+turn, 8000)
					theirs = max(theirs, pgtest.InsertRate(b, peer, senders, len(all), string(all[0].Body)+fmt.Sprint(all[0].Header)))
					began := time.Now()
					putAll(b, d, all, senders)
					ours = max(ours, float64(len(all))/time.Since(began).Seconds())
				}
			}
			if err := d.Close(); err != nil {
				b.Error(err)
			}
			b.ReportMetric(ours/theirs, "x-pgbench")
			b.ReportMetric(ours, "deliveries/s")
			b.ReportMetric(theirs, "pgbench/s")
		})
	}
}

func putAll(b *testing.B, store inbox.Store, all []inbox.Delivery, senders int) {
	b.Helper()
	var next atomic.Int64
	var done sync.WaitGroup
	for range senders {
		done.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				d, events := inbox.Decode(all[i])
				if _, err := store.Put(b.Context(), d, events); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
}

// benchDeliveries returns deliveries of one new event each, of about a kilobyte.
func benchDeliveries(series, n int) []inbox.Delivery {
	checkpoints := strings.Join(slices.Repeat([]string{`{"eventType":"Departed from facility","eventCity":"MEMPHIS","eventState":"TN","eventZIPCode":"38118",` +
		`"eventTimestamp":"2026-03-04 21:10:00","GMTTimestamp":"2026-03-05T03:10:00Z"}`}, 4), ",")
	all := make([]inbox.Delivery, n)
	for i := range all {
		all[i] = inbox.Delivery{
			ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Yes,
			Header: []webhook.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Signature", Value: strings.Repeat("0123456789abcdef", 4)}},
			Body: fmt.Appendf(nil, `[{"eventId":"%08x-9f2d-4c1e-8b3a-%012x","event":"router.updated","eventTime":"2026-03-05T03:10:00Z","data":{"trackingNumber":"1Z%016d",`+
				`"status":7,"statusTrack":"in_transit","summary":{"statusLabel":"IN TRANSIT"},"detail":{"trackingEvents":[%s]}}}]`, series, i, i, checkpoints),
		}
	}
	return all
}
