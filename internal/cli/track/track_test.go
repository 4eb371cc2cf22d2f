package track

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestConditions(t *testing.T) {
	found := func(phase ledger.Phase, t tracking.Tracking) query.Tracking {
		return query.Tracking{Tracking: t, Phase: phase}
	}
	done := found(ledger.Processed, tracking.Tracking{Report: tracking.Report{
		Status:      "1",
		StatusLabel: "DELIVERED", StatusTrack: "delivered",
	}})
	moving := found(ledger.Processed, tracking.Tracking{Report: tracking.Report{Status: "7", StatusLabel: "MOVING"}})
	tests := []struct {
		condition string
		found     []query.Tracking
		want      bool
	}{
		{"processed", []query.Tracking{done}, true},
		{"processed", []query.Tracking{done, found(ledger.Processing, tracking.Tracking{})}, false},
		{"processed", nil, false},
		{"status=1", []query.Tracking{done}, true},
		{"status=Delivered", []query.Tracking{done}, true},
		{"status=DELIVERED", []query.Tracking{done, moving}, false},
		{"status=7", []query.Tracking{moving}, true},
		{"event=x", []query.Tracking{done}, true}, // as far as a result shows
		{"change", []query.Tracking{done}, true},
	}
	for _, tt := range tests {
		c, err := parseCondition(nil, "--for", tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Met(query.Result{Trackings: tt.found}); got != tt.want {
			t.Errorf("%s met by %+v: %v; want %v", tt.condition, tt.found, got, tt.want)
		}
	}
	for _, s := range []string{"", "status=", "delivered", "event=", "changes"} {
		if _, err := parseCondition(nil, "--for", s); err == nil {
			t.Errorf("--for %q was taken", s)
		}
	}
}

// Shares of transit times are of the trackings that have one.
func TestSharesOfTransitTimes(t *testing.T) {
	groups := []ledger.Group{
		{StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "1", Trackings: 3}, TransitDays: 2},
		{StatusCount: ledger.StatusCount{Phase: ledger.Processed, Status: "7", Trackings: 9}, TransitDays: ledger.UnknownTransit},
	}
	want := map[string]int64{"status": 12, "transit time": 3}
	all := newSums(nil)
	all.add(groups, time.Now())
	for _, s := range all.sections() {
		if s.of != want[s.title] {
			t.Errorf("shares of %s are of %d trackings; want %d", s.title, s.of, want[s.title])
		}
	}
}

// What the service does not have is one row among several REFs, and not found if
// it is the only one.
func TestShowOfUnknownTrackings(t *testing.T) {
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(box)
	t.Cleanup(func() {
		srv.Close()
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, refs := range [][]string{{"A"}, {"A", "B"}} {
		c, stdout, _ := clitest.Call(t, "WAYBILL_BASE_URL="+srv.URL, "WAYBILL_API_KEY=any")
		err := runShow(t.Context(), c, showOptions{refOptions: refOptions{Refs: refs, By: "refer-id"}})
		if code, _ := command.CodeAndHint(err); code != command.NotFound {
			t.Errorf("%v: status %d, %v; want %d", refs, code, err, command.NotFound)
		}
		want := `^$` // the error says it
		if len(refs) > 1 {
			want = `^REFERENCE\t.*\nA\t+not found\t.*\nB\t+not found\t.*\n$`
		}
		if !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("%v: printed %q; want %s", refs, stdout, want)
		}
	}
}

// Of answers that are older than events the first three are named, and more are counted.
func TestNotesOnOlderAnswers(t *testing.T) {
	for answers, want := range map[int]string{3: "", 4: "4 answers in all"} {
		c, _, stderr := clitest.Call(t)
		p, err := newPrinter(c, printer{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range answers {
			p.note(query.Result{Trackings: []query.Tracking{{Older: &tracking.Tracking{}}, {Tracking: tracking.Tracking{Number: fmt.Sprint("N", n)}}}})
		}
		if err := p.end(nil); err != nil {
			t.Fatal(err)
		}
		if got := stderr.String(); strings.Count(got, "The service's answer about") != 3 || strings.Contains(got, "in all") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%d: %s; want three notes and %q", answers, got, want)
		}
	}
}

func TestListOfNothingSaysWhatToDo(t *testing.T) {
	c, stdout, stderr := clitest.Call(t, "WAYBILL_BASE_URL=https://shop.example")
	if err := runList(t.Context(), c, listOptions{}); err != nil {
		t.Fatal(err)
	}
	if stdout.Len() != 0 || !strings.Contains(stderr.String(), "waybill create FILE") {
		t.Errorf("stdout %q, stderr %q; want a note that says what to do", stdout, stderr)
	}
	if err := runList(t.Context(), c, listOptions{filterOptions: filterOptions{Updated: "tomorrow"}}); !command.As[*command.UsageError](err) {
		t.Errorf("--updated tomorrow: %v", err)
	}
}
