package events

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestWaitCountsAnEventOnce(t *testing.T) {
	streams := term.New(strings.NewReader(""), io.Discard, io.Discard, term.Facts{})
	filter, err := forward.ParseFilter("event=x")
	if err != nil {
		t.Fatal(err)
	}
	event := func(key, kind string, v inbox.Verified) inbox.Event {
		return inbox.Event{Key: []byte(key), Event: webhook.Event{Kind: kind}, Verified: v}
	}
	for _, tt := range []struct {
		unverified bool
		events     []inbox.Event
		counted    int
		passed     int64
	}{
		{false, []inbox.Event{event("a", "x", inbox.No), event("a", "x", inbox.Yes), event("b", "y", inbox.Yes), event("c", "x", inbox.Unknown)}, 1, 2},
		{true, []inbox.Event{event("a", "x", inbox.No), event("a", "x", inbox.Yes), event("b", "y", inbox.No), event("c", "x", inbox.Unknown)}, 2, 0},
	} {
		w := &eventWait{filter: filter, waitOptions: waitOptions{Unverified: tt.unverified}, counted: map[string]bool{}, progress: command.NewProgress(streams, "waiting", "events", 9)}
		counted := 0
		for _, e := range tt.events {
			if w.counts(e) {
				counted++
			}
		}
		w.progress.Stop()
		if counted != tt.counted || len(w.counted) != tt.counted || w.ignored != tt.passed {
			t.Errorf("unverified %v: %d times counted, %d events, passed over %d; want %d and %d", tt.unverified, counted, len(w.counted), w.ignored, tt.counted, tt.passed)
		}
	}
}

// TestWaitCountsWhatIsReceivedWhileItOpensTheStore: a listener that makes the
// store holds its lock, and may receive events before wait can read it.
func TestWaitCountsWhatIsReceivedWhileItOpensTheStore(t *testing.T) {
	c, _, _ := clitest.Call(t, "WAYBILL_ACCOUNT=a")
	began := time.Now().Truncate(time.Millisecond)
	db, err := c.Session.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		id    string
		since time.Duration
	}{{"old", -time.Hour}, {"before", -time.Millisecond}, {"while", 0}} {
		d, rows := inbox.Decode(inbox.Delivery{ReceivedAt: began.Add(e.since), Verified: inbox.Yes, Body: []byte(`[{"eventId":"` + e.id + `","event":"x"}]`)})
		if _, err := db.Inbox.Put(t.Context(), d, rows); err != nil {
			t.Fatal(err)
		}
	}
	w := &eventWait{session: c.Session, began: began, waitOptions: waitOptions{Count: 1}, counted: map[string]bool{}, progress: command.NewProgress(c.IO, "waiting", "events", 1)}
	defer w.progress.Stop()
	if err := w.fromNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range w.events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.EventID)
	}
	if !slices.Equal(got, []string{"while"}) {
		t.Errorf("counted %q; want only what was received since the wait began", got)
	}
}
