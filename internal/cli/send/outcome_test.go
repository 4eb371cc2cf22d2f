package send

import (
	"errors"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestRowsCode(t *testing.T) {
	tests := []struct {
		res  Result
		want command.Code
	}{
		{Result{New: 2, Accepted: 2}, command.OK},
		{Result{New: 2, Rejected: 2}, command.Refused},
		{Result{New: 1, Already: 1, Accepted: 1, Rejected: 1}, command.Partial},
		{Result{New: 2, Accepted: 2, Invalid: 1}, command.Partial},
		{Result{New: 2, Accepted: 1, Pending: 1}, command.Pending},
		{Result{New: 3, Unknown: 1, Rejected: 1, Pending: 1}, command.Unknown},
	}
	for _, tt := range tests {
		if got := rowsCode(tt.res); got != tt.want {
			t.Errorf("rowsCode(%+v) = %d; want %d", tt.res, got, tt.want)
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
