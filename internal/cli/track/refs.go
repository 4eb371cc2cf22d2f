package track

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// refOptions select the trackings of a command: by REFs, by a file, or by filters of the store.
type refOptions struct {
	Refs []string
	By   string
	input.Flags
	filterOptions
}

func (o *refOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	o.filterOptions.flags(cmd)
	const usage = "read REFs that the store does not know as `KIND`"
	command.Choice(f, &o.By, "by", "refer-id", usage, "refer-id", "tracking-number")
	o.AddFrom(cmd)
	command.Section(f, command.InputSection, "by")
	command.SettingFlags(cmd, "concurrency", "rate")
}

func (o *refOptions) check(cmd *cobra.Command) error {
	if err := command.CheckNotEmpty(cmd, append(filterFlags(), "from", "fail-on")...); err != nil {
		return err
	}
	named, filtered := len(o.Refs) > 0, len(o.words()) > 0
	switch {
	case o.Stuck == stuckAfter && named:
		return command.Usagef("write an age after =, such as --stuck=3d", "REFs and --stuck exclude each other")
	case named && filtered || o.From != "" && (named || filtered):
		return command.Usagef("give REFs, or --from FILE, or --run and other filters",
			"REFs, --from and filters such as --run exclude each other")
	case !named && !filtered && o.From == "":
		open := ""
		if cmd.Flags().Lookup("open") != nil {
			open = ", or --open for all that is not delivered"
		}
		return command.Usagef("name one or more of your identifiers, or --run ID, or --from FILE"+open+
			"; quote one that starts with #, such as '#1007'", "no REF given")
	case slices.Contains(o.Refs, ""):
		return command.Usagef("remove the empty argument; an unset shell variable may be the cause", "a REF is empty")
	}
	return nil
}

func (o *refOptions) single() bool {
	return len(o.Refs) > 0 && !slices.ContainsFunc(o.Refs, func(ref string) bool { return ref != o.Refs[0] })
}

type targets struct {
	all   iter.Seq2[*query.Target, error] // continues after the command's context has ended
	total int64                           // 0 if unknown
	close func()

	refs      bool // the user typed them
	trackings bool // total counts trackings, not REFs
	// choose is for [query.Scheduler].
	choose func(ctx context.Context, ts []*query.Target) error
}

func (o *refOptions) targets(ctx context.Context, c *command.Call) (targets, error) {
	ctx = context.WithoutCancel(ctx)
	switch {
	case o.From != "":
		refs, err := o.OpenRefs(ctx, c)
		if err != nil {
			return targets{}, err
		}
		return targets{all: once(refs.All(ctx), o.target), total: refs.Count, close: refs.Close}, nil
	case len(o.Refs) > 0:
		all := once(command.Values(o.Refs), func(ref string) *query.Target { return o.target(intake.Record{Ref: ref}) })
		return targets{all: all, total: int64(len(o.Refs)), close: func() {}, refs: true}, nil
	}
	db, f, err := o.filter(ctx, c)
	if err != nil || db == nil {
		return targets{all: command.Values[*query.Target](nil), close: func() {}}, err
	}
	return selected(ctx, c, db, f)
}

// selected returns the targets that match a filter: a few in order of creation, many in the order of querying.
func selected(ctx context.Context, c *command.Call, db *app.Store, f ledger.Filter) (targets, error) {
	var few []*query.Target
	known, total := map[tracking.Query]*query.Target{}, int64(0)
	for st, err := range db.Trackings.Statuses(ctx, f) {
		if err != nil {
			return targets{}, err
		}
		total++
		t := storedTarget(st)
		if first := known[t.Query]; first != nil {
			first.Chosen = append(first.Chosen, t.Chosen...)
			continue
		}
		t.Pos, known[t.Query] = int64(len(few)), t
		if few = append(few, t); len(few) > maxWaiting {
			all, err := view.SummaryOf(ctx, c, db, f)
			if total = all.Trackings(); f.Limit > 0 {
				total = min(total, int64(f.Limit))
			}
			return many(ctx, db, f, total), err
		}
	}
	return targets{all: command.Values(few), total: total, close: func() {}, trackings: true}, nil
}

// many returns the targets that match a filter, which have total trackings, in the order of querying.
func many(ctx context.Context, db *app.Store, f ledger.Filter, total int64) targets {
	f.Order = ledger.ByAsked
	choose := func(ctx context.Context, ts []*query.Target) error {
		of, known := f, map[string]*query.Target{}
		of.Order, of.Descending, of.Limit, of.ReferIDs = ledger.ByCreation, false, 0, nil
		for _, t := range ts {
			known[t.Query.ReferID] = t
			of.ReferIDs = append(of.ReferIDs, t.Query.ReferID)
		}
		for st, err := range db.Trackings.Statuses(ctx, of) {
			if err != nil {
				return err
			}
			if t := known[st.Item.ReferID]; t != nil && !slices.Contains(t.Chosen, st.Item.Number) {
				t.Chosen = append(t.Chosen, st.Item.Number)
			}
		}
		return nil
	}
	all := once(db.Trackings.Statuses(ctx, f), storedTarget)
	return targets{all: all, total: total, close: func() {}, trackings: true, choose: choose}
}

