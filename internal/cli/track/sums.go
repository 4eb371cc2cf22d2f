package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/term"
)

// sums counts trackings by status, carrier, age, day and run. [view.Summary] counts results instead.
type sums struct {
	names    view.StatusFormatter
	summary  *view.Summary
	classes  map[ledger.StatusCount]*statusClass
	all      portion
	statuses map[string]*portion    // by name in the summary
	carriers map[string]*portion    // by folded code
	ages     map[int]*portion       // by index in ageStarts; -1 for trackings without a run
	days     map[time.Time]*portion // by local day of the run; zero for trackings without a run
	runs     map[int64]*portion     // by run; 0 for trackings without a run
}

type statusClass struct {
	class report.Class
	name  string // in the summary, once all groups are added
}

type portion struct {
	name    string // of a carrier
	created time.Time
	report.Split
	transit transit
}

func (p *portion) delivered() int64 { return p.Split[report.Delivered] }

// transit maps a number of days to the number of trackings that took so long.
type transit map[int64]int64

// ageStarts returns the days at which age groups begin. A tracking's age is the time since its run.
func ageStarts() []int64 { return []int64{0, 1, 3, 7, 14, 30, 90} }

const day = 24 * time.Hour

func newSums(names view.StatusFormatter) *sums {
	return &sums{
		names: names, summary: view.NewSummary(names), classes: map[ledger.StatusCount]*statusClass{},
		statuses: map[string]*portion{}, carriers: map[string]*portion{}, ages: map[int]*portion{},
		days: map[time.Time]*portion{}, runs: map[int64]*portion{},
	}
}

func (s *sums) add(groups []ledger.Group, now time.Time) {
	for _, g := range groups {
		s.summary.AddCount(g.StatusCount)
		s.classFor(g.StatusCount)
	}
	for c, st := range s.classes {
		st.name = s.summary.Name(c)
	}
	for _, g := range groups {
		st := s.classFor(g.StatusCount)
		s.all.add(g, st.class)
		portionOf(s.statuses, st.name).add(g, st.class)
		portionOf(s.carriers, strings.ToLower(g.Carrier)).add(g, st.class)
		portionOf(s.ages, ageOfGroup(g, now)).add(g, st.class)
		portionOf(s.days, dayOf(g.Created)).add(g, st.class)
		portionOf(s.runs, g.Run).add(g, st.class)
	}
}

func (s *sums) classFor(c ledger.StatusCount) *statusClass {
	c.Trackings = 0
	st := s.classes[c]
	if st == nil {
		st = &statusClass{class: classOf(s.names, c)}
		s.classes[c] = st
	}
	return st
}

func classOf(names view.StatusFormatter, c ledger.StatusCount) report.Class {
	t := view.TrackingOf(c)
	switch style := names.PhaseStyle(t); {
	case t.Phase == ledger.Processed && t.Delivered():
		return report.Delivered
	case style == term.Bad, style == term.Caution:
		return report.Problem
	case t.Phase == ledger.Processed:
		return report.UnderWay
	}
	return report.NotReported
}

// ageOfGroup returns the index of a group's age in ageStarts, or -1 without a run.
func ageOfGroup(g ledger.Group, now time.Time) int {
	if g.Created.IsZero() {
		return -1
	}
	index, exact := slices.BinarySearch(ageStarts(), int64(max(now.Sub(g.Created), 0)/day))
	if !exact {
		index-- // the group began before
	}
	return index
}

func dayOf(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	at = at.Local()
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.Local)
}

func portionOf[K comparable](all map[K]*portion, key K) *portion {
	if all[key] == nil {
		all[key] = &portion{}
	}
	return all[key]
}

func (p *portion) add(g ledger.Group, class report.Class) {
	p.Split[class] += g.Trackings
	p.name, p.created = cmp.Or(p.name, g.Carrier), g.Created
	if g.TransitDays != ledger.UnknownTransit {
		if p.transit == nil {
			p.transit = transit{}
		}
		p.transit[g.TransitDays] += g.Trackings
	}
}

// addAll adds another portion without its transit times.
func (p *portion) addAll(other *portion) {
	for class, n := range other.Split {
		p.Split[class] += n
	}
}

func (t transit) trackings() (n int64) {
	for _, trackings := range t {
		n += trackings
	}
	return n
}

func (t transit) mean() float64 {
	var sum int64
	for days, n := range t {
		sum += days * n
	}
	return math.Round(100*float64(sum)/float64(t.trackings())) / 100
}

// within returns the number of days within which that share of the trackings arrived.
func (t transit) within(share float64) int64 {
	left := int64(math.Ceil(share * float64(t.trackings())))
	var days int64
	for _, days = range slices.Sorted(maps.Keys(t)) {
		if left -= t[days]; left <= 0 {
			break
		}
	}
	return days
}

