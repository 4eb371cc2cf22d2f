//go:build browser

package main_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// maxProgram is how much memory the program may have with a page open, in MB. It has about
// 100 with deliveries of 1 kB and of 300 KiB alike; rows that had bodies would take more.
const maxProgram = 200

// testManyDeliveries scrolls through 100,000 deliveries: only what is visible is
// in the page.
func testManyDeliveries(t *testing.T, b *browser) {
	const deliveries, maxRows, maxHeap = 100_000, 120, 64 << 20
	w := newHome(t)
	path := w.home + "/many.db"
	fillDeliveries(t, path, deliveries)
	i := w.showsStore(path)
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.wait(fmt.Sprintf("rows.numbers().includes(%d)", deliveries))
	began := time.Now()
	got := eval[struct {
		Most    int
		Numbers []int
	}](tb, "rows.scroll(60)")
	t.Logf("scrolled through %d deliveries in %v: at most %d rows in the page, %d met", deliveries, time.Since(began).Round(10*time.Millisecond), got.Most, len(got.Numbers))
	if got.Most > maxRows {
		t.Errorf("%d rows are in the page; want at most %d", got.Most, maxRows)
	}
	if slices.Min(got.Numbers) != 1 || slices.Max(got.Numbers) != deliveries {
		t.Errorf("the list reaches from %d to %d; want 1 to %d", slices.Min(got.Numbers), slices.Max(got.Numbers), deliveries)
	}
	if heap := tb.heap(); heap > maxHeap {
		t.Errorf("the page has %d MB; want at most %d", heap>>20, maxHeap>>20)
	}
	t.Logf("the page has %.1f MB, the program %.0f", float64(tb.heap())/(1<<20), memory(i.cmd.Process.Pid))
}