func (o *refOptions) target(rec intake.Record) *query.Target {
	q := tracking.Query{ReferID: rec.Ref}
	switch item := rec.Item; {
	case item.ReferID != "" && (o.By != "tracking-number" || item.Number == ""):
		q.ReferID = item.ReferID
	case item.Number != "":
		q = tracking.Query{Number: item.Number}
	case o.By == "tracking-number":
		q = tracking.Query{Number: rec.Ref}
	}
	return &query.Target{Ref: q.Ref(), Query: q}
}

// storedTarget returns the target for a tracking of the store: one parcel of an order, or a number.
func storedTarget(st ledger.TrackingStatus) *query.Target {
	q, chosen := tracking.Query{ReferID: st.Item.ReferID}, []string{st.Item.Number}
	if q.ReferID == "" {
		q.Number, chosen = st.Item.Number, nil
	}
	return &query.Target{Ref: q.Ref(), Query: q, Chosen: chosen}
}

// maxRemembered is the number of REFs within which repeats are recognized. Later repeats are queried twice.
const maxRemembered = 1 << 12

// once yields the targets of all without repeats, and numbers them. An error ends it.
func once[T any](all iter.Seq2[T, error], target func(T) *query.Target) iter.Seq2[*query.Target, error] {
	return func(yield func(*query.Target, error) bool) {
		seen := make(map[tracking.Query]bool)
		var order []tracking.Query
		pos := int64(0)
		for v, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			t := target(v)
			if seen[t.Query] {
				continue
			}
			seen[t.Query] = true
			if order = append(order, t.Query); len(order) > maxRemembered {
				delete(seen, order[0])
				order = order[1:]
			}
			t.Pos = pos
			pos++
			if !yield(t, nil) {
				return
			}
		}
	}
}

type filterOptions struct {
	Run, Created, Delivered, Updated, Stuck, Carrier string
	Statuses, ReferIDs, Where                        []string
	Problem                                          bool
}

// The age of a bare --stuck, and the statuses that --problem adds to it.
const (
	stuckFlag       = "stuck"
	problemFlag     = "problem"
	stuckAfter      = "7d"
	problemStatuses = "rejected,unknown," + view.ErrorWord
)

// flags adds the flags to a command whose help refers to list for them.
func (o *filterOptions) flags(cmd *cobra.Command) {
	o.register(cmd.Flags())
	command.SectionAsIn(cmd.Flags(), "waybill list", filterFlags()...)
}

// set returns a set of the flags, bound to the options.
func (o *filterOptions) set() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.Created, "created", o.Created, "trackings created by a run in `RANGE`: "+
		"7d, monday, 2026-11-20, 2026-11-01..2026-11-07, ..30d")
	f.StringVar(&o.Delivered, "delivered", o.Delivered, "delivered trackings whose last checkpoint is in `RANGE`")
	f.StringVar(&o.Updated, "updated", o.Updated, "trackings that the service updated last in `RANGE`")
	f.StringVar(&o.Stuck, stuckFlag, o.Stuck, "trackings not delivered whose last checkpoint is at least an `AGE` old, "+
		stuckAfter+" without one; without a checkpoint, since they were sent")
	f.StringArrayVar(&o.Statuses, "status", o.Statuses, "trackings in `STATUS`, or in several separated by commas: "+
		"a number or name of the service, or "+command.Or(view.StatusWords()))
	f.BoolVar(&o.Problem, problemFlag, o.Problem, "trackings that need attention: "+
		problemStatuses+" as --status has them, and those that --stuck finds")
	f.StringVar(&o.Carrier, "carrier", o.Carrier, "trackings of the carrier with this `CODE`, in upper or lower case")
	f.StringArrayVar(&o.ReferIDs, "refer-id", o.ReferIDs,
		"trackings of this `REFERID`; ORD-10* takes all that begin with ORD-10 (repeatable)")
	f.StringVar(&o.Run, "run", o.Run, "trackings of run `ID`")
	f.StringArrayVar(&o.Where, "where", o.Where, "trackings with `COLUMN=VALUE` in their input, such as customer='Ann*': "+
		"a column that is kept and not sent (repeatable)")
	f.Lookup(stuckFlag).NoOptDefVal = stuckAfter
	return f
}

