package forward_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// What another process sent is answered too, by what the store says of it.
func TestAnswersForWhatAnotherProcessSent(t *testing.T) {
	t.Parallel()
	b, a := newBox(t), newApp(t)
	a.answers(func(body, _ string) int {
		if strings.Contains(body, `"no"`) {
			return 418
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
	for number, want := range map[string]int{"no": 418, "": 200} {
		b.put(number, inbox.Yes)
		r.Wake()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if got := asked.Answer(ctx, int64(b.n)); got != want {
			t.Errorf("%q: %d; want %d", number, got, want)
		}
		cancel()
	}
}

// However long the target asked to be left alone, what is not for it is
// answered.
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
