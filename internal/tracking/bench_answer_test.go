package tracking_test

import (
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// BenchmarkAnswer reads an answer to a query with five checkpoints.
func BenchmarkAnswer(b *testing.B) {
	checkpoint := `{"eventType":"Arrived at facility","eventCity":"Louisville","eventState":"KY","eventZIPCode":"40213","eventTimestamp":"2026-11-21T21:18:52","GMTTimestamp":"2026-11-22T02:18:52Z"}`
	raw := []byte(`{"code":200,"message":"ok","data":{"referId":"R1","trackingNumber":"N1","summary":{"id":"5f0c1a2e-1111-4222-8333-444455556666","trackingNumber":"N1","status":9002,
		"statusLabel":"IN_TRANSIT","latestEvent":"Arrived at facility","latestCheckpointTime":"2026-11-22T04:18:52.000Z","transitTime":2,"created":"2026-11-20T08:08:52.140Z",
		"updated":"2026-11-22T08:08:52.140Z"},"detail":{"trackingNumber":"N1","statusSummary":"In transit","trackingEvents":[` + strings.Repeat(checkpoint+",", 4) + checkpoint + `]}}}`)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if a := tracking.ReadBody(raw).Answer(); len(a.Trackings) != 1 {
			b.Fatalf("%+v", a)
		}
	}
}
