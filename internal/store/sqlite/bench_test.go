package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
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

func benchOpen(b *testing.B) *store.DB {
	b.Helper()
	d, err := Open(b.Context(), filepath.Join(b.TempDir(), "waybill.db"), store.Options{})
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

func benchStage(b *testing.B, d *store.DB, all []ledger.Entry, add, size int) ledger.Run {
	b.Helper()
	ctx := b.Context()
	s, err := d.Stage(ctx, ledger.Plan{Files: []string{"orders.csv"}, Mode: ledger.Async, BatchSize: size})
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
func bare(b *testing.B, d *store.DB, all []ledger.Entry, add int) {
	b.Helper()
	pool := connect(d.Place(), "busy_timeout(5000)", "synchronous(FULL)", fmt.Sprintf("cache_size(-%d)", writerCache))
	defer pool.Close()
	for from := 0; from < len(all); from += add {
		if err := insertBare(b.Context(), pool, all, from, min(len(all), from+add)); err != nil {
			b.Fatal(err)
		}
	}
}

// insertBare inserts the rows from..to in one transaction.
func insertBare(ctx context.Context, pool *sql.DB, all []ledger.Entry, from, to int) error {
	const width = 100
	t, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback()                                                                                                                    //nolint:errcheck // it was committed
	insert, err := t.PrepareContext(ctx, "INSERT INTO rows (id, refer_id, number, carrier, batch_id, file, line) VALUES (?,?,?,?,?,?,?)"+ //nolint:sqlclosecheck // it is closed below
		strings.Repeat(",(?,?,?,?,?,?,?)", width-1)+" ON CONFLICT DO NOTHING")
	if err != nil {
		return err
	}
	defer insert.Close()
	n := from
	for part := range slices.Chunk(all[from:to], width) {
		args := make([]any, 0, 7*width)
		for _, e := range part {
			args = append(args, n+1, e.Item.ReferID, e.Item.Number, e.Item.CarrierCode, n/1000, e.File, e.Line)
			n++
		}
		if _, err := insert.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return t.Commit()
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
					benchStage(b, d, all, 20_000, 1000)
				}
				perRow(b, n)
			})
		}
	}
}

// BenchmarkClaimRecord takes every batch of a run through its states.
func BenchmarkClaimRecord(b *testing.B) {
	for _, c := range []struct {
		name          string
		n, size, take int
	}{{"v2", 1_000_000, 1000, 4}, {"v1", 100_000, 40, 32}} {
		all := entries(c.n, false)
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				d := benchOpen(b)
				run := benchStage(b, d, all, 20_000, c.size)
				b.StartTimer()
				sendAll(b, d, run.ID, c.take)
			}
			perRow(b, c.n)
		})
	}
}

// sendAll claims and records what is pending, as two workers would.
func sendAll(b *testing.B, d *store.DB, run int64, take int) {
	b.Helper()
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				batches, err := d.Claim(b.Context(), run, take, 1000)
				if err != nil {
					b.Error(err)
				}
				if len(batches) == 0 {
					return
				}
				for _, batch := range batches {
					s := ledger.BatchOutcome{Batch: batch.ID, State: ledger.Accepted, HTTPStatus: 200, Answer: []byte("{}"), Began: time.Now()}
					if err := d.RecordOutcomes(b.Context(), []ledger.BatchOutcome{s}); err != nil {
						b.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkAsk asks a ledger of a million rows.
func BenchmarkAsk(b *testing.B) {
	const n = 1_000_000
	d := benchOpen(b)
	all := entries(n, false)
	run := benchStage(b, d, all, 20_000, 1000)
	again := benchStage(b, d, all, 20_000, 1000)
	sendAll(b, d, run.ID, 4)
	ctx := b.Context()
	for name, ask := range map[string]func() error{
		"CountRows/new":   func() error { _, err := d.CountRows(ctx, run.ID); return err },
		"CountRows/known": func() error { _, err := d.CountRows(ctx, again.ID); return err },
		"Pending":         func() error { _, err := d.Pending(ctx, again.ID); return err },
		"Run":             func() error { _, err := d.Run(ctx, again.ID); return err },
		"Rows/new":        func() error { return endOf(d.Rows(ctx, run.ID)) },
		"Rows/known":      func() error { return endOf(d.Rows(ctx, again.ID)) },
		"Statuses":        func() error { return endOf(d.Statuses(ctx, ledger.Filter{})) },
		"Lookup":          func() error { _, _, err := d.Lookup(ctx, all[n/2].Item.Key()); return err },
		"FindReferID":     func() error { _, err := d.Find(ctx, all[n/2].Item.ReferID, ""); return err },
		"FindNumber":      func() error { _, err := d.Find(ctx, "", all[n/2].Item.Number); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if err := ask(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func endOf[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkPut stores deliveries of one event from so many connections, and
// larger ones.
func BenchmarkPut(b *testing.B) {
	for _, c := range []struct{ senders, events int }{{1, 1}, {16, 1}, {64, 1}, {16, 50}} {
		b.Run(fmt.Sprintf("%d/%d", c.senders, c.events), func(b *testing.B) {
			d := benchOpen(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range c.senders {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						delivery := benchDelivery(i, c.events)
						if _, err := d.Put(b.Context(), delivery, inbox.Prepare(delivery, webhook.Decode(delivery.Body))); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N*c.events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func benchDelivery(n int64, events int) inbox.Delivery {
	body := []byte("[")
	for range events {
		body = fmt.Appendf(body, `{"eventId":"%08x-9f2d-4c1e-8b3a-%012x","event":"router.delivered","data":{"trackingNumber":"1Z%d","status":1}},`, rand.Uint32(), n, n)
	}
	body[len(body)-1] = ']'
	return inbox.Delivery{
		ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Yes, Body: body,
		Header: []webhook.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Signature", Value: "0123456789abcdef"}},
	}
}
