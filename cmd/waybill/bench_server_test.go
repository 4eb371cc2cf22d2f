package main_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
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
					w.sink.created.Clear()
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
// part of pgbench's: 0.8 is the aim. bare-x-pgbench is that of the minimal receiver that
// inserts each body as pgbench does, and knows neither events nor their order.
func BenchmarkServerListen(b *testing.B) {
	for _, conns := range []int{16, 64} {
		b.Run(fmt.Sprintf("conns=%d", conns), func(b *testing.B) {
			var ours, bare, theirs float64
			var took []time.Duration
			n := rowsOf(b, 40_000)
			for i := range b.N {
				own, ok := pgtest.URL(b)
				if !ok {
					return
				}
				other, _ := pgtest.URL(b)
				w := newHome(b)
				l := w.listens(own, nil, "-q")
				theirs = pgtest.InsertRate(b, other, conns, conns, "x") // makes the table
				addr, end := receiver(b, peer("inserthook", other, strconv.Itoa(conns)))
				for part := range slices.Chunk(deliveries(i, n, 1), max(1, n/8)) {
					theirs = max(theirs, pgtest.InsertRate(b, other, conns, len(part), storedBytes(part[0])))
					_, whole := load(b, addr, conns, part)
					bare = max(bare, float64(len(part))/whole.Seconds())
					each, whole := load(b, l.addr, conns, part)
					ours = max(ours, float64(len(part))/whole.Seconds())
					took = append(took, each...)
				}
				l.stop()
				end()
			}
			b.ReportMetric(ours/theirs, "x-pgbench")
			b.ReportMetric(bare/theirs, "bare-x-pgbench")
			b.ReportMetric(ours, "deliveries/s")
			b.ReportMetric(theirs, "pgbench/s")
			b.ReportMetric(percentile99(took), "ms-p99")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// insertHook is [bareHook] that inserts bodies into the table of pgbench, in the schema that
// the URL names, with so many connections.
func insertHook(of, conns string) error {
	u, err := url.Parse(of)
	if err != nil {
		return err
	}
	values := u.Query()
	values.Set("search_path", values.Get("schema"))
	values.Del("schema")
	u.RawQuery = values.Encode()
	db, err := sql.Open("pgx", u.String())
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(conns)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return bareHook(func(body []byte) error {
		_, err := db.Exec("INSERT INTO peer (received, body) VALUES ($1, $2)", time.Now().UnixMilli(), string(body))
		return err
	})
}

// storedBytes returns what is stored of a request: header and body.
func storedBytes(request []byte) string {
	return string(bytes.ReplaceAll(request, []byte("\r\n"), []byte("\n")))
}
