package main_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// bareShow is the minimal program: it asks about the orders of a file, decodes
// the answers and prints them as CSV as they come, and keeps nothing.
func bareShow(file, address, workers string) error {
	n, err := strconv.Atoi(workers)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}
	refs, answers, failed := make(chan string), make(chan answered), make(chan error, n)
	var asking sync.WaitGroup
	for range n {
		asking.Go(func() {
			for ref := range refs {
				a, err := askBare(client, address, ref)
				if err != nil {
					failed <- err
					return
				}
				answers <- a
			}
		})
	}
	reading := make(chan error, 1)
	go func() {
		reading <- eachOrder(file, func(o order) error {
			select {
			case refs <- o.ReferID:
				return nil
			case err := <-failed:
				return err
			}
		})
		close(refs)
		asking.Wait()
		close(answers)
	}()
	w := csv.NewWriter(os.Stdout)
	for a := range answers {
		if err := w.Write([]string{a.Data.ReferID, a.Data.TrackingNumber, a.Data.Summary.StatusLabel, a.Data.Summary.LatestEvent, a.Data.Summary.LatestCheckpointTime}); err != nil {
			return err
		}
	}
	w.Flush()
	return errors.Join(w.Error(), <-reading)
}

// answered is what a program wants to know of an answer.
type answered struct {
	Data struct {
		ReferID, TrackingNumber string
		Summary                 struct{ StatusLabel, LatestEvent, LatestCheckpointTime string }
		Detail                  struct {
			TrackingEvents []struct {
				EventType, EventCity, EventState, EventZIPCode, EventTimestamp, GMTTimestamp string
			}
		}
	}
}

func askBare(client *http.Client, address, ref string) (a answered, err error) {
	req, err := http.NewRequest(http.MethodGet, address+"/api/v1/routers/detail?referId="+url.QueryEscape(ref), nil)
	if err != nil {
		return a, err
	}
	req.Header.Set("Authorization", "k1")
	res, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return a, errors.New(res.Status)
	}
	err = json.NewDecoder(res.Body).Decode(&a)
	return a, err
}

// delivered is the answer about an order that [orders] wrote: 1.5 KB with five
// checkpoints.
func delivered(refer string) string {
	i, _ := strconv.Atoi(strings.TrimPrefix(refer, "ORD-"))
	return strings.NewReplacer("REFER", refer, "NUMBER", parcelNumber(i)).Replace(deliveredAnswer)
}

const deliveredAnswer = `{"data":{"carrierCode":"usps","detail":{"statusSummary":"Delivered, front door","trackingEvents":[` +
	`{"GMTTimestamp":"2026-03-06T17:12:00Z","eventCity":"Seattle","eventState":"WA","eventTimestamp":"2026-03-06T09:12:00","eventType":"Delivered, front door","eventZIPCode":"98108"},` +
	`{"GMTTimestamp":"2026-03-06T14:01:00Z","eventCity":"Seattle","eventState":"WA","eventTimestamp":"2026-03-06T06:01:00","eventType":"Out for delivery","eventZIPCode":"98108"},` +
	`{"GMTTimestamp":"2026-03-05T15:22:00Z","eventCity":"Denver","eventState":"CO","eventTimestamp":"2026-03-05T08:22:00","eventType":"Departed facility","eventZIPCode":"80239"},` +
	`{"GMTTimestamp":"2026-03-04T19:01:00Z","eventCity":"Louisville","eventState":"KY","eventTimestamp":"2026-03-04T14:01:00","eventType":"Picked up","eventZIPCode":"40213"},` +
	`{"GMTTimestamp":"2026-03-04T11:50:00Z","eventCity":"Louisville","eventState":"KY","eventTimestamp":"2026-03-04T06:50:00","eventType":"Shipment information received","eventZIPCode":"40213"}],` +
	`"trackingNumber":"NUMBER"},"error":null,"referId":"REFER","routerId":"08d0fe45-a74d-4045-a042-bdb8162a781f","status":1,"statusTrack":"delivered",` +
	`"summary":{"created":"2026-03-04T11:45:57.125Z","id":"08d0fe45-a74d-4045-a042-bdb8162a781f","latestCheckpointTime":"2026-03-06T17:12:00.000Z",` +
	`"latestEvent":"Delivered, front door","status":1,"statusLabel":"DELIVERED","trackingNumber":"NUMBER","transitTime":2,"updated":"2026-03-06T17:13:11.125Z"},` +
	`"trackingNumber":"NUMBER"},"message":"success"}`