// The JSON objects of stats. Unknown days are null.
type sumsJSON struct {
	Summary     view.SummaryJSON `json:"summary"`
	ByCarrier   []carrierJSON    `json:"byCarrier"`
	ByAge       []ageJSON        `json:"byAge"`
	ByRun       []runJSON        `json:"byRun"`
	TransitDays *transitJSON     `json:"transitDays"`
}

type carrierJSON struct {
	CarrierCode string       `json:"carrierCode"` // empty if it is not known
	Trackings   int64        `json:"trackings"`
	Delivered   int64        `json:"delivered"`
	TransitDays *transitJSON `json:"transitDays"`
}

type ageJSON struct {
	FromDays  *int64 `json:"fromDays"` // null with toDays: not created here
	ToDays    *int64 `json:"toDays"`   // less than that; null: open
	Trackings int64  `json:"trackings"`
	Delivered int64  `json:"delivered"`
}

type runJSON struct {
	Run       *string    `json:"run"` // null: not created here, or the run was pruned
	Created   *time.Time `json:"created"`
	Trackings int64      `json:"trackings"`
	Delivered int64      `json:"delivered"`
}

type transitJSON struct {
	Trackings int64             `json:"trackings"` // that arrived, and whose transit time is known
	Mean      *float64          `json:"mean"`
	Median    *int64            `json:"median"`
	P90       *int64            `json:"p90"`
	Histogram []transitDaysJSON `json:"histogram"`
}

type transitDaysJSON struct {
	Days      int64 `json:"days"`
	Trackings int64 `json:"trackings"`
}

func (s *sums) json() sumsJSON {
	j := sumsJSON{Summary: s.summary.JSON(), ByCarrier: []carrierJSON{}, ByAge: []ageJSON{}, ByRun: []runJSON{}}
	j.TransitDays = newTransitJSON(s.all.transit)
	for _, p := range s.carriersByCount() {
		j.ByCarrier = append(j.ByCarrier, carrierJSON{p.name, p.Total(), p.delivered(), newTransitJSON(p.transit)})
	}
	starts := ageStarts()
	for _, age := range s.agesInOrder() {
		a := ageJSON{Trackings: s.ages[age].Total(), Delivered: s.ages[age].delivered()}
		if age >= 0 {
			a.FromDays = &starts[age]
		}
		if age >= 0 && age+1 < len(starts) {
			a.ToDays = &starts[age+1]
		}
		j.ByAge = append(j.ByAge, a)
	}
	for _, run := range s.runsInOrder() {
		r := runJSON{Trackings: s.runs[run].Total(), Delivered: s.runs[run].delivered()}
		if run != 0 {
			r.Run, r.Created = new(command.RunName(run)), view.TimeOrNull(s.runs[run].created)
		}
		j.ByRun = append(j.ByRun, r)
	}
	return j
}

func newTransitJSON(t transit) *transitJSON {
	j := &transitJSON{Trackings: t.trackings(), Histogram: []transitDaysJSON{}}
	if j.Trackings == 0 {
		return j
	}
	j.Mean, j.Median, j.P90 = new(t.mean()), new(t.within(0.5)), new(t.within(0.9))
	for _, days := range slices.Sorted(maps.Keys(t)) {
		j.Histogram = append(j.Histogram, transitDaysJSON{days, t[days]})
	}
	return j
}

func (s *sums) carriersByCount() []*portion {
	return slices.SortedFunc(maps.Values(s.carriers), func(a, b *portion) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.name, b.name))
	})
}

// agesInOrder returns the ages, youngest first; -1 is last.
func (s *sums) agesInOrder() []int {
	return slices.SortedFunc(maps.Keys(s.ages), func(a, b int) int { return cmp.Compare(uint(a), uint(b)) })
}

func (s *sums) runsInOrder() []int64 {
	return slices.SortedFunc(maps.Keys(s.runs), func(a, b int64) int { return cmp.Compare(b, a) })
}

func (l *listing) printSums(ctx context.Context) (err error) {
	if err := l.open(ctx); err != nil {
		return err
	}
	s := newSums(l.names)
	if l.db != nil {
		groups, err := l.db.Statistics.Count(ctx, l.filter)
		if err != nil {
			return err
		}
		s.add(groups, time.Now())
	}
	out, sections := l.call.Out, s.sections()
	switch {
	case out.Machine():
		err = out.Object(s.json())
	case out.IsCSV(), l.call.Cmd.Flags().Changed("columns"):
		err = printFlat(out, sections)
	case s.all.Total() == 0:
	case out.ForPeople():
		err = l.drawSums(s, sections)
	default:
		err = errors.Join(out.Line("%s", s.summary), out.Line(""), printFlat(out, sections))
	}
	if err != nil || s.all.Total() > 0 {
		return err
	}
	return l.explainEmpty(ctx)
}

