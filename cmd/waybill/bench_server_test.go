package main_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// BenchmarkServerCreate measures a create on PostgreSQL beside the same one on a
// file, by turns, the best of each. x-file is how many times as long it takes: at
// 50 ms up to 1.3 is the aim.
func BenchmarkServerCreate(b *testing.B) {
	for order, refer := range map[string]func(int) string{"ascending": ascending, "random": randomly()} {
		b.Run("v2/100000/50ms/"+order, func(b *testing.B) {
			w := newBench(b, 100_000, refer, 50*time.Millisecond)
			file := w.store
			onFile, onServer := math.Inf(1), math.Inf(1)
			for range b.N {
				for range 3 {
					w.store = file
					w.fresh(b)
					own, _ := w.create(b)
					onFile = min(onFile, own.seconds)
					url, ok := pgtest.URL(b)
					if !ok {
						return
					}
					w.store = url
					w.sink.posted.Store(false)
					own, _ = w.create(b)
					onServer = min(onServer, own.seconds)
				}
			}
			b.ReportMetric(onServer/onFile, "x-file")
			b.ReportMetric(float64(w.rows)/onServer, "rows/s")
			b.ReportMetric(float64(w.rows)/onFile, "file-rows/s")
		})
	}
}

// BenchmarkServerListen measures durable deliveries on PostgreSQL: verified, parsed,
// deduplicated and committed before they are answered, by a listener in a process of
// its own. Beside it, by turns, pgbench inserts rows of the same bytes on the same
// server with as many clients; the best turn of each counts. x-pgbench is our rate as a
// part of pgbench's: 0.8 is the aim.
func BenchmarkServerListen(b *testing.B) {
	for _, conns := range []int{16, 64} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			var ours, theirs float64
			var took []time.Duration
			n := rowsOf(b, 40_000)
			for i := range b.N {
				url, ok := pgtest.URL(b)
				if !ok {
					return
				}
				peer, _ := pgtest.URL(b)
				w := newHome(b)
				l := w.listens(url, nil, "-q")
				for part := range slices.Chunk(deliveries(i, n, 1), max(1, n/8)) {
					theirs = max(theirs, pgtest.InsertRate(b, peer, conns, len(part), storedBytes(part[0])))
					each, whole := load(b, l.addr, conns, part)
					ours = max(ours, float64(len(part))/whole.Seconds())
					took = append(took, each...)
				}
				l.stop()
			}
			b.ReportMetric(ours/theirs, "x-pgbench")
			b.ReportMetric(ours, "deliveries/s")
			b.ReportMetric(theirs, "pgbench/s")
			b.ReportMetric(percentile99(took), "ms-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// storedBytes returns what is stored of a request: header and body.
func storedBytes(request []byte) string {
	return string(bytes.ReplaceAll(request, []byte("\r\n"), []byte("\n")))
}
