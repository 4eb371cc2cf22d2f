package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// sample is a body of the usual size.
func sample(n int64) string {
	return fmt.Sprintf(`[{"eventId":"e-%d","event":"router.updated","eventTime":"2026-03-01T10:00:00.000Z","data":{"trackingNumber":"1Z%08d","status":1,"statusTrack":"transit","summary":{"statusLabel":"IN_TRANSIT","latestEvent":"Departed from a facility in K\u00f6ln"},"note":%q}}]`,
		n, n, strings.Repeat("some more text ", 30))
}

// BenchmarkDeliveries asks for parts of a list of 100,000, of which none was forwarded to
// two targets: for ranges of 100 rows anywhere, and for a text that no body has. ms-range
// is the slowest range, each at the best of three times; ms-request the slowest request of a
// search, s-search all of it.
func BenchmarkDeliveries(b *testing.B) {
	b.Run("file", func(b *testing.B) { benchDeliveries(b) })
	if url, ok := pgtest.URL(b); ok {
		b.Run("server", func(b *testing.B) { benchDeliveries(b, "WAYBILL_STORE="+url) })
	}
}

func benchDeliveries(b *testing.B, env ...string) {
	b.Helper()
	const n = 100_000
	p, db := newPage(b, env...)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				put(b, db, sample(i))
			}
		})
	}
	all.Wait()
	for _, url := range []string{"http://127.0.0.1:1/", "http://127.0.0.1:2/"} {
		sink, err := db.Outbox.OpenSink(b.Context(), inbox.SinkKey{Name: "forward", URL: url}, &inbox.StartPosition{})
		for read := int64(0); err == nil && read < n; {
			var some inbox.Progress
			some, err = db.Outbox.Advance(b.Context(), sink.ID, 1000, func([]inbox.Event) bool { return true })
			read += int64(some.Read)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		var slowest, slowestSearch time.Duration
		for range 200 {
			from, best := 1+rand.Int64N(n-100), time.Hour
			for range 3 {
				began := time.Now()
				if j := list(b, p, fmt.Sprintf("from=%d&to=%d", from, from+99)); len(j.Deliveries) != 100 {
					b.Fatalf("%d rows from %d on", len(j.Deliveries), from)
				}
				best = min(best, time.Since(began))
			}
			slowest = max(slowest, best)
		}
		began := time.Now()
		for before := int64(n + 1); before > 0; {
			asked := time.Now()
			j := list(b, p, fmt.Sprintf("search=nowhere&before=%d", before))
			slowestSearch = max(slowestSearch, time.Since(asked))
			if before = 0; j.Next != nil {
				before = *j.Next
			}
		}
		b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-range")
		b.ReportMetric(float64(slowestSearch.Microseconds())/1000, "ms-request")
		b.ReportMetric(time.Since(began).Seconds(), "s-search")
	}
}

// BenchmarkListenerWithPage sends 1,000 deliveries a second to a listener: alone, with a
// page that follows them and asks for what is visible every second, and with one that
// searches all the time too; by turns, the best turn of each. x-p50 and x-p99 are how
// long answers take, as a multiple of those alone: those of control, which is alone too,
// say how much that varies. heap-MB is the most that was in use.
func BenchmarkListenerWithPage(b *testing.B) {
	for range b.N {
		l := newLoad(b)
		l.turn(time.Second, nil) // warms up
		best := map[string][3]float64{}
		sides := []struct {
			name string
			page func(context.Context)
		}{{"alone", nil}, {"page", l.watch}, {"search", l.search}, {"control", nil}}
		for range 8 {
			for _, side := range sides {
				got, was := l.turn(2*time.Second, side.page), best[side.name]
				for i := range got {
					if was[i] == 0 || got[i] < was[i] {
						was[i] = got[i]
					}
				}
				best[side.name] = was
			}
		}
		l.close()
		alone := best["alone"]
		b.ReportMetric(alone[0], "ms-p50")
		b.ReportMetric(alone[1], "ms-p99")
		b.ReportMetric(alone[2], "heap-MB")
		for _, name := range []string{"page", "search", "control"} {
			b.ReportMetric(best[name][0]/alone[0], "x-p50-"+name)
			b.ReportMetric(best[name][1]/alone[1], "x-p99-"+name)
			b.ReportMetric(best[name][2], "heap-MB-"+name)
		}
		b.ReportMetric(float64(l.messages.Load()), "messages")
		b.ReportMetric(float64(l.bytes.Load())/float64(max(1, l.messages.Load())), "B/message")
	}
}