type section struct {
	title     string
	lines     []sumLine
	delivered bool   // lines have the number of delivered trackings
	transit   bool   // lines have transit times
	of        int64  // number of trackings for shares
	note      string // text below the lines
}

type sumLine struct {
	name string
	n    int64
	*portion
}

// Maximum numbers of lines of long sections on a terminal.
const (
	maxCarriers    = 12
	maxRuns        = 10
	maxTransitDays = 21
)

func (s *sums) sections() []section {
	status := section{title: "status", of: s.all.Total()}
	for _, c := range s.summary.JSON().ByStatus {
		status.lines = append(status.lines, sumLine{c.Name, c.Trackings, nil})
	}
	carrier := section{title: "carrier", delivered: true, transit: true}
	for _, p := range s.carriersByCount() {
		carrier.lines = append(carrier.lines, sumLine{cmp.Or(p.name, "not known"), p.Total(), p})
	}
	age := section{title: "age", delivered: true}
	for _, a := range s.agesInOrder() {
		age.lines = append(age.lines, sumLine{ageName(a), s.ages[a].Total(), s.ages[a]})
	}
	run := section{title: "first run", delivered: true}
	for _, id := range s.runsInOrder() {
		name := "without a run"
		if id != 0 {
			name = fmt.Sprint(id)
		}
		run.lines = append(run.lines, sumLine{name, s.runs[id].Total(), s.runs[id]})
	}
	if s.all.transit == nil {
		return []section{status, carrier, age, run}
	}
	return []section{status, carrier, age, s.all.transit.section(), run}
}

func (t transit) section() section {
	took := section{title: "transit time", of: t.trackings()}
	took.note = fmt.Sprintf("Half within %s, 90 %% within %s, %.1f days on average.",
		command.Plural(t.within(0.5), "day"), command.Plural(t.within(0.9), "day"), t.mean())
	for _, days := range slices.Sorted(maps.Keys(t)) {
		arrived := &portion{Split: report.Split{report.Delivered: t[days]}}
		took.lines = append(took.lines, sumLine{command.Plural(days, "day"), t[days], arrived})
	}
	return took
}

func ageName(age int) string {
	starts := ageStarts()
	switch {
	case age < 0:
		return "not created here"
	case age == 0:
		return "less than 1 day"
	case age+1 == len(starts):
		return fmt.Sprintf("%d days or more", starts[age])
	}
	return fmt.Sprintf("%d to %d days", starts[age], starts[age+1])
}

type flatLine struct {
	by *section
	sumLine
}

func sumColumns() []command.Column[flatLine] {
	return []command.Column[flatLine]{
		{Name: "BY", Cell: func(l flatLine) string { return l.by.title }},
		{Name: "VALUE", ID: true, Cell: func(l flatLine) string { return l.name }},
		{Name: "TRACKINGS", Right: true, Cell: func(l flatLine) string { return fmt.Sprint(l.n) }},
		{Name: "DELIVERED", Right: true, Cell: func(l flatLine) string {
			if !l.by.delivered {
				return ""
			}
			return fmt.Sprint(l.portion.delivered())
		}},
	}
}

func printFlat(out *command.Output, sections []section) error {
	var all []flatLine
	for i := range sections {
		for _, l := range sections[i].lines {
			all = append(all, flatLine{&sections[i], l})
		}
	}
	return command.PrintTable(out, sumColumns(), all...)
}

// NewStats returns the command stats.
func NewStats(f *command.Factory) *cobra.Command {
	var o filterOptions
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count trackings by status, carrier, age and transit time",
		Long: `stats counts what this computer knows of your trackings: by status, carrier, age,
transit time and first run. It does not query the service; "waybill list --refresh" does.
Filters select a part.

The age of a tracking is the time since its first run, the one that created it; --run
selects the whole input of a run, also trackings of earlier runs. The transit time
is the time from the first to the last checkpoint of a delivered tracking, in whole
days; it is known after a response or an event with its checkpoints.

A terminal shows the sums as bars, JSON as plain numbers: "days" are whole days,
"median" and "p90" are the days within which 50 % and 90 % arrived.`,
		Example: command.Example("waybill stats", "waybill stats --carrier dhl", "waybill stats --run 12 -o json",
			"waybill stats --jq '.transitDays.median'"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			_, filter, err := o.filter(ctx, c)
			if err != nil {
				return err
			}
			return (&listing{call: c, filter: filter, words: o.words()}).printSums(ctx)
		}),
	}
	o.flags(cmd)
	command.ColumnsFlag(cmd, sumColumns())
	return cmd
}
