package forward_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/postgres"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// BenchmarkForward forwards what waits in the inbox to a target that answers at once: from
// a file, from a server, and from a server by three listeners, by turns, the best turn of
// each. x-file is the rate on a server as a part of that on a file: 1 is the aim.
func BenchmarkForward(b *testing.B) {
	for _, numbers := range []int{1, 2000} {
		b.Run(fmt.Sprintf("numbers=%d", numbers), func(b *testing.B) {
			var file, one, three float64
			for range b.N {
				for range 3 {
					file = max(file, forwardRate(b, numbers, openFiles(b, 1)))
					if url, ok := pgtest.URL(b); ok {
						one = max(one, forwardRate(b, numbers, openServer(b, url, 1)))
					}
					if url, ok := pgtest.URL(b); ok {
						three = max(three, forwardRate(b, numbers, openServer(b, url, 3)))
					}
				}
			}
			b.ReportMetric(file, "file/s")
			b.ReportMetric(one, "server/s")
			b.ReportMetric(three, "server-of-3/s")
			b.ReportMetric(one/file, "x-file")
			b.ReportMetric(three/file, "x-file-of-3")
		})
	}
}

func openFiles(b *testing.B, n int) []*store.DB {
	b.Helper()
	path := filepath.Join(b.TempDir(), "waybill.db")
	return openAll(b, n, func() (*store.DB, error) { return sqlite.Open(b.Context(), path, store.Options{}) })
}

func openServer(b *testing.B, url string, n int) []*store.DB {
	b.Helper()
	target, err := postgres.Parse(url, postgres.ParseOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return openAll(b, n, func() (*store.DB, error) {
		return postgres.Open(b.Context(), target, postgres.Options{})
	})
}

func openAll(b *testing.B, n int, open func() (*store.DB, error)) []*store.DB {
	b.Helper()
	all := make([]*store.DB, n)
	for i := range all {
		db, err := open()
		if err != nil {
			b.Fatal(err)
		}
		all[i] = db
	}
	return all
}

// forwardRate stores deliveries about so many numbers, and returns how many a second the stores
// forward together, each in a forwarder of its own. It closes the stores.
func forwardRate(b *testing.B, numbers int, stores []*store.DB) float64 {
	b.Helper()
	n := min(2000, 400*numbers)
	fill(b, stores[0], n, numbers)
	var got atomic.Int64
	done := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if got.Add(1) == int64(n) {
			close(done)
		}
	}))
	defer app.Close()
	target, err := forward.ParseTarget(app.URL)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var running sync.WaitGroup
	began := time.Now()
	client := forward.NewClient(forward.ClientOptions{})
	defer client.Close()
	for _, db := range stores {
		f, err := forward.Open(ctx, forward.Options{Outbox: db, Claims: db, Inbox: db, Client: client, Targets: []forward.Target{target}, From: &inbox.StartPosition{}})
		if err != nil {
			b.Fatal(err)
		}
		hints := db.Watch(ctx)
		running.Go(func() {
			for {
				select {
				case <-hints:
					f.WakeAll()
					<-time.After(100 * time.Millisecond) // as a listener rests
				case <-ctx.Done():
					return
				}
			}
		})
		running.Go(func() {
			if err := f.Run(ctx, ctx); err != nil {
				b.Error(err)
			}
		})
	}
	<-done
	took := time.Since(began)
	stop()
	running.Wait()
	for _, db := range stores {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	}
	return float64(n) / took.Seconds()
}

func fill(b *testing.B, db *store.DB, n, numbers int) {
	b.Helper()
	var all sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				d := inbox.Delivery{
					ReceivedAt: time.Now(), Method: "POST", Path: "/", Verified: inbox.Yes, Header: []webhook.Field{{Name: "X-One", Value: "1"}},
					Body: fmt.Appendf(nil, `[{"eventId":"%d","event":"router.updated","data":{"trackingNumber":"1Z%d"}}]`, i, i%int64(numbers)),
				}
				if _, err := db.Put(b.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}
