package track

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
)

// filterOptions are the flags that say which trackings of the store are meant.
type filterOptions struct {
	Run, Created, Delivered, Updated, Stuck, Carrier string
	Statuses, ReferIDs                               []string
}

// stuckAfter is what --stuck without an age means.
const stuckAfter = "7d"

// flags adds the flags to a command whose help refers to that of list for them.
func (o *filterOptions) flags(cmd *cobra.Command) {
	o.register(cmd.Flags())
	command.SectionAsIn(cmd.Flags(), "waybill list", filterFlags()...)
}

func (o *filterOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.Created, "created", "", "trackings created by a run in `RANGE`: 7d, yesterday, 2026-11-20, 2026-11-01..2026-11-07, ..30d")
	f.StringVar(&o.Delivered, "delivered", "", "delivered trackings whose last checkpoint is in `RANGE`")
	f.StringVar(&o.Updated, "updated", "", "trackings that the service updated last in `RANGE`")
	f.StringVar(&o.Stuck, "stuck", "", "trackings not delivered whose last checkpoint is at least an `AGE` old, "+stuckAfter+" without one; without a checkpoint, since they were sent")
	f.Lookup("stuck").NoOptDefVal = stuckAfter
	f.StringArrayVar(&o.Statuses, "status", nil, "trackings in `STATUS`, or in several separated by commas: a number or name of the service, or "+command.Or(view.StatusWords()))
	f.StringVar(&o.Carrier, "carrier", "", "trackings of the carrier with this `CODE`, in upper or lower case")
	f.StringArrayVar(&o.ReferIDs, "refer-id", nil, "trackings of this `REFERID`; ORD-10* takes all that begin with ORD-10 (repeatable)")
	f.StringVar(&o.Run, "run", "", "trackings of run `ID`")
	command.Section(f, "Filters", filterFlags()...)
}

func filterFlags() []string {
	return []string{"created", "delivered", "updated", "stuck", "status", "carrier", "refer-id", "run"}
}

func (o *filterOptions) used() bool { return len(o.words()) > 0 }

// words are the flags as they were typed.
func (o *filterOptions) words() (words []string) {
	for _, f := range []struct{ name, value string }{
		{"--status", strings.Join(o.Statuses, ",")},
		{"--carrier", o.Carrier},
		{"--run", o.Run},
		{"--created", o.Created},
		{"--delivered", o.Delivered},
		{"--updated", o.Updated},
	} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	if o.Stuck != "" {
		words = append(words, "--stuck="+o.Stuck)
	}
	for _, ref := range o.ReferIDs {
		words = append(words, "--refer-id", ref)
	}
	return words
}

func (o *filterOptions) String() string { return shell.Line(o.words()...) }

const maxPatterns = 500

// filter reads the flags. The store is nil if there is none yet.
func (o *filterOptions) filter(ctx context.Context, c *command.Call) (*app.Store, ledger.Filter, error) {
	if err := command.CheckNotEmpty(c.Cmd, filterFlags()...); err != nil {
		return nil, ledger.Filter{}, err
	}
	f := ledger.Filter{Carrier: o.Carrier, ReferIDs: o.ReferIDs}
	if len(o.ReferIDs) > maxPatterns {
		return nil, f, command.Usagef("give `waybill show` a file with --from FILE", "more than %d times --refer-id", maxPatterns)
	}
	for _, ref := range o.ReferIDs {
		if rest := strings.TrimSuffix(ref, "*"); rest == "" || strings.Contains(rest, "*") {
			return nil, f, command.Usagef("use one * at the end, such as --refer-id 'ORD-10*'", "--refer-id must be a referId, or its beginning and one *, not %q", ref)
		}
	}
	var err error
	for _, span := range []struct {
		flag, text string
		value      *ledger.Range
	}{{"--created", o.Created, &f.Created}, {"--delivered", o.Delivered, &f.Delivered}, {"--updated", o.Updated, &f.Updated}} {
		if *span.value, err = command.ParseRange(span.flag, span.text); err != nil {
			return nil, f, err
		}
	}
	if f.StuckSince, err = command.ParseSince("--stuck", o.Stuck); err != nil {
		return nil, f, err
	}
	if err := o.readStatuses(&f, view.NewStatusNames(c.Config.Statuses)); err != nil {
		return nil, f, err
	}
	var db *app.Store
	if o.Run != "" {
		var run ledger.RunSummary
		db, run, err = command.OpenOwnRun(ctx, c.Session, o.Run)
		f.Run = run.ID
	} else {
		db, err = c.ExistingStore(ctx)
	}
	if err == nil && db != nil {
		err = requireAccount(ctx, c, db)
	}
	return db, f, err
}

// readStatuses reads --status. A word may be a state of rows, a status of the service,
// and what tables and summaries call either: it takes all of these.
func (o *filterOptions) readStatuses(f *ledger.Filter, names view.StatusNames) error {
	f.NamedToo = func(word string, s ledger.Sighting) bool {
		return strings.EqualFold(word, view.ErrorWord) && names.IsProblem(s) || names.Named(word, s.Phase, s.Status, s.StatusLabel, s.StatusTrack)
	}
	for _, list := range o.Statuses {
		for word := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(word) == "" {
				return command.Usagef("such as --status delivered,rejected", "--status %q has an empty word", list)
			}
			f.Statuses = append(f.Statuses, word)
			if state := view.StateNamed(word); state != "" {
				f.States = append(f.States, state)
			}
		}
	}
	return nil
}

// requireAccount refuses a command without an account if the store has some.
func requireAccount(ctx context.Context, c *command.Call, db *app.Store) error {
	if c.Account(ctx) != "" {
		return nil
	}
	others, err := otherAccounts(ctx, c, db)
	if err == nil && others != "" {
		err = command.Usagef("use --account NAME or set WAYBILL_BASE_URL", "no account is set, and this store has trackings of %s", others)
	}
	return err
}

// otherAccounts names the accounts of the store beside that of the command, with how
// many trackings they have, such as "accounts alpha (6), beta (3)"; empty for none.
func otherAccounts(ctx context.Context, c *command.Call, db *app.Store) (string, error) {
	names, err := db.History.AccountNames(ctx)
	if err != nil {
		return "", err
	}
	var all []string
	for _, name := range names {
		if name == c.Account(ctx) {
			continue
		}
		known, err := view.SummaryOf(ctx, c, db, name, ledger.Filter{})
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%s (%s)", name, command.Number(known.Trackings())))
	}
	switch {
	case len(all) == 0:
		return "", nil
	case len(all) == 1:
		return "account " + all[0], nil
	case len(all) > maxAccountsNamed:
		all = append(all[:maxAccountsNamed], "…")
	}
	return "accounts " + strings.Join(all, ", "), nil
}

const maxAccountsNamed = 5
