package events

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
)

func newReadmit(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "readmit",
		Short: "Verify refused deliveries again, and take those that pass",
		Long: `readmit verifies the deliveries that listen refused once more, with the scheme
and the secrets of now and at the time at which each came. Those that verify are
stored as if they had been taken then; the others stay refused. It is for a
secret that was changed too late. The service was told that they were refused,
and may have sent them again meanwhile: each event counts once all the same.`,
		Example: command.Example("waybill events readmit"),
		Args:    cobra.NoArgs,
		RunE:    f.RunE(runReadmit),
	}
}

// readmittedJSON is the result of a readmit.
type readmittedJSON struct {
	Readmitted int64 `json:"readmitted"` // deliveries
	Events     int64 `json:"events"`     // of them that were new
	Refused    int64 `json:"refused"`    // deliveries that still do not verify
}

// errNoneVerifies says that readmit found nothing to take.
var errNoneVerifies = errors.New("none of the refused deliveries verifies")

func runReadmit(ctx context.Context, c *command.Call, _ []string) error {
	verifier, err := c.Verifier()
	if err != nil {
		return err
	}
	if verifier == nil {
		return c.Config.Refuse("webhook.scheme", "no scheme is set to verify with", "set webhook.scheme; `waybill events readmit` then verifies what was refused")
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var j readmittedJSON
	if db != nil {
		err = command.Each(db.Inbox.Refused(ctx, 0), func(d inbox.Delivery) error {
			placed, err := replay.Readmit(ctx, db.Verdicts, c.Config.Webhook.Scheme, verifier, d)
			if err != nil || placed == nil {
				j.Refused++
				return err
			}
			j.Readmitted++
			j.Events += placed.CountCurrent()
			return nil
		})
	}
	if err != nil {
		return err
	}
	if j.Readmitted == 0 && j.Refused > 0 {
		err = &command.ExitError{Code: command.Unverified, Err: errNoneVerifies, Hint: "check webhook.secrets and webhook.scheme"}
	}
	return errors.Join(err, c.Out.Result(j, "readmitted %s with %s; still refused: %d", command.Plural(j.Readmitted, "delivery"), command.Plural(j.Events, "new event"), j.Refused))
}