func (o *filterOptions) register(f *pflag.FlagSet) {
	f.AddFlagSet(o.set())
	command.Section(f, "Filters", filterFlags()...)
}

func filterFlags() (names []string) {
	new(filterOptions).set().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// words returns the flags that are set, as on a command line.
func (o *filterOptions) words() (words []string) {
	o.set().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		for _, value := range command.FlagValues(f) {
			switch {
			case value == "", f.Name == problemFlag && !o.Problem:
			case f.Name == problemFlag:
				words = append(words, name)
			case f.Name == stuckFlag:
				words = append(words, name+"="+value)
			default:
				words = append(words, name, value)
			}
		}
	})
	return words
}

func (o *filterOptions) String() string { return shell.Line(o.words()...) }

const maxPatterns = 500

// filter returns the store, nil if there is none yet, and the filter of the flags.
func (o *filterOptions) filter(ctx context.Context, c *command.Call) (*app.Store, ledger.Filter, error) {
	if err := command.CheckNotEmpty(c.Cmd, filterFlags()...); err != nil {
		return nil, ledger.Filter{}, err
	}
	f := ledger.Filter{Carrier: o.Carrier, ReferIDs: o.ReferIDs}
	if len(o.ReferIDs) > maxPatterns {
		hint := "give `waybill show` a file with --from FILE"
		return nil, f, command.Usagef(hint, "more than %d times --refer-id", maxPatterns)
	}
	for _, ref := range o.ReferIDs {
		if rest := strings.TrimSuffix(ref, "*"); rest == "" || strings.Contains(rest, "*") {
			return nil, f, command.Usagef("use one * at the end, such as --refer-id 'ORD-10*'",
				"--refer-id must be a referId, or its beginning and one *, not %q", ref)
		}
	}
	var errs [5]error
	f.Created, errs[0] = command.ParseRange("--created", o.Created)
	f.Delivered, errs[1] = command.ParseRange("--delivered", o.Delivered)
	f.Updated, errs[2] = command.ParseRange("--updated", o.Updated)
	f.StuckSince, errs[3] = command.ParseSince("--stuck", o.Stuck)
	errs[4] = o.readStatuses(&f, view.NewStatusFormatter(c.Config.OwnStatuses))
	err := cmp.Or(errs[:]...)
	if err != nil {
		return nil, f, err
	}
	var db *app.Store
	if o.Run != "" {
		db, f.Run, err = command.OpenRun(ctx, c.Session, o.Run)
	} else {
		db, err = c.ExistingStore(ctx)
	}
	if err == nil {
		err = o.readWhere(ctx, db, &f)
	}
	return db, f, err
}

func (o *filterOptions) readWhere(ctx context.Context, db *app.Store, f *ledger.Filter) error {
	for _, text := range o.Where {
		column, pattern, ok := strings.Cut(text, "=")
		if !ok || column == "" {
			return command.Usagef("such as --where customer='Ann*'", "--where %q is not COLUMN=VALUE", text)
		}
		if db == nil {
			continue
		}
		known, err := db.Statistics.OwnColumns(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(name, column) }) {
			return command.Usagef("columns that inputs had: "+cmp.Or(input.QuotedList(known), "none"),
				"--where: no row has a column %s", command.Quoted(column))
		}
		f.Own = append(f.Own, ledger.OwnText{Column: column, Pattern: pattern})
	}
	return nil
}

// readStatuses parses --status. A word may be a state of rows, a status of the service, or a name in tables and
// summaries: it selects all of them. The word open selects by status, or by the state of rows without a status.
func (o *filterOptions) readStatuses(f *ledger.Filter, names view.StatusFormatter) error {
	f.NamedToo = func(word string, s ledger.Sighting) bool {
		return strings.EqualFold(word, view.ErrorWord) && names.IsProblem(s) ||
			strings.EqualFold(word, view.OpenWord) && names.IsOpen(s) ||
			names.Matches(word, s.Phase, s.Status, s.StatusLabel, s.StatusTrack)
	}
	lists := o.Statuses
	if o.Problem {
		lists = append([]string{problemStatuses}, lists...)
		f.OrStuckSince, _ = command.ParseSince("", stuckAfter)
	}
	for _, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			if strings.TrimSpace(word) == "" {
				return command.Usagef("such as --status delivered,rejected", "--status %q has an empty word", list)
			}
			f.Statuses = append(f.Statuses, word)
			if strings.EqualFold(word, view.OpenWord) {
				f.States = append(f.States, ledger.Pending, ledger.Sending, ledger.Unknown, ledger.NotChecked)
			}
			if state := view.StateNamed(word); state != "" {
				f.States = append(f.States, state)
			}
		}
	}
	return nil
}
