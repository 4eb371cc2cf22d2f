package track

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
)

type listOptions struct {
	Status, Run, Since, Stale string
	Limit                     int
	Refresh                   bool
}

// NewList returns the command that lists what is known of trackings.
func NewList(f *command.Factory) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "list",
		GroupID: command.GroupOps,
		Short:   "List what is known of your trackings",
		Long: `list shows what this computer knows: every tracking created from here, its last
known status, and when and from where that was learnt: from the service's answers
or from verified events. It asks the service nothing, unless with --refresh.

Numbers that came with verified events and were not created here follow at the
end. Events that did not verify change nothing; they are pointed out beside.`,
		Example: command.Example("waybill list", "waybill list --status delivered", "waybill list --stale 48h -o json"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runList(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Status, "status", "", "only trackings with this status `X`: number, label or track")
	flags.StringVar(&o.Run, "run", "", "only trackings of run `ID`")
	flags.StringVar(&o.Since, "since", "", "only those heard of since a `TIME`: RFC 3339, a date, or an age such as 48h")
	flags.StringVar(&o.Stale, "stale", "", "only accepted ones not delivered and not heard of for an `AGE` such as 48h")
	flags.IntVar(&o.Limit, "limit", 0, "at most `N` (0 for all)")
	flags.BoolVar(&o.Refresh, "refresh", false, "ask the service about them first")
	command.SettingFlags(cmd, "concurrency", "rate")
	return cmd
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	filter := ledger.Filter{Status: o.Status, Limit: o.Limit}
	err := command.CheckLimit(o.Limit)
	if err != nil {
		return err
	}
	if filter.SeenSince, err = command.ParseSince("--since", o.Since); err != nil {
		return err
	}
	if filter.StaleSince, err = command.ParseSince("--stale", o.Stale); err != nil {
		return err
	}
	if o.Run != "" {
		_, run, err := command.OpenOwnRun(ctx, c.Session, o.Run)
		if err != nil {
			return err
		}
		filter.Run = run.ID
	}
	if !o.Refresh {
		return PrintList(ctx, c, filter)
	}
	stopped := refresh(ctx, c, filter, fmt.Sprintf("%+v", o))
	return errors.Join(PrintList(context.WithoutCancel(ctx), c, filter), stopped)
}

// PrintList prints what is known of the trackings of a filter.
func PrintList(ctx context.Context, c *command.Call, f ledger.Filter) error {
	if err := CatchUp(ctx, c); err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	n := view.NewStatusNames(c.Config.Statuses)
	width := c.Out.Out().Width()
	narrow := width > 0 && width < view.StateColumnFrom
	w := command.Listing[ledger.TrackingStatus]{
		Out: c.Out, Empty: nothingListed(c.Account(ctx)),
		JSON: func(st ledger.TrackingStatus) any { return view.NewTrackingStatus(st) },
		Columns: []render.Column{
			{Name: "REFERENCE", ID: true},
			{Name: "NUMBER", ID: true},
			{Name: "STATE", From: view.StateColumnFrom},
			{Name: "LATEST EVENT", Flex: true, From: 80},
			{Name: "STATUS", Flex: true},
			{Name: "LEARNT", From: 130},
			{Name: "FROM", From: 140},
		},
		Cells: func(st ledger.TrackingStatus) []string { return n.Cells(st, narrow) },
	}
	if db == nil {
		return w.Print(c.IO, nil)
	}
	var beside unverified
	err = w.Print(c.IO, func(yield func(ledger.TrackingStatus, error) bool) {
		for st, err := range db.Trackings.Statuses(ctx, c.Account(ctx), f) {
			if st.Unverified != 0 {
				beside.add(inbox.Event{Seq: st.Unverified})
			}
			if !yield(st, err) {
				return
			}
		}
	})
	for i, e := range beside.first {
		if err != nil {
			break
		}
		beside.first[i], err = db.Inbox.Event(ctx, e.Seq)
	}
	if err == nil {
		beside.note(c.IO, n)
	}
	return err
}

// nothingListed names the account in the note of an empty list: one store may hold
// several.
func nothingListed(account string) string {
	if account == "" {
		return "no account is set, so nothing is known: set WAYBILL_BASE_URL or --account"
	}
	return fmt.Sprintf("nothing is known yet of account %s; create trackings with `waybill create`", account)
}
