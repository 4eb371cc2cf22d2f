package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
)

func newPrune(f *command.Factory) *cobra.Command {
	var age string
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Drop the raw bytes of old deliveries",
		Long: `prune drops headers and bodies of deliveries that are older than AGE, and the
evidence of refusals. What was read from them stays: number, kind, status and
eventId, so that nothing is new a second time. What was pruned can't be
verified, shown whole or sent again, so what still waits to be forwarded stays
whole; what was given up is forgotten. The room is used for what comes next; the
file does not shrink.`,
		Example: command.Example("waybill events prune --older-than 30d"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			before, err := command.OlderThan(age)
			if err != nil {
				return err
			}
			return runPrune(ctx, c, before)
		}),
	}
	command.OlderThanFlag(cmd, &age)
	return cmd
}

// prunedJSON is what a prune came to.
type prunedJSON struct {
	Deliveries int64 `json:"deliveries"`
	Bytes      int64 `json:"bytes"`
	Refused    int64 `json:"refused"`
	Dead       int64 `json:"dead"`    // of deliveries that had been given up forwarding
	Waiting    int64 `json:"waiting"` // deliveries that were left whole, since they are not forwarded yet
}

func runPrune(ctx context.Context, c *command.Call, before time.Time) error {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var p inbox.Pruned
	if db != nil {
		p, err = db.Keeper.Prune(ctx, before)
	}
	if p.Deliveries == 0 && err != nil {
		return err
	}
	if p.Dead > 0 {
		c.IO.Note("of what had been given up forwarding, this can't be sent any more and is forgotten: %s", view.Deliveries(p.Dead))
	}
	if p.Waiting > 0 {
		c.IO.Note("left whole, since not forwarded yet: %s; `waybill listen` with the same --forward-to sends them, and --skip-backlog forgets them", view.Deliveries(p.Waiting))
	}
	if c.Out.Machine() {
		return errors.Join(err, c.Out.Object(prunedJSON(p)))
	}
	return errors.Join(err, c.Out.Line("dropped %d bytes of %d deliveries, and %d refused ones", p.Bytes, p.Deliveries, p.Refused))
}

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
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runReadmit(ctx, c)
		}),
	}
}

// readmittedJSON is what a readmit came to.
type readmittedJSON struct {
	Readmitted int64 `json:"readmitted"` // deliveries
	Events     int64 `json:"events"`     // of them that were new
	Refused    int64 `json:"refused"`    // deliveries that still do not verify
}

// errNoneVerifies says that readmit found nothing to take.
var errNoneVerifies = errors.New("none of the refused deliveries verifies")

func runReadmit(ctx context.Context, c *command.Call) error {
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
			placed, err := replay.Readmit(ctx, db.Keeper, c.Config.Webhook.Scheme, verifier, d)
			if err != nil || placed == nil {
				j.Refused++
				return err
			}
			j.Readmitted++
			j.Events += placed.Standing()
			return nil
		})
	}
	if err != nil {
		return err
	}
	if j.Readmitted == 0 && j.Refused > 0 {
		err = &command.ExitError{Code: command.Unverified, Err: errNoneVerifies, Hint: "check webhook.secrets and webhook.scheme"}
	}
	if c.Out.Machine() {
		return errors.Join(err, c.Out.Object(j))
	}
	return errors.Join(err, c.Out.Line("%s", fmt.Sprintf("readmitted %s with %s; still refused: %d", view.Deliveries(j.Readmitted), command.Plural(j.Events, "new event"), j.Refused)))
}
