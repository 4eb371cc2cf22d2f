package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestWorstFollowsThePrecedence(t *testing.T) {
	tests := []struct {
		codes []command.Code
		want  command.Code
	}{
		{nil, command.OK},
		{[]command.Code{command.OK, command.OK}, command.OK},
		{[]command.Code{command.Pending, command.Refused, command.Partial, command.Unreachable, command.Unknown, command.Auth, command.Interrupted, command.Store}, command.Store},
		{[]command.Code{command.Pending, command.Refused, command.Partial}, command.Partial},
		{[]command.Code{command.Unknown, command.Unreachable}, command.Unknown},
		{[]command.Code{command.Terminated, command.Auth}, command.Terminated},
		{[]command.Code{command.OK, command.NotFound}, command.NotFound},
	}
	for _, tt := range tests {
		if got := command.Worst(tt.codes...); got != tt.want {
			t.Errorf("worst(%v) = %d; want %d", tt.codes, got, tt.want)
		}
	}
}

// An input that can't be read is a disk problem, but no matter of room: neither
// a file nor what is copied of standard input.
func TestInputThatCannotBeRead(t *testing.T) {
	_, file := intake.Open("orders.csv", iotest.ErrReader(syscall.EIO), intake.Options{})
	_, stdin := input.Opener{MaxBytes: 1 << 20}.Spool(t.Context(), "-", iotest.ErrReader(syscall.EIO))
	for _, err := range []error{file, stdin} {
		code, hint := command.Explain(err)
		if code != command.Store || strings.Contains(hint, "make room") || !strings.Contains(hint, "that the input is on") {
			t.Errorf("explain(%v) = %d, %q", err, code, hint)
		}
	}
	if code, hint := command.Explain(&os.PathError{Op: "write", Path: "out.json", Err: syscall.ENOSPC}); code != command.Store || !strings.Contains(hint, "make room") {
		t.Errorf("a full disk: %d, %q", code, hint)
	}
}

func TestRowsCode(t *testing.T) {
	tests := []struct {
		res  send.Result
		want command.Code
	}{
		{send.Result{New: 2, Accepted: 2}, command.OK},
		{send.Result{New: 2, Rejected: 2}, command.Refused},
		{send.Result{New: 1, Already: 1, Accepted: 1, Rejected: 1}, command.Partial},
		{send.Result{New: 2, Accepted: 2, Invalid: 1}, command.Partial},
		{send.Result{New: 2, Accepted: 1, Pending: 1}, command.Pending},
		{send.Result{New: 3, Unknown: 1, Rejected: 1, Pending: 1}, command.Unknown},
	}
	for _, tt := range tests {
		if got := send.RowsCode(tt.res); got != tt.want {
			t.Errorf("rowsCode(%+v) = %d; want %d", tt.res, got, tt.want)
		}
	}
}

// Every outcome of a create names an exit status.
func TestOutcomesHaveCodes(t *testing.T) {
	for o := tracking.OutcomeUnknown; o <= tracking.OutcomeNotCredible; o++ {
		if word := o.Meaning().Exit; command.CodeOf(word) == command.Failed {
			t.Errorf("%v: no exit status %q", o, word)
		}
	}
}

func TestExplain(t *testing.T) {
	tests := []struct {
		err  error
		want command.Code
	}{
		{errors.New("boom"), command.Failed},
		{fmt.Errorf("A: %w", tracking.ErrAbsent), command.NotFound},
		{&api.StatusError{Status: 401}, command.Auth},
		{&api.StatusError{Status: 404}, command.Refused},
		{&api.StatusError{Status: 503}, command.Unreachable},
		{&api.ConnectError{Err: errors.New("refused")}, command.Unreachable},
		{tracking.ErrUndecided, command.Unknown},
		{ledger.ErrNoRun, command.NotFound},
		{&command.UsageError{Err: errors.New("x")}, command.Usage},
		{&track.WaitError{Cause: command.ErrTimeUp, All: 1}, command.Pending},
		{&track.WaitError{Cause: command.ErrTimeUp, All: 1, Also: &api.ConnectError{Err: errors.New("refused")}}, command.Unreachable},
		{&track.WaitError{Cause: &command.SignalError{}, All: 1, Also: &api.ConnectError{Err: errors.New("refused")}}, command.Interrupted},
		{&track.WaitError{Cause: command.ErrTimeUp, All: 1, Also: &api.StatusError{Status: 403}}, command.Auth},
		{&command.ExitError{Code: command.Unknown, Err: errors.New("x")}, command.Unknown},
		{errors.Join(term.ErrClosed, &command.ExitError{Code: command.Unknown, Err: errors.New("x")}), command.Unknown},
		{errors.Join(&command.ExitError{Code: command.Refused, Err: errors.New("x")}, &command.SignalError{}), command.Interrupted},
	}
	for _, tt := range tests {
		if got, _ := command.Explain(tt.err); got != tt.want {
			t.Errorf("explain(%v) = %d; want %d", tt.err, got, tt.want)
		}
	}
}

