package forward

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestPausesGrow(t *testing.T) {
	for failures, longest := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 11: 2048 * time.Second, 12: time.Hour, 19: time.Hour, 1000: time.Hour} {
		var most time.Duration
		for range 2000 {
			p := retryDelay(failures)
			if p < 0 || p > longest {
				t.Fatalf("%d failures: %v; want at most %v", failures, p, longest)
			}
			most = max(most, p)
		}
		if most < longest*9/10 {
			t.Errorf("%d failures: never more than %v of %v", failures, most, longest)
		}
	}
}

// oneEntry is a store with an entry that is due again and again.
type oneEntry struct {
	inbox.Outbox
	Inbox
	began time.Time

	mu       sync.Mutex
	claimed  bool
	entry    inbox.OutboxEntry
	outcomes []inbox.AttemptOutcome
}

var errLost = errors.New("nobody there")

func (o *oneEntry) OpenSink(context.Context, inbox.SinkKey, *inbox.StartPosition) (inbox.Sink, error) {
	return inbox.Sink{ID: 1}, nil
}

func (o *oneEntry) Advance(context.Context, int64, int, func([]inbox.Event) bool) (inbox.Progress, error) {
	return inbox.Progress{}, nil
}

func (o *oneEntry) Delivery(context.Context, int64) (inbox.Delivery, error) {
	return inbox.Delivery{}, errLost
}

func (o *oneEntry) ClaimEntries(_ context.Context, _ int64, _ int, now time.Time) ([]inbox.OutboxEntry, time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claimed {
		return nil, time.Time{}, nil
	}
	if len(o.outcomes) > 0 {
		last := o.outcomes[len(o.outcomes)-1]
		if last.Disposition == inbox.GivenUp {
			return nil, time.Time{}, nil
		}
		if now.Before(last.Due) {
			return nil, last.Due, nil
		}
	}
	o.entry.Attempt++
	o.claimed = true
	return []inbox.OutboxEntry{o.entry}, time.Time{}, nil
}

func (o *oneEntry) RecordAttempt(_ context.Context, _ int64, out inbox.AttemptOutcome) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claimed = false
	o.outcomes = append(o.outcomes, out)
	o.entry.Failures++
	if o.entry.FirstFailure.IsZero() {
		o.entry.FirstFailure = out.Now
	}
	return nil
}

// untilDead forwards one entry that always fails, until it is given up.
func untilDead(t *testing.T, began time.Duration) *oneEntry {
	t.Helper()
	o := &oneEntry{entry: inbox.OutboxEntry{ID: 1, Delivery: 1}, began: time.Now()}
	if began > 0 {
		o.entry.Failures, o.entry.FirstFailure = 1, time.Now().Add(-began)
	}
	target, err := ParseTarget("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f, err := Open(ctx, Options{Outbox: o, Inbox: o, Client: NewClient(ClientOptions{}), Targets: []Target{target}, OnAttempt: func(n AttemptReport) {
		if n.Disposition == inbox.GivenUp {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Run(ctx, t.Context()); err != nil {
		t.Error(err)
	}
	return o
}

func TestGivesUpAfterTwentyTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := untilDead(t, 0)
		last := o.outcomes[len(o.outcomes)-1]
		if len(o.outcomes) != maxFailures || last.Disposition != inbox.GivenUp || last.Problem != errLost.Error() {
			t.Errorf("%d tries, the last %+v", len(o.outcomes), last)
		}
		if took := time.Since(o.began); took < time.Minute || took > 24*time.Hour {
			t.Errorf("took %v of fake time", took)
		}
	})
}

func TestGivesUpAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := untilDead(t, maxRetryTime)
		if len(o.outcomes) != 1 || o.outcomes[0].Disposition != inbox.GivenUp {
			t.Errorf("%+v", o.outcomes)
		}
	})
}

// ailing is a store that can't be read or written for a while.
type ailing struct {
	oneEntry
	reads, writes int // that fail yet
}

func (a *ailing) Delivery(ctx context.Context, seq int64) (inbox.Delivery, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reads--; a.reads >= 0 {
		return inbox.Delivery{}, fmt.Errorf("read: %w", inbox.ErrLocked)
	}
	return inbox.Delivery{}, errLost
}

