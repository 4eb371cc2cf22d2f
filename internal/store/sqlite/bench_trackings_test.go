package sqlite

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// answersOf returns an answer of that size for each row, as a query by referId
// gets it.
func answersOf(all []ledger.Entry, size int, at time.Time) []ledger.RecordedAnswer {
	answers := make([]ledger.RecordedAnswer, len(all))
	for i, e := range all {
		raw := fmt.Appendf(nil, `{"success":true,"data":{"referId":%q,"trackingNumber":%q,"status":7,"statusLabel":"IN TRANSIT","detail":[`, e.Item.ReferID, e.Item.Number)
		for n := 0; len(raw) < size; n++ {
			raw = fmt.Appendf(raw, `{"eventType":"Departed from facility %d","eventCity":"City %d","GMTTimestamp":"2026-03-%02dT03:%02d:00Z"},`, n, i*7919%1000, n%28+1, i%60)
		}
		raw = append(bytes.TrimSuffix(raw, []byte(",")), "]}}"...)
		answers[i] = ledger.RecordedAnswer{ReferID: e.Item.ReferID, Asked: at, Raw: raw, Seen: []ledger.Sighting{{
			Key: e.Item.Key(), Phase: ledger.Processed, Status: "7", StatusLabel: "IN TRANSIT", StatusTrack: "in_transit",
			LatestEvent: "Departed from facility", LatestTime: "2026-03-05T03:10:00Z", CarrierCode: "dhl", Seen: at, Source: ledger.FromQuery,
			RouterID: fmt.Sprintf("9f2d-4c1e-%012d", i),
		}}}
	}
	return answers
}

// BenchmarkTrackings records the answers about many rows and finds them, many
// at once.
func BenchmarkTrackings(b *testing.B) {
	const n, many = 100_000, 500
	d := benchOpen(b)
	all := entries(n, false)
	benchStage(b, d, all, 20_000, 1000)
	ctx := b.Context()
	at := time.Now()
	part := func(i int) []ledger.Entry { from := i * 17 * many % n; return all[from : from+many] }
	find := func(query func(ledger.Entry) tracking.Query) func(b *testing.B) {
		return func(b *testing.B) {
			for i := range b.N {
				var qs []tracking.Query
				for _, e := range part(i) {
					qs = append(qs, query(e))
				}
				found, err := d.FindAll(ctx, "a", qs)
				if err != nil || len(found[many-1]) != 1 {
					b.Fatal(found, err)
				}
			}
			perRow(b, many)
		}
	}
	byReferID := func(e ledger.Entry) tracking.Query { return tracking.Query{ReferID: e.Item.ReferID} }
	b.Run("FindAll/referId/new", find(byReferID))
	for _, size := range []int{1000, 2000} {
		for _, name := range []string{"first", "again"} {
			at = at.Add(time.Minute)
			b.Run(fmt.Sprintf("Record/%d/%s", size, name), func(b *testing.B) {
				for i := range b.N {
					b.StopTimer()
					answers := answersOf(part(i), size, at)
					b.StartTimer()
					if err := d.Record(ctx, "a", answers); err != nil {
						b.Fatal(err)
					}
				}
				perRow(b, many)
			})
		}
	}
	b.Run("FindAll/referId", find(byReferID))
	b.Run("FindAll/number", find(func(e ledger.Entry) tracking.Query { return tracking.Query{Number: e.Item.Number} }))
}