// load is a listener with a page, and who uses both.
type load struct {
	testing.TB

	db              *app.Store
	url             string // of the listener
	page, token     string
	client, browser *http.Client
	sent            atomic.Int64
	messages, bytes atomic.Int64 // of streams
	stop            context.CancelFunc
	serving         sync.WaitGroup
}

func newLoad(b *testing.B) *load {
	b.Helper()
	c, _, _ := clitest.Call(b, "WAYBILL_ACCOUNT=a")
	db, err := c.Store(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	receiver := listen.New(listen.Options{Store: db.Inbox, MaxBody: 1 << 20})
	var lc net.ListenConfig
	at, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p, err := Open(b.Context(), Place{Addr: "127.0.0.1:0"}, Options{Call: c, Arrivals: receiver.Subscribe()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	l := &load{
		TB: b, db: db, stop: stop, url: "http://" + at.Addr().String() + "/",
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, browser: &http.Client{},
	}
	for _, run := range []func() error{
		func() error { return receiver.Serve(ctx, at) },
		func() error { return receiver.Follow(ctx, 0, func(listen.Notification) error { return nil }) },
		func() error { return p.Run(ctx) },
	} {
		l.serving.Go(func() {
			if err := run(); err != nil {
				b.Error(err)
			}
		})
	}
	l.page, l.token, _ = strings.Cut(p.SecretURL(), "#token=")
	return l
}

func (l *load) close() {
	l.client.CloseIdleConnections()
	l.browser.CloseIdleConnections()
	l.stop()
	l.serving.Wait()
}

// get returns what the page's server answers.
func (l *load) get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Waybill-Token", l.token)
	resp, err := l.browser.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// turn sends 1,000 deliveries a second while page runs. It returns the median and the 99th
// percentile of how long an answer took, in milliseconds, and the largest heap, in MB.
func (l *load) turn(d time.Duration, page func(context.Context)) [3]float64 {
	l.Helper()
	ctx, stop := context.WithCancel(l.Context())
	defer stop()
	var using, sending sync.WaitGroup
	if page != nil {
		using.Go(func() { page(ctx) })
	}
	runtime.GC()
	const senders = 20
	took := make([][]float64, senders)
	end := time.Now().Add(d)
	for i := range senders {
		sending.Go(func() {
			tick := time.NewTicker(senders * time.Millisecond)
			defer tick.Stop()
			for now := range tick.C {
				if now.After(end) {
					return
				}
				began := time.Now()
				resp, err := l.client.Post(l.url, "application/json", strings.NewReader(sample(l.sent.Add(1))))
				if err != nil {
					l.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				took[i] = append(took[i], float64(time.Since(began).Microseconds())/1000)
			}
		})
	}
	var heap uint64
	for time.Now().Before(end) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapInuse)
		<-time.After(500 * time.Millisecond)
	}
	sending.Wait()
	stop()
	using.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	return [3]float64{all[len(all)/2], all[len(all)*99/100], float64(heap) / (1 << 20)}
}

// watch follows the stream and asks for the newest rows every second, as a page does.
func (l *load) watch(ctx context.Context) {
	var last atomic.Int64
	var asking sync.WaitGroup
	asking.Go(func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
			if _, err := l.get(ctx, fmt.Sprintf("%sapi/v1/deliveries?from=%d&to=%d", l.page, max(1, last.Load()-49), last.Load())); err != nil && ctx.Err() == nil {
				l.Error(err)
			}
		}
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.page+"api/v1/stream", nil)
	if err != nil {
		l.Error(err)
		return
	}
	r.Header.Set("Waybill-Token", l.token)
	resp, err := l.browser.Do(r)
	if err != nil {
		l.Error(err)
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var j struct {
				Last int64
				Rows []json.RawMessage
			}
			if err := json.Unmarshal(data, &j); err != nil || len(j.Rows) > maxSent {
				l.Errorf("%d rows, %v", len(j.Rows), err)
			}
			last.Store(j.Last)
			l.messages.Add(1)
			l.bytes.Add(int64(len(line)))
		}
	}
	asking.Wait()
}

// search is watch while another page searches all bodies again and again.
func (l *load) search(ctx context.Context) {
	var watching sync.WaitGroup
	watching.Go(func() { l.watch(ctx) })
	before := ""
	for ctx.Err() == nil {
		var j struct{ Next *int64 }
		body, err := l.get(ctx, l.page+"api/v1/deliveries?search=nowhere"+before)
		if err == nil {
			err = json.Unmarshal(body, &j)
		}
		if err != nil && ctx.Err() == nil {
			l.Error(err)
			break
		}
		if before = ""; j.Next != nil {
			before = fmt.Sprintf("&before=%d", *j.Next)
		}
	}
	watching.Wait()
}
