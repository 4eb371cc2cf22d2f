package tracking_test

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestOutcomeOf(t *testing.T) {
	for status, want := range map[int]tracking.Outcome{
		0: tracking.OutcomeUnknown, 100: tracking.OutcomeUnknown, 200: tracking.OutcomeAccepted, 299: tracking.OutcomeAccepted,
		301: tracking.OutcomeNotCredible, 400: tracking.OutcomeRows, 404: tracking.OutcomeRefused, 408: tracking.OutcomeUnknown,
		500: tracking.OutcomeUnknown, 503: tracking.OutcomeOverloaded, 699: tracking.OutcomeUnknown,
	} {
		if got := tracking.OutcomeOf(status); got != want {
			t.Errorf("%d: %v; want %v", status, got, want)
		}
	}
}

// A run that stops says why.
func TestMeaningsAreWhole(t *testing.T) {
	for o := tracking.OutcomeUnknown; o <= tracking.OutcomeNotCredible; o++ {
		if m := o.Meaning(); m.Name == "" || m.Exit == "" || (m.Stop == tracking.StopNever) != (m.Why == "") {
			t.Errorf("%d: %+v", o, m)
		}
	}
}
