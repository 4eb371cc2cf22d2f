package listen_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
)

// follower collects what Follow tells, as "type seq eventId" or "type reason".
type follower struct {
	told  []string
	stop  context.CancelFunc
	ended chan error
}

func follow(t *testing.T, r *listen.Receiver, after int64, fn func(listen.Notification) error) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{stop: cancel, ended: make(chan error, 1)}
	go func() {
		f.ended <- r.Follow(ctx, after, func(n listen.Notification) error {
			if n.Type == listen.Refused {
				f.told = append(f.told, fmt.Sprintf("%s %s", n.Type, n.Refused.Reason))
			} else {
				f.told = append(f.told, fmt.Sprintf("%s %d %s", n.Type, n.Event.Seq, n.Event.EventID))
			}
			if fn != nil {
				return fn(n)
			}
			return nil
		})
	}()
	return f
}

func (f *follower) end(t *testing.T) {
	t.Helper()
	f.stop()
	if err := <-f.ended; err != nil {
		t.Errorf("Follow: %v; want nil", err)
	}
}

func TestFollowTellsWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		r := receiver(t, listen.Options{Store: box, Verify: signing(t), Enforce: true})
		h := r.Handler()
		good := func(body string) { send(t, h, body, signature(body)) }
		good(`[{"eventId":"old"},{"eventId":"told before"}]`)
		f := follow(t, r, 1, nil)
		synctest.Wait()
		if want := []string{"event 2 told before"}; !slices.Equal(f.told, want) {
			t.Errorf("told %q; want %q", f.told, want)
		}
		good(`[{"eventId":"a"}, 7, {"eventId":"a"}, {"eventId":"a","event":"x"}]`)
		good(`not JSON`)
		time.Sleep(time.Second)
		synctest.Wait()
		send(t, h, delivered, "forged")
		synctest.Wait()
		want := []string{"event 2 told before", "event 3 a", "anomaly 4 ", "duplicate 5 a", "conflict 6 a", "anomaly 7 ", "refused signature_malformed"}
		if !slices.Equal(f.told, want) {
			t.Errorf("told %q; want %q", f.told, want)
		}
		f.end(t)
	})
}

// Pages are bounded by bytes too, and fn knows which row ends one.
func TestFollowReadsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			rows, bytes int // bytes of a row
			want        []int
		}{{600, 100, []int{512, 88}}, {5, 600_000, []int{2, 2, 1}}, {2, 2 << 20, []int{1, 1}}} {
			r := receiver(t, listen.Options{Store: &memory{}})
			for i := range tt.rows {
				send(t, r.Handler(), fmt.Sprintf(`[{"eventId":"%d","data":%q}]`, i, strings.Repeat("x", tt.bytes)), "")
			}
			for _, last := range []bool{false, true} {
				pages := []int{0}
				f := follow(t, r, 0, func(n listen.Notification) error {
					pages[len(pages)-1]++
					if !n.More {
						pages = append(pages, 0)
					}
					return nil
				})
				if !last {
					time.Sleep(10 * time.Second)
				}
				f.end(t)
				if got := pages[:len(pages)-1]; !slices.Equal(got, tt.want) {
					t.Errorf("%d rows of %d bytes: pages of %v; want %v", tt.rows, tt.bytes, got, tt.want)
				}
			}
		}
	})
}

// What another process stored is told at once where the store hints at it, else soon.
func TestFollowTellsWhatOthersStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		r := receiver(t, listen.Options{Store: box})
		f := follow(t, r, 0, nil)
		synctest.Wait()
		for i, wake := range []func(){r.Wake, func() { time.Sleep(time.Second) }} {
			d := inbox.Delivery{Body: fmt.Appendf(nil, `[{"eventId":"%d"}]`, i)}
			d, rows := inbox.Decode(d)
			if _, err := box.Put(t.Context(), d, rows); err != nil {
				t.Fatal(err)
			}
			wake()
			synctest.Wait()
			if len(f.told) != i+1 {
				t.Errorf("told %q; want %d", f.told, i+1)
			}
			time.Sleep(time.Second)
		}
		f.end(t)
	})
}

func TestFollowTellsRowsInOrderOverManyPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		r := receiver(t, listen.Options{Store: box})
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, `,{"eventId":"%d","data":{"note":"%0128d"}}`, i, i) // as long as events are
		}
		body := "[" + b.String()[1:] + "]"
		send(t, r.Handler(), body, "")
		// While a slow reader reads on, more arrives: none is lost.
		slow := func(n listen.Notification) error {
			if n.Event.Seq == 300 {
				send(t, r.Handler(), `[{"eventId":"last"}]`, "")
			}
			return nil
		}
		f := follow(t, r, 0, slow)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(f.told) != 1001 || f.told[0] != "event 1 0" || f.told[1000] != "event 1001 last" {
			t.Errorf("told %d rows, first %q, last %q; want 1001 in order", len(f.told), f.told[0], f.told[len(f.told)-1])
		}
		f.end(t)
	})
}

func TestFollowReadsToTheEndWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		r := receiver(t, listen.Options{Store: box, Verify: signing(t), Enforce: true})
		send(t, r.Handler(), delivered, signature(delivered))
		send(t, r.Handler(), delivered, "")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var told []listen.Type
		err := r.Follow(ctx, 0, func(n listen.Notification) error { told = append(told, n.Type); return nil })
		if want := []listen.Type{listen.Event, listen.Refused}; err != nil || !slices.Equal(told, want) {
			t.Errorf("Follow: %v, told %v; want nil, %v", err, told, want)
		}
	})
}

func TestFollowReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		r := receiver(t, listen.Options{Store: &memory{}})
		send(t, r.Handler(), delivered, "")
		f := follow(t, r, 0, func(listen.Notification) error { return broken })
		if err := <-f.ended; !errors.Is(err, broken) {
			t.Errorf("Follow: %v; want the error of fn", err)
		}
		f.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		r := receiver(t, listen.Options{Store: &memory{before: func(context.Context, string) error { return broken }}})
		f := follow(t, r, 0, nil)
		if err := <-f.ended; !errors.Is(err, broken) {
			t.Errorf("Follow: %v; want the error of the inbox", err)
		}
		f.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		r := receiver(t, listen.Options{Store: &memory{}, Verify: signing(t), Enforce: true})
		send(t, r.Handler(), delivered, "")
		f := follow(t, r, 0, func(listen.Notification) error { return broken })
		if err := <-f.ended; !errors.Is(err, broken) {
			t.Errorf("Follow: %v; want the error of fn on a refusal", err)
		}
		f.stop()
	})
}

// Balancers ask with GET whether a delivery could be stored. However often they ask, the
// store is probed now and then.
func TestHealthIsWhetherDeliveriesCanBeStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var full atomic.Bool
		var probes, hangs atomic.Int64
		r := receiver(t, listen.Options{Store: &memory{}, Probe: func(ctx context.Context) error {
			probes.Add(1)
			if hangs.Load() > 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			if full.Load() {
				return inbox.ErrFull
			}
			return nil
		}})
		check := func(what, want string) {
			t.Helper()
			w := httptest.NewRecorder()
			r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			if got := fmt.Sprintf("%d %s", w.Code, w.Body); got != want+"\n" {
				t.Errorf("%s: %s; want %s", what, got, want)
			}
		}
		const ready, not = "200 ready for deliveries", "503 not ready: nothing can be stored now"
		check("at first", ready)
		full.Store(true)
		for range 100 {
			check("at once", ready)
		}
		if n := probes.Load(); n != 1 {
			t.Errorf("%d probes for 101 requests at once", n)
		}
		time.Sleep(time.Second)
		check("full", not)
		full.Store(false)
		time.Sleep(time.Second)
		check("after that", ready)
		hangs.Store(1)
		time.Sleep(time.Second)
		began := time.Now()
		check("no answer", not)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v to say that", took)
		}
	})
}

func TestFollowWaitsOutALockedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		locked.Store(true)
		box := &memory{before: func(_ context.Context, method string) error {
			if locked.Load() && method == "Events" {
				return fmt.Errorf("store: read: %w", inbox.ErrLocked)
			}
			return nil
		}}
		var log strings.Builder
		r := receiver(t, listen.Options{Store: box, Report: reportTo(&log)})
		send(t, r.Handler(), delivered, "")
		f := follow(t, r, 0, nil)
		time.Sleep(time.Minute) // of fake time
		synctest.Wait()
		locked.Store(false)
		time.Sleep(time.Second) // of fake time
		synctest.Wait()
		if said := log.String(); strings.Count(said, "\n") != 2 || !strings.Contains(said, "can't be read") || !strings.Contains(said, "read again") {
			t.Errorf("said %s", said)
		}
		if want := []string{"event 1 e-1"}; !slices.Equal(f.told, want) {
			t.Errorf("told %q; want %q", f.told, want)
		}
		locked.Store(true)
		f.stop()
		if err := <-f.ended; !errors.Is(err, inbox.ErrLocked) {
			t.Errorf("Follow, stopped while the store is locked: %v; want ErrLocked", err)
		}
	})
}

// A store that can be read now and then is reported once in a while, with its end.
func TestFollowReportsAStoreThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		box := &memory{before: func(_ context.Context, method string) error {
			if method != "Events" {
				return nil
			}
			if reads++; reads%2 == 0 {
				return fmt.Errorf("store: read: %w", inbox.ErrLocked)
			}
			return nil
		}}
		var log strings.Builder
		f := follow(t, receiver(t, listen.Options{Store: box, Report: reportTo(&log)}), 0, nil)
		time.Sleep(90 * time.Second) // of fake time
		synctest.Wait()
		f.stop()
		if err := <-f.ended; err != nil && !errors.Is(err, inbox.ErrLocked) {
			t.Error(err)
		}
		if said := log.String(); strings.Count(said, "can't be read") != 2 || strings.Count(said, "read again") != 2 {
			t.Errorf("after 90 seconds: %s", said)
		}
	})
}

func TestFollowCountsRefusalsItCouldNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := receiver(t, listen.Options{Store: &memory{}, Verify: signing(t), Enforce: true})
		for range 300 {
			send(t, r.Handler(), delivered, "")
		}
		var told, missed int64
		f := follow(t, r, 0, func(n listen.Notification) error {
			told++
			missed += n.Unreported
			if n.Refused.Body != nil || n.Refused.Header != nil {
				t.Error("a refusal that waits to be told holds its body")
			}
			return nil
		})
		synctest.Wait()
		if told != 256 || missed != 44 {
			t.Errorf("told %d, missed %d; want 256 and 44", told, missed)
		}
		f.end(t)
	})
}
