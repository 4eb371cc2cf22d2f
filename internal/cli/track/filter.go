package track

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// filterOptions are the flags that say which trackings of the store are meant.
type filterOptions struct {
	Run, Status, Carrier, Since, Stale, Stuck string
	States                                    []string
	NotChecked                                bool
	ReferIDs                                  []string
}

// stuckAfter is what --stuck without an age means.
const stuckAfter = "7d"

func (o *filterOptions) flags(cmd *cobra.Command) { o.register(cmd.Flags()) }

// register adds the flags to a set, which need not be that of a command.
func (o *filterOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.Run, "run", "", "trackings of run `ID`")
	f.StringVar(&o.Status, "status", "", "trackings whose last known status is `STATUS`: its number or name")
	command.Choices(f, &o.States, "state", "trackings whose row is in `STATE`, or in several separated by commas", view.RowStates()...)
	f.StringVar(&o.Carrier, "carrier", "", "trackings of the carrier with this `CODE`, in upper or lower case")
	f.StringArrayVar(&o.ReferIDs, "refer-id", nil, "trackings of this `REFERID`; ORD-10* takes all that begin with ORD-10 (repeatable)")
	f.StringVar(&o.Since, "since", "", "trackings updated since `TIME`: RFC 3339, a date, or an age such as 48h")
	f.StringVar(&o.Stale, "stale", "", "trackings accepted an `AGE` such as 48h ago or earlier, not delivered and not updated since")
	f.StringVar(&o.Stuck, "stuck", "", "trackings not delivered whose last checkpoint is at least an `AGE` old, "+stuckAfter+" without one; without a checkpoint, since they were sent")
	f.Lookup("stuck").NoOptDefVal = stuckAfter
	f.BoolVar(&o.NotChecked, "not-checked", false, "trackings that were accepted and of which nothing is known yet")
	command.Section(f, "Filters", filterFlags()...)
}

func filterFlags() []string {
	return []string{"run", "status", "state", "carrier", "refer-id", "since", "stale", "stuck", "not-checked"}
}

func (o *filterOptions) used() bool { return len(o.words()) > 0 }

// words are the flags as they were typed.
func (o *filterOptions) words() (words []string) {
	for _, f := range []struct{ name, value string }{
		{"--status", o.Status}, {"--state", strings.Join(o.States, ",")}, {"--carrier", o.Carrier}, {"--run", o.Run}, {"--since", o.Since}, {"--stale", o.Stale},
	} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	if o.Stuck != "" {
		words = append(words, "--stuck="+o.Stuck)
	}
	if o.NotChecked {
		words = append(words, "--not-checked")
	}
	for _, ref := range o.ReferIDs {
		words = append(words, "--refer-id", ref)
	}
	return words
}

func (o *filterOptions) String() string { return shell.Line(o.words()...) }

// maxPatterns is how many --refer-id one command takes.
const maxPatterns = 500

// filter reads the flags. The store is nil if there is none yet.
func (o *filterOptions) filter(ctx context.Context, c *command.Call) (*app.Store, ledger.Filter, error) {
	if err := command.CheckNotEmpty(c.Cmd, filterFlags()...); err != nil {
		return nil, ledger.Filter{}, err
	}
	return o.read(ctx, c)
}

// read is filter for values that need not be those of the command's own flags.
func (o *filterOptions) read(ctx context.Context, c *command.Call) (*app.Store, ledger.Filter, error) {
	f := ledger.Filter{Status: o.Status, Carrier: o.Carrier, ReferIDs: o.ReferIDs, Unreported: o.NotChecked}
	names := view.NewStatusNames(c.Config.Statuses)
	f.NamedToo = func(s ledger.Sighting) bool {
		return names.Named(o.Status, s.Phase, s.Status, s.StatusLabel, s.StatusTrack)
	}
	for _, state := range o.States {
		f.States = append(f.States, ledger.State(state))
	}
	if len(o.ReferIDs) > maxPatterns {
		return nil, f, command.Usagef("give `waybill show` a file with --from FILE", "more than %d times --refer-id", maxPatterns)
	}
	for _, ref := range o.ReferIDs {
		if rest := strings.TrimSuffix(ref, "*"); rest == "" || strings.Contains(rest, "*") {
			return nil, f, command.Usagef("use one * at the end, such as --refer-id 'ORD-10*'", "--refer-id must be a referId, or its beginning and one *, not %q", ref)
		}
	}
	var err error
	if f.SeenSince, err = command.ParseSince("--since", o.Since); err == nil {
		f.StaleSince, err = command.ParseSince("--stale", o.Stale)
	}
	if err == nil {
		f.StuckSince, err = command.ParseSince("--stuck", o.Stuck)
	}
	if err != nil {
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
		err = cmp.Or(requireAccount(ctx, c, db), takePhase(ctx, c, db, &f))
	}
	return db, f, err
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
		n, err := countTrackings(ctx, db, name, ledger.Filter{})
		if err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("%s (%s)", name, view.Number(n)))
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

// maxAccountsNamed is how many accounts of a store an error or a note names.
const maxAccountsNamed = 5

// takePhase replaces a status by a state of rows, or by what is not checked, if that is
// what summaries call so and the service has no such status.
func takePhase(ctx context.Context, c *command.Call, db *app.Store, f *ledger.Filter) error {
	word := strings.ToLower(strings.ReplaceAll(tracking.FoldStatus(f.Status), "_", " "))
	state := ledger.State(word)
	switch {
	case f.States != nil:
		return nil
	case word == "not sent yet":
		state = ledger.Pending
	case word == "not checked yet", word == "not reported":
		state = ""
	case !slices.Contains(view.RowStates(), word) || state == ledger.Accepted || state == ledger.Pending:
		return nil
	}
	counts, err := db.Statistics.SeenStatuses(ctx, c.Account(ctx))
	if err != nil || slices.ContainsFunc(counts, func(n ledger.StatusCount) bool {
		return f.TakesStatus(ledger.Sighting{Phase: n.Phase, Status: n.Status, StatusLabel: n.StatusLabel, StatusTrack: n.StatusTrack})
	}) {
		return err
	}
	if f.Status = ""; state == "" {
		f.Unreported = true
	} else {
		f.States = []ledger.State{state}
	}
	return nil
}
