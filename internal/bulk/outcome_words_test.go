package bulk_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
)

// What a run stopped on is said once.
func TestStopErrorSaysItsReasonOnce(t *testing.T) {
	err := &bulk.StopError{Why: "stopped: unexpected response", Err: &api.AnswerError{Status: 200, Problem: "no JSON"}}
	if got, want := err.Error(), "stopped: unexpected response: status 200, no JSON"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
