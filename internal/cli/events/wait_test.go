package events

import (
	"io"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/term"
)

func TestWaitCountsAnEventOnce(t *testing.T) {
	streams := term.New(strings.NewReader(""), io.Discard, io.Discard, term.Facts{})
	filter, err := forward.ParseFilter("event=x")
	if err != nil {
		t.Fatal(err)
	}
	event := func(key, kind string, v inbox.Verified) inbox.Event {
		return inbox.Event{Key: []byte(key), Kind: kind, Verified: v}
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
		w := &eventWait{filter: filter, unverified: tt.unverified, counted: map[string]bool{}, progress: command.NewProgress(streams, "waiting", "events", 9)}
		counted := 0
		for _, e := range tt.events {
			if w.counts(e) {
				counted++
			}
		}
		w.progress.Stop()
		if counted != tt.counted || len(w.counted) != tt.counted || w.unverifiedSeen != tt.passed {
			t.Errorf("unverified %v: %d times counted, %d events, passed over %d; want %d and %d", tt.unverified, counted, len(w.counted), w.unverifiedSeen, tt.counted, tt.passed)
		}
	}
}
