package create

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
)

// awayStager is a ledger that can't be reached for a while.
type awayStager struct {
	ledger.Stager
	back time.Time
}

var errAway = &store.Error{Kind: store.ErrTimedOut, Op: "lock", Path: "STORE"}

func (s awayStager) Stage(ctx context.Context, _ ledger.Plan) (ledger.Staging, error) {
	select {
	case <-time.After(time.Until(s.back)):
		return nil, nil
	case <-ctx.Done():
		return nil, errAway
	}
}

// A ledger that is away when a longer wait would be announced is waited for, like another
// process.
func TestStagingWaitsForALedgerThatIsAway(t *testing.T) {
	for away, want := range map[time.Duration]error{3 * time.Second: nil, time.Hour: errAway} {
		synctest.Test(t, func(t *testing.T) {
			var errs strings.Builder
			p := waitingStager{awayStager{back: time.Now().Add(away)}, &app.Session{IO: term.New(nil, io.Discard, &errs, term.Facts{})}}
			if _, err := p.Stage(t.Context(), ledger.Plan{}); !errors.Is(err, want) {
				t.Errorf("away for %s: %v; want %v", away, err, want)
			}
			if got := errs.String(); got != "Waiting up to 10m: lock STORE: server took too long\n" {
				t.Errorf("said %q", got)
			}
		})
	}
}