// fillDeliveries makes a store of so many deliveries.
func fillDeliveries(t *testing.T, path string, deliveries int) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	at := time.Now().Add(-time.Hour)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() {
			for n := next.Add(1) - 1; n < int64(deliveries); n = next.Add(1) - 1 {
				d, events := inbox.Decode(inbox.Delivery{
					ReceivedAt: at.Add(time.Duration(n) * 30 * time.Millisecond), Method: "POST", Path: "/hook", RemoteAddr: "127.0.0.1:1", Verified: inbox.Unknown,
					Header: []webhook.Field{{Name: "Content-Type", Value: "application/json"}},
					Body:   fmt.Appendf(nil, `[{"eventId":%q,"event":"router.delivered","data":{"trackingNumber":"94001%016d7","status":1,"statusTrack":"delivered"}}]`, eventID(1, int(n)), n),
				})
				if _, err := db.Put(t.Context(), d, events); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// heap returns the bytes of objects that the page's scripts have, after those that
// nothing refers to were removed.
func (tb *tab) heap() int {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		tb.t.Fatal(err)
	}
	got, err := chromedp.Call(tb.ctx, performance.GetMetrics, chromedp.Void{})
	if err != nil {
		tb.t.Fatal(err)
	}
	for _, m := range got.Metrics {
		if m.Name == "JSHeapUsedSize" {
			return int(m.Value)
		}
	}
	return 0
}

// testLoad has the page open while 1,000 deliveries a second arrive, by turns with a
// control without a page, and then while large ones arrive.
func testLoad(t *testing.T, b *browser) {
	const rate, turns, control, open = 1000, 4, 500, 1000
	i := newHome(t).inspects()
	tb := b.open(t)
	least := math.MaxInt // of the longest task of each turn, in ms of its thread's own time
	for turn := range turns {
		tb.visit("about:blank")
		requests := make([][]byte, control+open)
		for n := range requests {
			requests[n] = signed("[" + event(1, turn*len(requests)+n) + "]")
		}
		without := pacedLoad(t, i.addr, rate, requests[:control])
		i.list(tb, "#/deliveries")
		longestTask := tb.watchTasks()
		with := pacedLoad(t, i.addr, rate, requests[control:])
		tb.wait(fmt.Sprintf("rows.numbers().includes(%d)", (turn+1)*len(requests)))
		longest := longestTask()
		least = min(least, longest)
		t.Logf("%d deliveries a second: answers median %v, p99 %v with the page open, %v and %v without; longest task %d ms",
			rate, with[open/2], with[open*99/100], without[control/2], without[control*99/100], longest)
	}
	if least > 200 { // what the page's scripts cost is in every turn: the quietest one decides
		t.Errorf("a task of the page took %d ms in each turn; want at most 200 in one of them", least)
	}
	const large, size = 100, 300 << 10
	bodies := make([][]byte, large)
	for n := range bodies {
		bodies[n] = signed("[" + strings.Replace(event(2, n), `"data":{`, `"data":{"padding":"`+strings.Repeat("x", size)+`",`, 1) + "]")
	}
	small := memory(i.cmd.Process.Pid)
	pacedLoad(t, i.addr, 50, bodies)
	tb.wait(fmt.Sprintf("rows.numbers().includes(%d)", turns*(control+open)+large))
	t.Logf("the page has %.1f MB, the program %.0f, %.0f before %d deliveries of %d KiB", float64(tb.heap())/(1<<20), memory(i.cmd.Process.Pid), small, large, size>>10)
	if mb := memory(i.cmd.Process.Pid); mb > maxProgram {
		t.Errorf("the program had %.0f MB; want at most %d", mb, maxProgram)
	}
	if heap := tb.heap(); heap > 64<<20 {
		t.Errorf("the page has %d MB; want at most 64", heap>>20)
	}
	if n := eval[int](tb, "rows.nodes().length"); n > 120 {
		t.Errorf("%d rows are in the page", n)
	}
}

// watchTasks begins to record what the main threads of pages do. The function that it returns
// ends that, and returns the longest task, in ms in which the thread ran: it may have waited
// longer for a processor.
func (tb *tab) watchTasks() func() int {
	tb.t.Helper()
	ended := make(chan struct{})
	tb.mu.Lock()
	tb.trace, tb.traceEnded = nil, ended
	tb.mu.Unlock()
	config := &tracing.TraceConfig{IncludedCategories: []string{"toplevel"}, ExcludedCategories: []string{"*"}}
	if _, err := chromedp.Call(tb.ctx, tracing.Start, tracing.StartParams{TraceConfig: config}); err != nil {
		tb.t.Fatal(err)
	}
	return func() int {
		tb.t.Helper()
		if _, err := chromedp.Call(tb.ctx, tracing.End, cdp.Empty{}); err != nil {
			tb.t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(stepPatience):
			tb.t.Fatal("the trace does not end")
		}
		return tb.longestTask()
	}
}

// longestTask reads the trace, and fails the test if no task of a page is in it.
func (tb *tab) longestTask() int {
	tb.t.Helper()
	type thread struct{ PID, TID int }
	mains, longest := map[thread]bool{}, map[thread]int{}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	for _, raw := range tb.trace {
		var e struct {
			thread

			Name   string
			Micros int `json:"tdur"` // in which the thread ran
			Args   struct{ Name string }
		}
		if err := json.Unmarshal(raw, &e); err != nil {
			tb.t.Fatalf("%s: %v", raw, err)
		}
		switch {
		case e.Name == "thread_name" && e.Args.Name == "CrRendererMain":
			mains[e.thread] = true
		case strings.HasSuffix(e.Name, "RunTask"):
			longest[e.thread] = max(longest[e.thread], e.Micros)
		}
	}
	most := 0
	for main := range mains {
		most = max(most, longest[main])
	}
	if most == 0 {
		tb.t.Fatalf("no task of a page is among %d records", len(tb.trace))
	}
	return most / 1000
}

// pacedLoad sends so many requests a second and returns how long each took, the
// shortest first.
func pacedLoad(t *testing.T, addr string, rate int, requests [][]byte) []time.Duration {
	t.Helper()
	took := make([]time.Duration, len(requests))
	var next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range 16 {
		all.Go(func() {
			c, err := dial(addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for n := next.Add(1) - 1; n < int64(len(requests)); n = next.Add(1) - 1 {
				<-time.After(time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate))))
				at := time.Now()
				if status, err := c.do(requests[n]); status != 200 || err != nil {
					t.Errorf("delivery %d: status %d, %v", n, status, err)
					return
				}
				took[n] = time.Since(at)
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	return took
}