func TestConditions(t *testing.T) {
	found := func(phase ledger.Phase, t tracking.Tracking) query.Tracking {
		return query.Tracking{Tracking: t, Phase: phase}
	}
	done := found(ledger.Processed, tracking.Tracking{Status: "1", StatusLabel: "DELIVERED", StatusTrack: "delivered"})
	moving := found(ledger.Processed, tracking.Tracking{Status: "7", StatusLabel: "MOVING"})
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
		c, err := track.ParseCondition(tt.condition)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Met(query.Result{Trackings: tt.found}); got != tt.want {
			t.Errorf("%s met by %+v: %v; want %v", tt.condition, tt.found, got, tt.want)
		}
	}
	for _, s := range []string{"", "status=", "delivered", "event=", "changes"} {
		if _, err := track.ParseCondition(s); err == nil {
			t.Errorf("--for %q was taken", s)
		}
	}
}

func TestChanged(t *testing.T) {
	at := func(phase ledger.Phase, t tracking.Tracking) query.Tracking {
		return query.Tracking{Tracking: t, Phase: phase}
	}
	whole := at(ledger.Processed, tracking.Tracking{Status: "7", StatusLabel: "MOVING", StatusTrack: "moving", LatestEvent: "Left", LatestTime: "t"})
	for _, tt := range []struct {
		was, now query.Tracking
		want     bool
	}{
		{whole, whole, false},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "7", LatestEvent: "Left"}), false}, // less is told
		{at(ledger.Processed, tracking.Tracking{Status: "7"}), whole, false},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "1"}), true},
		{whole, at(ledger.Processed, tracking.Tracking{Status: "7", LatestEvent: "Arrived"}), true},
		{at(ledger.Processing, tracking.Tracking{}), whole, true},
		{at(query.Undecided, tracking.Tracking{}), whole, false},
		{whole, at(ledger.Absent, tracking.Tracking{}), true},
	} {
		if got := track.Changed(tt.was, tt.now); got != tt.want {
			t.Errorf("changed from %+v to %+v: %v; want %v", tt.was, tt.now, got, tt.want)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Now()
	for s, want := range map[string]time.Time{
		"2026-11-20T08:00:00Z": time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		"2026-11-20":           time.Date(2026, 11, 20, 0, 0, 0, 0, time.Local),
		"2h":                   now.Add(-2 * time.Hour),
		"7d":                   now.Add(-7 * 24 * time.Hour),
		"":                     {},
	} {
		got, err := command.ParseSince("--since", s)
		if err != nil || got.Sub(want).Abs() > time.Minute {
			t.Errorf("parseSince(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	if _, err := command.ParseSince("--since", "yesterday"); err == nil {
		t.Error("yesterday was taken")
	}
}

func TestWrapText(t *testing.T) {
	const text = "Words that are wider than the terminal is.\n\nExamples:\n  waybill create orders.csv --wait --and --more\n\nFlags:\n      --store FILE   FILE that keeps runs and trackings\n"
	const want = "Words that are wider than the terminal\nis.\n\nExamples:\n  waybill create orders.csv --wait --and --more\n\nFlags:\n      --store FILE   FILE that keeps\n          runs and trackings\n"
	if got := wrapText(text, 40); got != want {
		t.Errorf("at 40 columns:\n%s\nwant:\n%s", got, want)
	}
	if got := wrapText(text, 0); got != text {
		t.Errorf("without a terminal, what fits was changed:\n%s", got)
	}
	const page = "A paragraph whose second line\nis wider than the terminal, which is 40 wide,\nis filled anew.\n\nThis one\nis not.\n"
	const filled = "A paragraph whose second line is wider\nthan the terminal, which is 40 wide, is\nfilled anew.\n\nThis one\nis not.\n"
	if got := wrapText(page, 40); got != filled {
		t.Errorf("at 40 columns:\n%s\nwant:\n%s", got, filled)
	}
	if got := wrapText(text, 20); got != text {
		t.Errorf("at 20 columns it was changed:\n%s", got)
	}
}
