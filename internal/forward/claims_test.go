package forward_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// What another process sent is answered too, by what the store says of it once the target,
// however slow, has answered or has not.
func TestAnswersForWhatAnotherProcessSent(t *testing.T) {
	t.Parallel()
	b, a := newBox(t), newApp(t)
	a.answers(func(body, _ string) int {
		<-time.After(200 * time.Millisecond) // the store is asked meanwhile
		switch {
		case strings.Contains(body, `"no"`):
			return 418
		case strings.Contains(body, `"cut"`):
			panic(http.ErrAbortHandler)
		}
		return 201
	})
	other, err := sqlite.Open(t.Context(), b.Place(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	target, err := forward.ParseTarget("number=*=>" + a.URL)
	if err != nil {
		t.Fatal(err)
	}
	// This one is asked, and does not run.
	asked, err := forward.Open(t.Context(), forward.Options{Outbox: b, Inbox: b, Targets: []forward.Target{target}, Answers: true})
	if err != nil {
		t.Fatal(err)
	}
	r := (&box{T: t, DB: other}).forward(forward.Options{}, "number=*=>"+a.URL)
	defer r.stop()
	for number, want := range map[string]int{"no": 418, "cut": 502, "": 200} {
		b.put(number, inbox.Yes)
		r.Wake()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if got := asked.Answer(ctx, int64(b.n)); got != want {
			t.Errorf("%q: %d; want %d", number, got, want)
		}
		cancel()
	}
}

// However long the target asked to be left alone, what is not for it is answered.
func TestAnswersForOthersWhileTheTargetPauses(t *testing.T) {
	t.Parallel()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	b := newBox(t)
	r := b.forward(forward.Options{Answers: true}, "number=t*=>"+busy.URL)
	for number, want := range map[string]int{"t": 503, "other": 200, "another": 200} {
		b.put(number, inbox.Yes)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if got := r.Answer(ctx, int64(b.n)); got != want {
			t.Errorf("%s: %d; want %d", number, got, want)
		}
		cancel()
	}
}

// A sender that tries again gets no 200 before the target took what it sent first.
func TestAnswersForARepeatAreThoseOfTheFirst(t *testing.T) {
	t.Parallel()
	b, a := newBox(t), newApp(t)
	var takes atomic.Bool
	a.answers(func(string, string) int {
		if takes.Load() {
			return 204
		}
		return 500
	})
	r := b.forward(forward.Options{Answers: true}, a.URL)
	defer r.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range 2 {
		if got := r.Answer(ctx, b.store(`[{"eventId":"1"},{"event":"no ID"}]`, inbox.Yes)); got != 500 {
			t.Errorf("%d before the target took it; want 500", got)
		}
	}
	if got := r.Answer(ctx, b.store(`[{"event":"no ID"}]`, inbox.Yes)); got != 500 {
		t.Errorf("%d to a part of it; want 500", got)
	}
	takes.Store(true)
	for r.Answer(ctx, b.store(`[{"eventId":"1"},{"event":"no ID"}]`, inbox.Yes)) != 200 {
		if ctx.Err() != nil {
			t.Fatal("never 200")
		}
	}
	if got := r.Answer(ctx, b.store(`[{"eventId":"2"}]`, inbox.Yes)); got != 204 {
		t.Errorf("%d to another; want 204", got)
	}
}

// Whatever the body of a delivery that verified, the target gets it unless it repeats another one, and its
// sender no 2xx before. One that did not verify is not forwarded, and its sender is to keep it.
func TestEveryVerifiedBodyIsForwarded(t *testing.T) {
	t.Parallel()
	b, a := newBox(t), newApp(t)
	a.answers(func(string, string) int { return 418 })
	r := b.forward(forward.Options{Answers: true}, a.URL)
	defer r.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	for _, body := range []string{
		"", "{", "[]", "7", "[7]", `["a",null]`, "<xml/>", "[" + deep + "]", "[" + strings.Repeat("0,", 20_000) + "0]",
		`[{"eventId":"1"}]`, `[{"eventId":"1","other":true}]`, `[{"eventId":"1"},7]`,
	} {
		if got := r.Answer(ctx, b.store(body, inbox.Yes)); got != 418 {
			t.Errorf("%.40q: %d; want the target's 418", body, got)
		}
		if got := r.Answer(ctx, b.store(body, inbox.Unsigned)); got != 418 {
			t.Errorf("%.40q, unsigned: %d; want the target's 418", body, got)
		}
		if got := r.Answer(ctx, b.store(body, inbox.No)); got != 503 {
			t.Errorf("%.40q, not verified: %d; want 503", body, got)
		}
	}
}

// claims are lost for a while: the store can't be reached.
type claims struct {
	mu    sync.Mutex
	lost  bool
	asked int
}

func (c *claims) Held(owner string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.lost || owner == "" {
		return &store.Error{Kind: store.ErrCutOff, Path: "postgres://db.test/waybill", Op: "write"}
	}
	return nil
}

func (c *claims) set(lost bool) (asked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = lost
	return c.asked
}

// What another listener may have taken over is not sent. It costs no try, and goes on by itself.
func TestSendsNothingThatIsNotHeld(t *testing.T) {
	b, a := newBox(t), newApp(t)
	held := &claims{lost: true}
	var mu sync.Mutex
	var told []string
	r := b.forward(forward.Options{Claims: held, OnStoreError: func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%s: %v", what, err))
	}}, a.URL)
	body := b.put("N1", inbox.Yes)
	r.Wake()
	until(t, "two tries", func() bool { return held.set(true) >= 2 })
	if got := a.received(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	held.set(false)
	until(t, "the delivery", func() bool { return slices.Equal(a.received(), []string{body}) })
	r.stop()
	if len(r.told()) != 1 || r.told()[0].Disposition != inbox.Sent {
		t.Errorf("told %+v", r.told())
	}
	if want := "delivery 1 left to another listener: write postgres://db.test/waybill: " + store.ErrCutOff.Error(); !slices.Equal(told, []string{want}) {
		t.Errorf("told %q", told)
	}
}

// Three on one store send everything in the order of each number, also when one of them
// dies between two steps of an entry: then some come twice.
func TestThreeKeepTheOrderWhenOneDies(t *testing.T) {
	b, a := newBox(t), newApp(t)
	third, dies := make(chan struct{}), make(chan struct{})
	n := 0
	a.answers(func(string, string) int {
		if n++; n == 20 {
			close(third)
			<-dies
		}
		return 200
	})
	all := []*running{b.forward(forward.Options{Claims: b}, a.URL)}
	var stores []*store.DB
	for range 2 {
		db, err := sqlite.Open(t.Context(), b.Place(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, db)
		all = append(all, (&box{T: t, DB: db}).forward(forward.Options{Claims: db}, a.URL))
	}
	all[2].dies = true
	want := map[string][]string{}
	for i := range 60 {
		number := fmt.Sprint("N", i%5)
		want[number] = append(want[number], b.put(number, inbox.Yes))
		for _, r := range all {
			r.WakeAll()
		}
	}
	<-third // requests are under way
	if err := stores[1].Close(); err != nil {
		t.Fatal(err)
	}
	close(dies)
	until(t, "all", func() bool {
		sinks, err := all[0].CurrentSinks(t.Context())
		return err == nil && sinks[0].Waiting+sinks[0].Unread == 0
	})
	for _, r := range all {
		r.stop()
	}
	if err := stores[0].Close(); err != nil {
		t.Error(err)
	}
	got := map[string][]string{}
	for _, body := range a.received() {
		for number := range want {
			if strings.Contains(body, `"`+number+`"`) && !slices.Contains(got[number], body) {
				got[number] = append(got[number], body)
			}
		}
	}
	for number := range want {
		if !slices.Equal(got[number], want[number]) {
			t.Errorf("%s: %q; want %q", number, got[number], want[number])
		}
	}
}
