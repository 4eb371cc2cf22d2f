package events

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/shell"
)

func newReadmit(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "readmit [ID...]",
		Short: "Verify refused deliveries again, and store those that pass",
		Long: `readmit verifies refused deliveries again, with the current scheme and secrets and as
of the time they were received: all of them, or those with an ID such as refused:3.
Those that verify are stored as if they had been accepted then, with a new number;
refused:3 still finds them. The others stay refused.

Use it if a secret was changed too late. The service got a 401 and may have sent the
deliveries again since; each event still counts once.`,
		Example: command.Example("waybill events readmit", "waybill events readmit refused:3"),
		RunE:    f.RunE(runReadmit),
	}
}

type readmittedJSON struct {
	Readmitted int64 `json:"readmitted"` // deliveries
	Events     int64 `json:"events"`     // of them that were new
	Refused    int64 `json:"refused"`    // deliveries that still do not verify
	Dropped    int64 `json:"dropped"`    // refused deliveries that were not kept, since there were too many

	Deliveries []readmissionJSON `json:"deliveries"` // those that were readmitted
}

type readmissionJSON struct {
	Refused string `json:"refused"`
	ID      string `json:"id"`
}

func runReadmit(ctx context.Context, c *command.Call, ids []string) error {
	verifier, err := c.Verifier()
	if err != nil {
		return err
	}
	if verifier == nil {
		return c.Config.Refuse("webhook.scheme", "no scheme is set to verify with",
			"set webhook.scheme; `waybill events readmit` then verifies refused deliveries")
	}
	db, err := c.ExistingStore(ctx) // nil only if nothing was refused
	if err != nil {
		return err
	}
	counts, err := db.Received().Counts(ctx)
	if err != nil {
		return err
	}
	j := readmittedJSON{Deliveries: []readmissionJSON{}, Dropped: counts.RefusedDropped}
	for d, err := range refusedDeliveries(ctx, db.Received(), ids) {
		if err != nil {
			return err
		}
		placed, err := replay.Readmit(ctx, db.Verdicts, c.Config.Webhook.Scheme, verifier, d.Delivery)
		if err != nil {
			return err
		}
		if placed == nil {
			j.Refused++
			continue
		}
		j.Readmitted++
		j.Events += placed.CountCurrent()
		j.Deliveries = append(j.Deliveries, readmissionJSON{d.ID(), strconv.FormatInt(placed.Delivery, 10)})
		c.IO.Detail("%s is delivery %d now", d.ID(), placed.Delivery)
	}
	if j.Readmitted == 0 && j.Refused > 0 {
		err = errors.New("none of the refused deliveries verifies")
		err = &command.ExitError{Code: command.Unverified, Err: err, Hint: "check webhook.secrets and webhook.scheme"}
	}
	dropped := ""
	if j.Dropped > 0 {
		dropped = "; not kept, as there were too many: " + command.Plural(j.Dropped, "refused delivery")
	}
	return errors.Join(err, c.Out.Result(j, "Readmitted %s with %s; still refused: %s%s",
		command.Plural(j.Readmitted, "delivery"), command.Plural(j.Events, "new event"), command.Number(j.Refused), dropped))
}

// refusedDeliveries yields the refused deliveries with those IDs, all without IDs. An error ends it.
func refusedDeliveries(ctx context.Context, in replay.Inbox, ids []string) iter.Seq2[replay.Delivery, error] {
	return func(yield func(replay.Delivery, error) bool) {
		for _, id := range ids {
			d, err := replay.Find(ctx, in, id)
			if err == nil && !d.Refused {
				err = command.Usagef("`waybill events show "+shell.Word(id)+"` shows it",
					"delivery %s was not refused: nothing to readmit", d.ID())
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
		if len(ids) > 0 {
			return
		}
		for d, err := range in.Refused(ctx, 0) {
			if !yield(replay.Delivery{Delivery: d, Refused: true}, err) || err != nil {
				return
			}
		}
	}
}