// askers is how many connections both sides of a comparison use.
const askers = "8"

// newShown is a bench whose orders were created, and a function that forgets
// what was learnt of them.
func newShown(b *testing.B, rows int, latency time.Duration, detail func(string) string) (w *bench, unasked func()) {
	b.Helper()
	w = newBench(b, rows, ascending, latency)
	w.sink.detail = detail
	w.env = append(w.env, "WAYBILL_CONCURRENCY="+askers, "WAYBILL_STORE="+w.store)
	w.create(b)
	created, err := os.ReadFile(w.store)
	if err != nil {
		b.Fatal(err)
	}
	return w, func() {
		w.fresh(b)
		w.sink.created.Store("ORD", true)
		if err := os.WriteFile(w.store, created, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShow measures a show of many orders beside a program that only asks,
// decodes and prints, with as many connections. x-minimal is how many times as
// long it takes: 1.05 is the aim at 50 ms, 1.5 at 0 ms, and 48 MB of memory for
// any number of orders.
func BenchmarkShow(b *testing.B) {
	for _, c := range []struct {
		name    string
		rows    int
		latency time.Duration
		args    []string // FILE is the input
	}{
		{"10000/50ms/run", 10_000, 50 * time.Millisecond, []string{"--run", "1"}},
		{"10000/50ms/from", 10_000, 50 * time.Millisecond, []string{"--from", "FILE"}},
		{"10000/0ms/run", 10_000, 0, []string{"--run", "1"}},
		{"10000/0ms/from", 10_000, 0, []string{"--from", "FILE"}},
		{"1000000/0ms/run", 1_000_000, 0, []string{"--run", "1"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			w, unasked := newShown(b, c.rows, c.latency, delivered)
			ours, theirs, most := math.Inf(1), math.Inf(1), 0.0
			for range b.N {
				_, bare := measure(b, unread(b, peer("bareshow", w.file, w.url, askers)))
				theirs = min(theirs, bare.seconds)
				unasked()
				before := w.sink.asked.Load()
				_, own := measure(b, unread(b, w.show(c.args...)))
				if asked := w.sink.asked.Load() - before; asked != int64(w.rows) {
					b.Fatalf("%d of %d were asked about", asked, w.rows)
				}
				ours, most = min(ours, own.seconds), max(most, own.peak)
			}
			b.ReportMetric(ours/theirs, "x-minimal")
			b.ReportMetric(float64(w.rows)/ours, "refs/s")
			b.ReportMetric(float64(w.rows)/theirs, "minimal-refs/s")
			b.ReportMetric(most, "MB-VmHWM")
		})
	}
}

// show is a show of many orders as CSV.
func (w *bench) show(args ...string) *exec.Cmd {
	args = append([]string{"show", "-o", "csv", "-q"}, args...)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "FILE", w.file)
	}
	return w.command(args...)
}

// BenchmarkWait measures a wait for many trackings, of which one in a hundred
// is being processed for some seconds longer, in calls: 1.1 for each that was
// ready and 8 for each other are the aims.
func BenchmarkWait(b *testing.B) {
	const longer = 10 * time.Second
	var mu sync.Mutex
	var began time.Time
	calls := map[bool]int{} // of the ready, of the others
	w, unasked := newShown(b, 10_000, 0, func(refer string) string {
		mu.Lock()
		defer mu.Unlock()
		slow := strings.HasSuffix(refer, "50")
		calls[slow]++
		if slow && time.Since(began) < longer {
			return `{"message":"Processing"}`
		}
		return delivered(refer)
	})
	most, seconds := 0.0, 0.0
	clear(calls)
	for range b.N {
		unasked()
		mu.Lock()
		began = time.Now()
		mu.Unlock()
		_, own := measure(b, unread(b, w.command("wait", "--run", "1", "-o", "csv", "-q", "--timeout", "5m")))
		most, seconds = max(most, own.peak), seconds+own.seconds
	}
	slow := float64(w.rows / 100 * b.N) // their names end in 50
	b.ReportMetric(float64(calls[false])/(float64(w.rows*b.N)-slow), "calls/ready")
	b.ReportMetric(float64(calls[true])/slow, "calls/straggler")
	b.ReportMetric(seconds/float64(b.N), "s")
	b.ReportMetric(most, "MB-VmHWM")
}
