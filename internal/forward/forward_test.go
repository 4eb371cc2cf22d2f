package forward_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// app is a target that answers as it is told and keeps what it got.
type app struct {
	*httptest.Server
	mu     sync.Mutex
	answer func(body string, attempt string) int
	got    []string // bodies that were answered with 2xx, in order
	tries  []string // attempt and body of all
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		status := 200
		if a.answer != nil {
			status = a.answer(string(b), r.Header.Get(forward.HeaderAttempt))
		}
		a.tries = append(a.tries, r.Header.Get(forward.HeaderAttempt)+" "+string(b))
		if status/100 == 2 {
			a.got = append(a.got, string(b))
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, "said %d", status)
	}))
	t.Cleanup(a.Server.Close)
	return a
}

func (a *app) received() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.got)
}

// box is a store, and a way to put deliveries into it.
type box struct {
	*testing.T
	*store.DB
	n int
}

func newBox(t *testing.T) *box {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "waybill.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return &box{T: t, DB: db}
}

// put stores a delivery with one event about a number, and returns its body.
func (b *box) put(number string, verified inbox.Verified) string {
	b.Helper()
	b.n++
	body := fmt.Sprintf(`[ {"eventId":"%d","event":"kind.%d","data":{"trackingNumber":%q}}]`, b.n, b.n, number)
	b.store(body, verified)
	return body
}

func (b *box) store(body string, verified inbox.Verified) int64 {
	b.Helper()
	d := inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Header: []webhook.Field{{Name: "X-One", Value: "1"}}, Body: []byte(body), Verified: verified}
	r, err := b.Put(b.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
	if err != nil {
		b.Fatal(err)
	}
	return r.Delivery
}

// running is a forwarder at work.
type running struct {
	*forward.Forwarder
	stop func()
	dies bool // its store goes away under it

	mu      sync.Mutex
	notices []forward.AttemptReport
}

func (r *running) told() []forward.AttemptReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notices)
}

// reportOf returns the first report of a delivery. Reports of two deliveries come in any order.
func (r *running) reportOf(t *testing.T, delivery int64) forward.AttemptReport {
	t.Helper()
	told := r.told()
	i := slices.IndexFunc(told, func(n forward.AttemptReport) bool { return n.Delivery == delivery })
	if i < 0 {
		t.Fatalf("no report of delivery %d in %+v", delivery, told)
	}
	return told[i]
}

// forward begins to forward; the test's end, or stop, ends it.
func (b *box) forward(o forward.Options, targets ...string) *running {
	b.Helper()
	for _, text := range targets {
		target, err := forward.ParseTarget(text)
		if err != nil {
			b.Fatal(err)
		}
		o.Targets = append(o.Targets, target)
	}
	r := &running{}
	o.Outbox, o.Inbox, o.Client = b, b, client(b.T, forward.ClientOptions{})
	o.OnAttempt = func(n forward.AttemptReport) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notices = append(r.notices, n)
	}
	f, err := forward.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	r.Forwarder = f
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, context.WithoutCancel(ctx)) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !r.dies {
			b.Errorf("run: %v", err)
		}
	})
	b.Cleanup(r.stop)
	return r
}

// until waits for something that is to happen soon.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if ok() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

// A target that repeats its own headers does not make them show, nor be stored.
func TestEchoedHeadersOfATargetAreHidden(t *testing.T) {
	b := newBox(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "not "+r.Header.Get("X-App"))
	}))
	t.Cleanup(echo.Close)
	target, err := forward.ParseTarget(echo.URL)
	if err != nil {
		t.Fatal(err)
	}
	target.Headers = []webhook.Field{{Name: "X-App", Value: "t0k3n-of-the-target"}}
	r := b.forward(forward.Options{Targets: []forward.Target{target}})
	b.put("N1", inbox.Yes)
	r.Wake()
	until(t, "an attempt", func() bool { return len(r.told()) > 0 })
	if got := string(r.told()[0].Reply); got != "not ***" {
		t.Errorf("reply %q", got)
	}
}

