package forward_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// Whatever the body of a delivery that counts, the target gets it unless it repeats another one. One that did not
// verify is not forwarded.
func TestEveryVerifiedBodyIsForwarded(t *testing.T) {
	t.Parallel()
	b, a := newBox(t), newApp(t)
	r := b.forward(forward.Options{}, a.URL)
	defer r.stop()
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	var want []string
	for _, body := range []string{
		"", "{", "[]", "7", "[7]", `["a",null]`, "<xml/>", "[" + deep + "]", "[" + strings.Repeat("0,", 20_000) + "0]",
		`[{"eventId":"1"}]`, `[{"eventId":"1","other":true}]`, `[{"eventId":"1"},7]`,
	} {
		b.store(body, inbox.Yes)
		want = append(want, body)
		if !strings.Contains(body, "eventId") { // a repeat has an event that is known
			b.store(body, inbox.Unsigned)
			want = append(want, body)
		}
		b.store(body, inbox.No)
	}
	want = append(want, b.put("last", inbox.Yes))
	r.Wake()
	until(t, "the last", func() bool { return len(a.received()) >= len(want) })
	r.stop()
	got := a.received()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d bodies, want %d: %.60q", len(got), len(want), got)
	}
}

// claims are lost for a while: the store can't be reached.
type claims struct {
	mu    sync.Mutex
	lost  bool
	asked int
}

func (c *claims) CheckOwner(owner string) error {
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
func TestSendsNothingThatIsNotClaimed(t *testing.T) {
	b, a := newBox(t), newApp(t)
	lost := &claims{lost: true}
	var mu sync.Mutex
	var told []string
	r := b.forward(forward.Options{Claims: lost, OnStoreError: func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf("%s: %v", what, err))
	}}, a.URL)
	body := b.put("N1", inbox.Yes)
	r.Wake()
	until(t, "two tries", func() bool { return lost.set(true) >= 2 })
	if got := a.received(); len(got) != 0 {
		t.Errorf("sent: %q", got)
	}
	lost.set(false)
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