func (a *ailing) RecordAttempt(ctx context.Context, id int64, o inbox.AttemptOutcome) error {
	a.mu.Lock()
	a.writes--
	fails := a.writes >= 0
	a.mu.Unlock()
	if fails {
		return errLost // whatever it is, the outcome is not dropped
	}
	if o.Disposition == inbox.Returned {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.claimed = false
		return nil
	}
	return a.oneEntry.RecordAttempt(ctx, id, o)
}

// Trouble of the store is none of the target's, is told once, and costs no try.
func TestTroubleOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &ailing{oneEntry: oneEntry{entry: inbox.OutboxEntry{ID: 1, Delivery: 1}}, reads: 30, writes: 40}
		target, err := ParseTarget("http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var told []string
		var first AttemptReport
		f, err := Open(ctx, Options{
			Outbox: o, Inbox: o, Client: NewClient(ClientOptions{}), Targets: []Target{target},
			OnAttempt: func(n AttemptReport) {
				first = n
				cancel()
			},
			OnStoreError: func(what string, err error) { told = append(told, fmt.Sprintf("%s: %v", what, err)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Run(ctx, t.Context()); err != nil {
			t.Error(err)
		}
		if first.Disposition != inbox.Retry || first.Attempt != 31 || len(o.outcomes) != 1 {
			t.Errorf("%+v, and %d outcomes", first, len(o.outcomes))
		}
		want := []string{
			"delivery 1 not read, trying again: read: " + inbox.ErrLocked.Error(),
			"result of delivery 1 not stored yet, trying again: " + errLost.Error(),
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
	})
}

func TestHopByHop(t *testing.T) {
	skip := droppedHeaders([]webhook.Field{{Name: "connection", Value: "close, X-A"}, {Name: "Connection", Value: " x-b "}})
	for name, want := range map[string]bool{"x-a": true, "x-b": true, "x-c": false, "te": true, "content-type": false} {
		if skip[name] != want {
			t.Errorf("%s: %v", name, skip[name])
		}
	}
}

func TestTroubleIsToldOnce(t *testing.T) {
	var told []string
	var a onceAlert
	tell := func(what string, _ error) { told = append(told, what) }
	for _, what := range []string{"a", "b", "", "c", "", ""} {
		if what == "" {
			a.update(tell, "", nil)
		} else {
			a.update(tell, what, errLost)
		}
	}
	if len(told) != 2 || told[0] != "a" || told[1] != "c" {
		t.Errorf("%q", told)
	}
}

// One request that got no answer in time makes nobody pause: its slot is all it takes.
func TestTimeoutMakesNobodyPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0).Widen()
		for range 3 {
			pass, err := g.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pass.End(signalOf(Answer{}, fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)), 0)
		}
		began := time.Now()
		if _, err := g.Enter(t.Context()); err != nil || !time.Now().Equal(began) || g.Window() != 8 {
			t.Errorf("entered after %v, %v, window %d; want at once and 8", time.Since(began), err, g.Window())
		}
	})
}

// due is an outbox in which so many entries are due.
type due struct {
	oneEntry
	left    int
	claims  []int // how many were claimed at once
	unbegun int
}

func (o *due) ClaimEntries(_ context.Context, _ int64, n int, _ time.Time) ([]inbox.OutboxEntry, time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	entries := make([]inbox.OutboxEntry, min(n, o.left))
	for i := range entries {
		entries[i] = inbox.OutboxEntry{ID: int64(o.left - i), Delivery: int64(o.left - i), Attempt: 1}
	}
	if o.left -= len(entries); len(entries) > 0 {
		o.claims = append(o.claims, len(entries))
	}
	return entries, time.Time{}, nil
}

func (o *due) RecordAttempt(_ context.Context, _ int64, out inbox.AttemptOutcome) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if out.Disposition == inbox.Unbegun {
		o.unbegun++
	}
	o.outcomes = append(o.outcomes, out)
	return nil
}

