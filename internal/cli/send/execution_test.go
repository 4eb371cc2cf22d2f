package send

import (
	"context"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
)

type oneRun struct {
	ledger.History
	run ledger.RunSummary
}

func (h oneRun) Run(context.Context, int64) (ledger.RunSummary, error) { return h.run, nil }

// Of a run that is continued, rows that were recorded before are neither sent nor queried,
// nor part of the progress.
func TestRemainingRows(t *testing.T) {
	counts := ledger.Counts{Accepted: 100, Rejected: 20, Pending: 7, Sending: 3, Unknown: 5}
	store := &app.Store{History: oneRun{run: ledger.RunSummary{Counts: counts, Superseded: 1, Dismissed: 2}}}
	for name, tt := range map[string]struct {
		policy           bulk.Policy
		named            int64
		send, ask, apart int64
	}{
		"resume":        {bulk.Policy{Unknown: bulk.Reconcile}, 0, 7, 5, 123},
		"keep":          {bulk.Policy{Unknown: bulk.Keep}, 0, 7, 0, 123},
		"resend":        {bulk.Policy{Unknown: bulk.Resend}, 0, 12, 0, 123},
		"retry":         {bulk.Policy{Unknown: bulk.Reconcile, RetryRejected: true}, 0, 24, 5, 106},
		"retry one row": {bulk.Policy{Unknown: bulk.Reconcile, RetryRejected: true, RetryRow: "A"}, 2, 9, 5, 121},
		"retry absent":  {bulk.Policy{Unknown: bulk.Reconcile, RetryAbsent: true}, 0, 7, 105, 123},
	} {
		k := Execution{Store: store, Policy: tt.policy, NamedRejected: tt.named}
		send, ask, err := k.remaining(t.Context())
		if err != nil || send != tt.send || ask != tt.ask || k.apart != tt.apart {
			t.Errorf("%s: %d to send, %d to ask for, %d apart, %v; want %d, %d, %d", name, send, ask, k.apart, err, tt.send, tt.ask, tt.apart)
		}
	}
}
