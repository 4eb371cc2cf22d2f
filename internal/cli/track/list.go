package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
)

type listOptions struct {
	filterOptions
	Since   string
	Limit   int
	Refresh bool
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
end. Events that did not verify change nothing; they are pointed out beside.

A tracking that was accepted, and that nobody asked about and no event was about,
is "not checked yet" (phase "notAsked" in JSON).`,
		Example: command.Example("waybill list", "waybill list --status delivered", "waybill list --state rejected", "waybill list --stale 48h -o json"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runList(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	o.filterOptions.flags(cmd)
	flags.StringVar(&o.Since, "since", "", "trackings heard of since a `TIME`: RFC 3339, a date, or an age such as 48h")
	flags.IntVar(&o.Limit, "limit", 0, "at most `N` (0 for all)")
	flags.BoolVar(&o.Refresh, "refresh", false, "ask the service about them first")
	command.SettingFlags(cmd, "concurrency", "rate")
	command.ColumnsFlag(cmd, view.StatusNames{}.Columns(false, time.Time{}))
	return cmd
}

func runList(ctx context.Context, c *command.Call, o listOptions) error {
	if err := command.CheckLimit(o.Limit); err != nil {
		return err
	}
	since, err := command.ParseSince("--since", o.Since)
	if err != nil {
		return err
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	filter.SeenSince, filter.Limit = since, o.Limit
	if !o.Refresh {
		return printList(ctx, c, filter, o.flagsGiven())
	}
	stopped := refresh(ctx, c, filter, fmt.Sprint(o.flagsGiven(), " limit=", o.Limit))
	return errors.Join(printList(context.WithoutCancel(ctx), c, filter, o.flagsGiven()), stopped)
}

// flagsGiven are the filters as they were typed.
func (o *listOptions) flagsGiven() string {
	words := o.words()
	if o.Since != "" {
		words = append(words, "--since", o.Since)
	}
	return shell.Line(words...)
}

// PrintList prints what is known of the trackings of a run.
func PrintList(ctx context.Context, c *command.Call, run int64) error {
	return printList(ctx, c, ledger.Filter{Run: run}, fmt.Sprint("--run ", run))
}

// printList prints what is known of the trackings of a filter, which was given by
// those flags.
func printList(ctx context.Context, c *command.Call, f ledger.Filter, flags string) error {
	if err := CatchUp(ctx, c); err != nil {
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	n := view.NewStatusNames(c.Config.Statuses)
	w := command.Listing[*view.Line]{
		Out: c.Out, Columns: n.Columns(c.Out.ForPeople(), time.Now()),
		JSON: func(l *view.Line) any { return view.NewTrackingStatus(*l.Row) },
	}
	if db == nil {
		w.Empty = nothingListed(c.Account(ctx))
		return w.Print(c.IO, nil)
	}
	var beside unverified
	var row ledger.TrackingStatus
	var line view.Line // of the row
	var all, unchecked int64
	summary := view.NewSummary(n)
	err = w.Print(c.IO, func(yield func(*view.Line, error) bool) {
		for st, err := range db.Trackings.Statuses(ctx, c.Account(ctx), f) {
			if st.Unverified != 0 {
				beside.add(inbox.Event{Seq: st.Unverified})
			}
			if err == nil {
				all++
			}
			if st.Unchecked() {
				unchecked++
			}
			row = st
			line = view.KnownLine(&row)
			if !yield(&line, err) {
				return
			}
			summary.Add(line.Tracking)
		}
	})
	for i, e := range beside.first {
		if err != nil {
			break
		}
		beside.first[i], err = db.Inbox.Event(ctx, e.Seq)
	}
	switch {
	case err != nil:
		return err
	case all == 0:
		return explainEmpty(ctx, c, db.Statistics, flags)
	case !f.StaleSince.IsZero():
		c.IO.Note("%s not heard of since; %s not checked yet: `waybill show --stale` or `waybill wait` asks the service", view.Number(all-unchecked), view.Number(unchecked))
	}
	summary.Print(c)
	beside.note(c.IO, n)
	return nil
}

// maxStatusesNamed is how many statuses the note of an empty list names.
const maxStatusesNamed = 8

// noteNothing notes why there is nothing to ask about.
func noteNothing(ctx context.Context, c *command.Call, o *filterOptions) error {
	db, err := c.ExistingStore(ctx)
	switch {
	case err != nil:
		return err
	case db == nil:
		c.IO.Note("%s", nothingListed(c.Account(ctx)))
		return nil
	}
	return explainEmpty(ctx, c, db.Statistics, shell.Line(o.words()...))
}

// explainEmpty says that nothing matches, and what there is.
func explainEmpty(ctx context.Context, c *command.Call, known ledger.Statistics, flags string) error {
	counts, err := known.CountByStatus(ctx, c.Account(ctx))
	if err != nil {
		return err
	}
	var total int64
	var names []string
	for _, s := range counts {
		total += s.Trackings
		name := cmp.Or(s.StatusLabel, s.StatusTrack, view.Unquote(s.Status))
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if total == 0 || flags == "" {
		c.IO.Note("%s", nothingListed(c.Account(ctx)))
		return nil
	}
	switch {
	case len(names) == 0:
		names = []string{"none yet"}
	case len(names) > maxStatusesNamed:
		names = append(names[:maxStatusesNamed], "…")
	}
	c.IO.Note("no tracking matches %s (%s known; statuses: %s)", flags, view.Number(total), strings.Join(names, ", "))
	return nil
}

// nothingListed names the account in the note of an empty list: one store may hold
// several.
func nothingListed(account string) string {
	if account == "" {
		return "no account is set, so nothing is known: set WAYBILL_BASE_URL or --account"
	}
	return fmt.Sprintf("nothing is known yet of account %s; create trackings with `waybill create`", account)
}
