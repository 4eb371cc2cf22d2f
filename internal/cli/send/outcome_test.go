package send

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestRowsCode(t *testing.T) {
	tests := []struct {
		res  Result
		want command.Code
		gate []string
	}{
		{Result{New: 2, Accepted: 2}, command.OK, nil},
		{Result{New: 2, Rejected: 2}, command.Refused, nil},
		{Result{New: 1, Already: 1, Accepted: 1, Rejected: 1}, command.Partial, nil},
		{Result{New: 2, Accepted: 2, Invalid: 1}, command.Partial, nil},
		{Result{New: 2, Accepted: 1, Pending: 1}, command.Pending, nil},
		{Result{New: 3, Unknown: 1, Rejected: 1, Pending: 1}, command.Unknown, nil},
		{Result{New: 3, Unknown: 1}, command.Unknown, []string{"unknown>2"}},
		{Result{New: 2, Accepted: 1, Rejected: 1}, command.OK, []string{"rejected>1"}},
		{Result{New: 2, Accepted: 1, Rejected: 1}, command.Partial, []string{"invalid>1"}},
	}
	for _, tt := range tests {
		gate, err := ParseGate(tt.gate)
		if got := rowsCode(tt.res, gate); got != tt.want || err != nil {
			t.Errorf("rowsCode(%+v) with %q = %d, %v; want %d", tt.res, tt.gate, got, err, tt.want)
		}
	}
}

// A resume that did all it can of a run whose input was not staged to its end does
// not name itself as what goes on.
func TestPartialRunNeedsItsInput(t *testing.T) {
	c, _, _ := clitest.Call(t)
	for want, k := range map[string]*Execution{
		"":                     {Call: c, Repeat: "waybill runs resume 1"},
		"waybill create o.csv": {Call: c, Repeat: "waybill create o.csv", Feed: &bulk.Feed{}},
	} {
		var e *command.ExitError
		if err := k.exitError(Result{Run: "1", Accepted: 3, Partial: true}, "", nil); !errors.As(err, &e) || e.Code != command.Partial || e.Next != want {
			t.Errorf("%+v; want %q next", e, want)
		}
	}
}

// A run that stops before a row is unknown speaks of none.
func TestStopHintSpeaksOfUnknownRows(t *testing.T) {
	c, _, _ := clitest.Call(t)
	k := &Execution{Call: c, Repeat: "waybill create o.csv"}
	for _, unknown := range []int64{0, 2} {
		var e *command.ExitError
		err := k.exitError(Result{Run: "1", Accepted: 1, Pending: 2, Unknown: unknown}, "", &bulk.StopError{Cause: tracking.OutcomeUnknown, Why: "stopped"})
		if !errors.As(err, &e) || strings.Contains(e.Hint, "unknown rows") != (unknown > 0) {
			t.Errorf("%d unknown: %+v", unknown, e)
		}
	}
}

// A store that fails while a report is made is the error, not left out of it.
func TestFailedLookUpsAreReturned(t *testing.T) {
	home := t.TempDir()
	a := &app.App{
		IO:      term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}),
		Sources: func([]config.Flag) config.Sources { return config.Sources{WorkDir: home, Home: home} },
	}
	s, err := a.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := s.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	k := &Execution{Call: &command.Call{Session: s, Cmd: &cobra.Command{}}, Store: db, Run: ledger.Run{ID: 1}}
	for _, res := range []Result{{New: 2, Rejected: 1}, {New: 2, Unknown: 1}} {
		var own *command.ExitError
		if err := k.outcome(t.Context(), res, nil); !errors.As(err, &own) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%v; want what became of the rows, and that the reason could not be looked up", err)
		}
	}
}

// The time that rows took to send is without the wait for their processing.
func TestCountsShowTheTimeOfSending(t *testing.T) {
	var buf bytes.Buffer
	io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: true, Env: map[string]string{"NO_COLOR": "1"}})
	res := Result{Run: "1", Read: 2, Accepted: 2, Sent: 2, Batches: 1, ElapsedSeconds: 13, sending: 1200 * time.Millisecond}
	if err := printCounts((&command.Output{}).On(io.Out), res); err != nil {
		t.Fatal(err)
	}
	if want := "2 rows sent in 1 request, 1.2 s\n"; !strings.HasSuffix(buf.String(), want) {
		t.Errorf("%q; want %q at the end", buf.String(), want)
	}
}