func TestForwardsWhatIsNewVerifiedAndMatches(t *testing.T) {
	b, one, two := newBox(t), newApp(t), newApp(t)
	b.put("old", inbox.Yes)
	r := b.forward(forward.Options{}, one.URL, "number=B*=>"+two.URL)
	if s := r.Sinks(); len(s) != 2 || !s[0].New || s[0].Unread != 0 || s[0].URL != one.URL {
		t.Errorf("%+v", s)
	}
	a := b.put("A", inbox.Yes)
	b.put("B0", inbox.Unknown)
	b.put("B0", inbox.No)
	bb := b.put("B1", inbox.Yes)
	b.store(bb, inbox.Yes)                                // nothing new
	b.store(strings.Replace(bb, "[ ", "[", 1), inbox.Yes) // the same event
	both := bb[:len(bb)-1] + "," + strings.Replace(a, "[ ", "", 1)[:len(a)-3] + `,{"eventId":"new","data":{"trackingNumber":"C"}}]`
	b.store(both, inbox.Yes)
	r.Wake()
	until(t, "all", func() bool { return len(one.received()) == 3 && len(two.received()) == 1 })
	r.stop()
	got := one.received()
	slices.Sort(got)
	want := []string{a, bb, both}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := two.received(); !slices.Equal(got, []string{bb}) {
		t.Errorf("filtered: %q", got)
	}
	for _, n := range r.told() {
		if n.Disposition != inbox.Sent || n.Attempt != 1 || n.Status != 200 || string(n.Reply) != "said 200" || n.Problem != "" || !n.FailingSince.IsZero() || n.Took <= 0 {
			t.Errorf("%+v", n)
		}
	}
}

