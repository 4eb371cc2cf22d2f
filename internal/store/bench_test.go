package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// entries returns n records as a shop exports them, their referIds ascending
// or in no order.
func entries(n int, random bool) []ledger.Entry {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]ledger.Entry, n)
	for i := range all {
		all[i].Item = tracking.Item{
			ReferID: fmt.Sprintf("order-%08d", i), Number: fmt.Sprintf("1Z%010dX", rng.IntN(1e9)), CarrierCode: "dhl",
		}
	}
	if random {
		rng.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	for i := range all {
		all[i].Line = i + 2
	}
	return all
}

func benchOpen(b *testing.B) *DB {
	b.Helper()
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "waybill.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := d.Close(); err != nil {
			b.Error(err)
		}
	})
	return d
}

func benchStage(b *testing.B, d *DB, all []ledger.Entry, add int) ledger.Run {
	b.Helper()
	ctx := b.Context()
	s, err := d.Stage(ctx, ledger.Plan{Account: "a", Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for len(all) > 0 {
		n := min(add, len(all))
		if c, err := s.Add(ctx, all[:n]); err != nil || len(c) > 0 {
			b.Fatal(c, err)
		}
		all = all[n:]
	}
	run, err := s.Open(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return run
}

// bare inserts the rows into the same schema in the same order, in the same
// portions, and does nothing else.
func bare(b *testing.B, d *DB, all []ledger.Entry, add int) {
	b.Helper()
	for from := 0; from < len(all); from += add {
		part := all[from:min(len(all), from+add)]
		if err := d.run(b.Context(), func(ctx context.Context, t *tx) error {
			_, err := d.sql.rows.do(ctx, t, len(part), func(args []any, n int) []any {
				e := &part[n]
				return append(args, from+n+1, 1, e.Item.ReferID, e.Item.Number, e.Item.CarrierCode, (from+n)/1000, e.File, e.Line)
			})
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func perRow(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(b.N), "ns/row")
}

// BenchmarkStage stages rows that are new, beside a bare insert of the same.
func BenchmarkStage(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for _, order := range []string{"ascending", "random"} {
			all := entries(n, order == "random")
			b.Run(fmt.Sprintf("bare/%d/%s", n, order), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					d := benchOpen(b)
					b.StartTimer()
					bare(b, d, all, 20_000)
				}
				perRow(b, n)
			})
			b.Run(fmt.Sprintf("stage/%d/%s", n, order), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					d := benchOpen(b)
					b.StartTimer()
					benchStage(b, d, all, 20_000)
				}
				perRow(b, n)
			})
		}
	}
}

// BenchmarkRestage stages rows that an earlier run brought in.
func BenchmarkRestage(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		for _, order := range []string{"ascending", "random"} {
			all := entries(n, order == "random")
			b.Run(fmt.Sprintf("%d/%s", n, order), func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					d := benchOpen(b)
					benchStage(b, d, all, 20_000)
					b.StartTimer()
					benchStage(b, d, all, 20_000)
				}
				perRow(b, n)
			})
		}
	}
}