func dueRoute(t *testing.T, o *due, workers int) *route {
	t.Helper()
	target, err := ParseTarget("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), Options{Outbox: o, Inbox: o, Client: NewClient(ClientOptions{}), Targets: []Target{target}, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	return f.routes[0]
}

// As many entries are claimed at once as may be sent.
func TestClaimsSeveralAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &due{left: 10}
		r := dueRoute(t, o, 4)
		ctx, cancel := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		sending.Go(func() {
			if err := r.sendQueued(ctx, t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		cancel()
		sending.Wait()
		if o.claims[0] != 4 || len(o.outcomes) != 10 || o.unbegun != 0 {
			t.Errorf("claimed %v, %d recorded, %d unbegun", o.claims, len(o.outcomes), o.unbegun)
		}
	})
}

// What was claimed beyond what may be sent is given back after a second, or as soon as the
// forwarder is to end.
func TestUnbegunIsGivenBack(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := &due{left: 3}
			r := dueRoute(t, o, 2)
			held, err := r.gate.Enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			passes, err := r.gate.EnterAll(t.Context())
			if err != nil || len(passes) != 1 {
				t.Fatal(passes, err)
			}
			entries, _, _ := o.ClaimEntries(t.Context(), 1, 3, time.Now())
			ctx := t.Context()
			if stopped {
				ctx = canceled(t)
			}
			began := time.Now()
			var sending sync.WaitGroup
			passes[0].End(pace.Throttled, time.Hour)
			r.begin(ctx, t.Context(), &sending, nil, entries)
			sending.Wait()
			held.Release()
			if took := time.Since(began); o.unbegun != 3 || took > pollInterval || stopped && took > 0 {
				t.Errorf("%d given back after %v", o.unbegun, took)
			}
		})
	}
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestForbidden(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "8.8.8.8": false, "fd00::1": false, "2001:db8::1": false,
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "fe80::1%eth0": true, "::ffff:169.254.169.254": true,
		"fd00:ec2::254": true, "100.100.100.200": true, "168.63.129.16": true, "192.0.0.192": true, "224.0.0.1": true, "ff02::1": true,
		"255.255.255.255": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::808:808": false, "2002:a9fe:a9fe::1": true, "::169.254.169.254": true,
		"::ffff:0:169.254.169.254": true, "::ffff:0:8.8.8.8": false, "fd00:ec2::23": true, "0.0.0.0": false, "::": false, "169.253.255.255": false,
	} {
		if got := isForbidden(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v; want %v", text, got, want)
		}
	}
}

// names is a name server whose every name leads to the given address.
func names(t *testing.T, to func() netip.Addr) *net.Resolver {
	t.Helper()
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		q := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(q)
			if err != nil {
				return
			}
			end := 12 + strings.IndexByte(string(q[12:n]), 0) + 5 // of the question
			answer := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
			if binary.BigEndian.Uint16(q[end-4:]) == 1 { // A
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, to().AsSlice()...)
			}
			_, _ = conn.WriteTo(answer, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// A name may lead somewhere else each time: what counts is where it leads when it is dialled.
func TestGuardedAgainstRebinding(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	var to atomic.Pointer[netip.Addr]
	leadTo := func(text string) {
		ip := netip.MustParseAddr(text)
		to.Store(&ip)
	}
	leadTo("127.0.0.1")
	c := NewClient(ClientOptions{Timeout: 5 * time.Second})
	defer c.Close()
	c.dialer.Resolver = names(t, func() netip.Addr { return *to.Load() })
	target, err := ParseTarget("http://rebound.test:" + srv.URL[strings.LastIndex(srv.URL, ":")+1:])
	if err != nil {
		t.Fatal(err)
	}
	m := webhook.Request{Method: "POST", Path: "/", Header: []webhook.Field{{Name: "Connection", Value: "close"}}}
	if a, err := c.Send(t.Context(), target.URL, m); err != nil || a.Status != 404 {
		t.Fatalf("%+v, %v", a, err)
	}
	for _, text := range []string{"169.254.169.254", "100.100.100.200"} {
		c.Close() // so that it dials again
		leadTo(text)
		if a, err := c.Send(t.Context(), target.URL, m); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %+v, %v", text, a, err)
		}
	}
	if target.Forbidden() {
		t.Error("the name is forbidden")
	}
}