func TestUnverifiedOnlyWhenAsked(t *testing.T) {
	b, a := newBox(t), newApp(t)
	r := b.forward(forward.Options{Unverified: true}, a.URL)
	want := []string{b.put("A", inbox.Unknown), b.put("A", inbox.No), b.put("A", inbox.Yes)}
	r.Wake()
	until(t, "all", func() bool { return len(a.received()) == 3 })
	if got := a.received(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// verify gives a stored delivery the verdict that its signature is right.
func (b *box) verify(seq int64) {
	b.Helper()
	if _, err := b.SetVerdict(b.Context(), inbox.Delivery{Seq: seq, Verified: inbox.Yes}); err != nil {
		b.Fatal(err)
	}
}

// What a target got before it verified, it does not get again; nor what was nothing new when it came.
func TestVerifiedLaterIsForwardedOnce(t *testing.T) {
	b, all, verified := newBox(t), newApp(t), newApp(t)
	r := b.forward(forward.Options{Unverified: true}, all.URL)
	strict := b.forward(forward.Options{}, verified.URL)
	body := b.put("A", inbox.Unknown)
	b.store(body, inbox.Unknown)
	r.Wake()
	until(t, "the first, and its record", func() bool { return len(all.received()) == 1 && len(r.told()) == 1 })
	b.verify(1)
	b.verify(2)
	last := b.put("A", inbox.Yes)
	r.Wake()
	strict.Wake()
	until(t, "the last", func() bool { return len(all.received()) >= 2 && len(verified.received()) >= 2 })
	r.stop()
	strict.stop()
	for _, a := range []*app{all, verified} {
		if got := a.received(); !slices.Equal(got, []string{body, last}) {
			t.Errorf("got %q, want each once", got)
		}
	}
}

// What waits since unverified deliveries were forwarded is not sent by who does not forward them.
func TestUnverifiedOfBeforeAreGivenUp(t *testing.T) {
	b, a := newBox(t), newApp(t)
	a.answers(func(string, string) int { return 500 })
	r := b.forward(forward.Options{Unverified: true}, a.URL)
	b.put("A", inbox.No)
	r.Wake()
	until(t, "a failure", func() bool { return len(r.told()) == 1 })
	r.stop()
	a.answers(nil)
	r = b.forward(forward.Options{}, a.URL)
	want := b.put("A", inbox.Yes)
	r.Wake()
	until(t, "the verified one", func() bool { return len(a.received()) > 0 })
	r.stop()
	if got := a.received(); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
	n := r.reportOf(t, 1)
	if n.Disposition != inbox.GivenUp || !strings.Contains(n.Problem, "unverified") || !n.FailingSince.IsZero() {
		t.Errorf("%+v; want it given up, which says nothing of the target", n)
	}
}

func TestKeepsOrderWhileSomeFail(t *testing.T) {
	b, a := newBox(t), newApp(t)
	a.answers(func(body, attempt string) int {
		if strings.Contains(body, `"A"`) && attempt == "1" {
			return 500
		}
		return 204
	})
	r := b.forward(forward.Options{}, a.URL)
	a1, a2 := b.put("A", inbox.Yes), b.put("A", inbox.Yes)
	c1, c2 := b.put("C", inbox.Yes), b.put("C", inbox.Yes)
	r.Wake()
	until(t, "all", func() bool { return len(a.received()) == 4 })
	r.stop()
	order := func(want ...string) {
		t.Helper()
		var got []string
		for _, body := range a.received() {
			if slices.Contains(want, body) {
				got = append(got, body)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	order(a1, a2)
	order(c1, c2)
	var failed, healed int
	for _, n := range r.told() {
		if n.Disposition == inbox.Retry {
			failed++
			if n.Status != 500 || n.Problem != "answered 500" || n.Due.Before(time.Now().Add(-time.Minute)) || n.FailingSince.IsZero() {
				t.Errorf("%+v", n)
			}
		}
		if n.FailedFor > 0 {
			healed++
		}
	}
	if failed != 2 || healed == 0 {
		t.Errorf("%d failed, %d healed; want 2 and some", failed, healed)
	}
}

// A request that hangs, the first one of a new target, holds nothing up but its
// own tracking number; nor does it after nobody was there.
func TestHangingRequestHoldsNoOtherUp(t *testing.T) {
	b := newBox(t)
	stuck, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var got []string
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"hangs"`) {
			stuck <- struct{}{}
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(body))
	})
	received := func(n int) func() bool {
		return func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == n }
	}
	a := httptest.NewServer(handler)
	address := a.Listener.Addr().String()
	r := b.forward(forward.Options{}, a.URL)
	b.put("hangs", inbox.Yes)
	r.Wake()
	<-stuck
	for i := range 20 {
		b.put(fmt.Sprint("N", i), inbox.Yes)
	}
	r.Wake()
	until(t, "all others", received(20))
	release <- struct{}{}
	until(t, "all", received(21))

	a.Close()
	b.put("late", inbox.Yes)
	r.Wake()
	until(t, "nobody there", func() bool { return r.told()[len(r.told())-1].Disposition == inbox.Retry })
	b.put("hangs", inbox.Yes)
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	a = &httptest.Server{Listener: l, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	a.Start()
	r.Wake()
	<-stuck
	b.put("after", inbox.Yes)
	r.Wake()
	until(t, "all others again", received(23))
	release <- struct{}{}
	r.stop()
	a.Close()
}

func TestResumesAfterADeath(t *testing.T) {
	b, a := newBox(t), newApp(t)
	stuck, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	a.answers(func(string, string) int {
		once.Do(func() {
			close(stuck)
			<-release
		})
		return 200
	})
	dying, err := sqlite.Open(t.Context(), b.Place(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dead := &box{T: t, DB: dying}
	r := dead.forward(forward.Options{}, a.URL)
	r.dies = true
	first := b.put("A", inbox.Yes)
	r.Wake()
	<-stuck // the request is under way
	second := b.put("A", inbox.Yes)
	// Its lock goes with it, and what it was told after that is nowhere.
	if err := dying.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	r2 := b.forward(forward.Options{}, a.URL)
	if s := r2.Sinks()[0]; s.New || s.Waiting+s.Unread != 2 {
		t.Errorf("%+v", s)
	}
	until(t, "all", func() bool { return len(a.received()) == 3 })
	if got := a.received(); !slices.Equal(got, []string{first, first, second}) {
		t.Errorf("%q", got)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !strings.HasPrefix(a.tries[1], "2 ") {
		t.Errorf("the second try says it is attempt %.1s", a.tries[1])
	}
}

// A target that failed before a restart fails since then.
func TestFailsSinceBeforeARestart(t *testing.T) {
	b, a := newBox(t), newApp(t)
	a.answers(func(string, string) int { return 500 })
	var reports [2]forward.AttemptReport
	for i := range reports {
		r := b.forward(forward.Options{}, a.URL)
		if i == 0 {
			b.put("A", inbox.Yes)
			r.Wake()
		}
		until(t, "an attempt", func() bool { return len(r.told()) > 0 })
		r.stop()
		reports[i] = r.told()[0]
	}
	if d := reports[1].FailingSince.Sub(reports[0].FailingSince).Abs(); d > time.Millisecond {
		t.Errorf("fails since %v, after the restart since %v", reports[0].FailingSince, reports[1].FailingSince)
	}
}

func TestGivesUpWhatCantBeSent(t *testing.T) {
	b, a := newBox(t), newApp(t)
	r := b.forward(forward.Options{}, a.URL)
	d := inbox.Delivery{ReceivedAt: time.Now(), Method: "BAD METHOD", Path: "/", Body: []byte(`[{"eventId":"bad","data":{"trackingNumber":"A"}}]`), Verified: inbox.Yes}
	if _, err := b.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	good := b.put("A", inbox.Yes)
	r.Wake()
	until(t, "the good one", func() bool { return slices.Equal(a.received(), []string{good}) })
	r.stop()
	n := 0
	for l, err := range b.DeadEntries(t.Context()) {
		if err != nil || l.Delivery != 1 || !strings.Contains(l.Problem, "method") || l.Failures != 1 {
			t.Errorf("%+v, %v", l, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d dead", n)
	}
	if n := r.reportOf(t, 1); n.Disposition != inbox.GivenUp {
		t.Errorf("%+v", n)
	}
}

func TestTwoOnOneStoreSendOnce(t *testing.T) {
	b, a := newBox(t), newApp(t)
	other, err := sqlite.Open(t.Context(), b.Place(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r1 := b.forward(forward.Options{}, a.URL)
	r2 := (&box{T: t, DB: other}).forward(forward.Options{}, a.URL)
	defer r2.stop()
	var want []string
	for i := range 60 {
		want = append(want, b.put(fmt.Sprint(i%5), inbox.Yes))
		r1.Wake()
		r2.Wake()
	}
	until(t, "all", func() bool { return len(a.received()) >= 60 })
	r1.stop()
	r2.stop()
	got := a.received()
	if len(got) != 60 {
		t.Errorf("%d received", len(got))
	}
	for i := range 5 {
		var of, wanted []string
		for _, body := range got {
			if strings.Contains(body, fmt.Sprintf(`"%d"}`, i)) {
				of = append(of, body)
			}
		}
		for j := i; j < 60; j += 5 {
			wanted = append(wanted, want[j])
		}
		if !slices.Equal(of, wanted) {
			t.Errorf("number %d: %q", i, of)
		}
	}
}

// What can't be read and what conflicts is forwarded like any other, a repeat is not, and what becomes
// verified later is, once.
func TestForwardsOnceWhatIsVerifiedLate(t *testing.T) {
	b, a := newBox(t), newApp(t)
	r := b.forward(forward.Options{}, a.URL)
	b.store("not JSON", inbox.Yes)
	b.store("[1]", inbox.Yes)
	first := b.put("A", inbox.Yes)
	conflict := strings.Replace(first, "kind.1", "kind.2", 1)
	b.store(conflict, inbox.Yes)
	late := b.put("B", inbox.No)
	seq := int64(5)
	r.Wake()
	until(t, "the first", func() bool {
		left, err := r.CurrentSinks(t.Context())
		return err == nil && left[0].Unread+left[0].Waiting == 0 && len(a.received()) == 4
	})
	for range 2 {
		d, err := b.Delivery(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		d.Verified = inbox.Yes
		if _, err := b.SetVerdict(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		r.Wake()
	}
	b.store(late, inbox.Yes) // sent once more: nothing new
	last := b.put("C", inbox.Yes)
	r.Wake()
	until(t, "the last", func() bool { return slices.Contains(a.received(), last) })
	r.stop()
	got, want := a.received(), []string{"not JSON", "[1]", first, conflict, late, last}
	if slices.Index(got, first) > slices.Index(got, conflict) {
		t.Errorf("%q; want both of a number in their order", got)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
	if left, err := r.CurrentSinks(t.Context()); err != nil || len(left) != 1 || left[0].Waiting+left[0].Unread != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}

// A redirect is an answer like any other: nobody goes where it points.
func TestRedirectsAreNotFollowed(t *testing.T) {
	b, elsewhere := newBox(t), newApp(t)
	away := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusPermanentRedirect))
	defer away.Close()
	r := b.forward(forward.Options{}, away.URL)
	b.put("A", inbox.Yes)
	r.Wake()
	until(t, "the notice", func() bool { return len(r.told()) > 0 })
	r.stop()
	if n := r.told()[0]; n.Disposition != inbox.Retry || n.Status != 308 || n.Problem != "answered 308: redirects are not followed" {
		t.Errorf("%+v", n)
	}
	if got := elsewhere.received(); len(got) != 0 {
		t.Errorf("followed: %q", got)
	}
}

// Requests under way when the forwarder is told to end at once have not failed:
// what they carried waits, and says that it may have arrived before.
func TestEndsAtOnceWhenToldTo(t *testing.T) {
	b := newBox(t)
	stuck, free := make(chan struct{}, 1), make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		stuck <- struct{}{}
		<-free
	}))
	defer hanging.Close()
	defer close(free)
	target, err := forward.ParseTarget(hanging.URL)
	if err != nil {
		t.Fatal(err)
	}
	f, err := forward.Open(t.Context(), forward.Options{Outbox: b, Inbox: b, Client: client(t, forward.ClientOptions{}), Targets: []forward.Target{target}})
	if err != nil {
		t.Fatal(err)
	}
	soft, cancelSoft := context.WithCancel(t.Context())
	hard, cancelHard := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(soft, hard) }()
	b.put("A", inbox.Yes)
	f.Wake()
	<-stuck
	cancelSoft()
	cancelHard()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	entries, _, err := b.ClaimEntries(t.Context(), f.Sinks()[0].ID, 1, time.Now())
	if err != nil || len(entries) != 1 || entries[0].Attempt != 2 || entries[0].Failures != 0 {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestTheSameTargetTwice(t *testing.T) {
	b := newBox(t)
	one, err := forward.ParseTarget("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forward.Open(t.Context(), forward.Options{Outbox: b, Inbox: b, Targets: []forward.Target{one, one}}); err == nil {
		t.Error("taken")
	}
}

// TestForgottenTarget holds that a listener goes on for its other targets when one of them is
// forgotten in another terminal.
func TestForgottenTarget(t *testing.T) {
	b, gone, stays := newBox(t), newApp(t), newApp(t)
	problems := make(chan string, 8)
	f := b.forward(forward.Options{OnStoreError: func(what string, err error) { problems <- what + ": " + err.Error() }}, gone.URL, stays.URL)
	first := b.put("N1", inbox.Yes)
	f.Wake()
	until(t, "the first delivery at both", func() bool { return len(gone.received()) == 1 && len(stays.received()) == 1 })
	if err := b.ForgetSink(t.Context(), f.Sinks()[0].ID); err != nil {
		t.Fatal(err)
	}
	second := b.put("N2", inbox.Yes)
	f.Wake()
	until(t, "the second delivery", func() bool { return len(stays.received()) == 2 })
	if got, want := <-problems, "nothing more is forwarded to "+gone.URL+": the target was forgotten"; got != want {
		t.Errorf("told %q; want %q", got, want)
	}
	f.stop()
	if got := gone.received(); !slices.Equal(got, []string{first}) {
		t.Errorf("forgotten target got %q", got)
	}
	if got := stays.received(); !slices.Equal(got, []string{first, second}) || len(problems) > 0 {
		t.Errorf("other target got %q; %d more problems", got, len(problems))
	}
}
