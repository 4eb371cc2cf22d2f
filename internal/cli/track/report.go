package track

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/shell"
)

type reportOptions struct {
	filterOptions
	File string
}

const reportFile = "report.html"

type reportJSON struct {
	File      string `json:"file"`
	Trackings int64  `json:"trackings"`
	Rows      int    `json:"rows"` // of the table on the page
}

// NewReport returns the command report.
func NewReport(f *command.Factory) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report [FILE]",
		Short: "Write an HTML page about your trackings, to print or send",
		Long: fmt.Sprintf(`report writes one HTML page that shows what this computer knows of your trackings:
problems and stuck trackings first, then status by day, age of what is under way,
carriers, transit times, and a table that sorts and filters. The numbers are those of
"waybill stats". report does not query the service; "waybill list --refresh" does.

The page is FILE, that of --out, or %s in the current folder; - is standard
output. It needs no other file and no network. Paper, A4 or Letter, gets what needs attention alone,
unless "Print all" is checked on the page. It is for you alone (mode 0600) until you
send it. It replaces an HTML page, and no other file.

Each tracking is counted on the day on which its first run created it, by the status
that it has now. The chart has the last %d days, and all before them as one number.
Stuck trackings are those of --stuck, %s without another age.

The table has at most %s trackings and the page at most 5 MB: if there are more,
problems and stuck trackings are in the table first, and the page says how to write
all of them as CSV.`, reportFile, chartDays, stuckAfter, command.Number(report.MaxRows)),
		Example: command.Example("waybill report", "waybill report march.html --created 2026-03-01..2026-03-31",
			"waybill report run12.html --run 12", "waybill report - > report.html"),
		Args: command.Between(0, 1, "one FILE"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			switch o.File = reportFile; {
			case len(args) > 0:
				o.File = args[0]
			case c.Cmd.Flags().Changed("out") && !c.Out.Machine(): // the page is the result
				o.File = command.StdinName
				if err := command.RequirePage(c.Cmd.Flag("out").Value.String()); err != nil {
					return err
				}
			}
			return runReport(ctx, c, o)
		}),
	}
	o.flags(cmd)
	return cmd
}

func runReport(ctx context.Context, c *command.Call, o reportOptions) error {
	if c.Out.IsCSV() {
		hint := "`waybill list -o csv` writes the trackings; -o json says what the page has"
		return command.Usagef(hint, "report has no CSV")
	}
	_, filter, err := o.filter(ctx, c)
	if err != nil {
		return err
	}
	l := listing{call: c, filter: filter, words: o.words()}
	if o.File == command.StdinName {
		c.Out.Whole()
		_, err := l.writeReport(ctx, c.Out.Out())
		return err
	}
	if err := c.SparePage(o.File); err != nil {
		return err
	}
	file, err := command.NewAtomicFile(ctx, o.File)
	if err != nil {
		return err
	}
	defer file.Discard()
	done, err := l.writeReport(ctx, file)
	if err == nil {
		err = file.Commit()
	}
	if err != nil {
		return err
	}
	done.File = o.File
	text := fmt.Sprintf("Wrote %s: %s", o.File, command.Plural(done.Trackings, "tracking"))
	if int64(done.Rows) < done.Trackings {
		text += fmt.Sprintf(", %s of them in its table", command.Number(int64(done.Rows)))
	}
	return c.Out.Result(done, "%s", text)
}

func (l *listing) writeReport(ctx context.Context, w io.Writer) (done reportJSON, err error) {
	if err := l.open(ctx); err != nil {
		return done, err
	}
	r := newReporter(l)
	if err := r.read(ctx); err != nil {
		return done, err
	}
	page := r.page(ctx)
	done = reportJSON{Trackings: page.Counts.Total()}
	if done.Rows, err = report.Write(w, page); err != nil {
		return done, fmt.Errorf("write the report: %w", err)
	}
	switch {
	case done.Trackings == 0:
		err = l.explainEmpty(ctx)
	case int64(done.Rows) < done.Trackings:
		l.call.IO.Note("The table has %s of %s trackings: problems and stuck ones first",
			command.Number(int64(done.Rows)), command.Number(done.Trackings))
		l.call.IO.Next(l.call.CommandLine(l.csvWords()...))
	}
	return done, err
}

// csvWords returns the command that writes all trackings as CSV.
func (l *listing) csvWords() []string {
	return slices.Concat([]string{"list"}, l.words, []string{"-o", "csv", "--out", "trackings.csv"})
}

const chartDays = 31

// countDays counts trackings for a page by the day on which their run began, in local time: the last days with any
// singly, all earlier days as one.
func (r *reporter) countDays(p *report.Page) {
	days := slices.SortedFunc(maps.Keys(r.sums.days), time.Time.Compare)
	if len(days) > 0 && days[0].IsZero() {
		p.NoDay = r.sums.days[days[0]].Total()
		days = days[1:]
	}
	if len(days) == 0 {
		return
	}
	first, last := days[0], days[len(days)-1]
	if from := last.AddDate(0, 0, 1-chartDays); first.Before(from) {
		first = from
	}
	before := portion{}
	for _, at := range days {
		if at.Before(first) {
			before.addAll(r.sums.days[at])
		}
	}
	p.Before = report.Bar{Name: "before " + first.Format(time.DateOnly), Split: before.Split}
	for at := first; !at.After(last); at = at.AddDate(0, 0, 1) {
		split := portionOf(r.sums.days, at).Split
		p.Days = append(p.Days, report.Bar{Name: at.Format(time.DateOnly), Axis: at.Format("2 Jan"), Split: split})
	}
}

type reporter struct {
	*listing
	now        time.Time
	stuckSince time.Time // trackings without a movement since then are stuck

	sums  *sums
	stuck int64
	rows  reportRows
}

func newReporter(l *listing) *reporter {
	return &reporter{listing: l, now: time.Now(), stuckSince: l.filter.StuckSince, sums: newSums(l.names)}
}

// read reads the trackings once, so that all numbers agree: the sums of stats, and the rows of the page.
func (r *reporter) read(ctx context.Context) (err error) {
	if r.stuckSince.IsZero() {
		if r.stuckSince, err = command.ParseSince("--stuck", stuckAfter); err != nil {
			return err
		}
	}
	counts := map[ledger.Group]int64{}
	var groups []ledger.Group
	if r.db != nil {
		for st, err := range r.db.Trackings.Statuses(ctx, r.filter) {
			if err != nil {
				return err
			}
			g := ledger.GroupOf(st)
			counts[g]++
			row := newReportRow(st, r.sums.classFor(g.StatusCount))
			if row.stuck = st.StuckSince(r.stuckSince); row.stuck {
				r.stuck++
			}
			r.rows.add(row)
		}
	}
	for g, n := range counts {
		g.Trackings = n
		groups = append(groups, g)
	}
	r.sums.add(groups, r.now)
	return nil
}

func (r *reporter) page(ctx context.Context) *report.Page {
	p := &report.Page{
		Number: command.Number, Title: "Tracking report", Summary: r.sums.summary.String(),
		Stuck: r.stuck, StuckText: "for " + view.Duration(r.now.Sub(r.stuckSince)) + " or more",
		Zone: r.now.Local().Format(zoneOffset), Command: r.call.CommandLine(r.csvWords()...),
	}
	p.Facts = append(p.Facts, report.Fact{Name: "Made", Value: render.LocalTime(r.now)})
	if account := r.call.Account(ctx); account != "" {
		p.Facts = append(p.Facts, report.Fact{Name: "Account", Value: shorten(account, maxFact)})
	}
	if len(r.words) > 0 {
		p.Facts = append(p.Facts, report.Fact{Name: "Filter", Value: shorten(shell.Line(r.words...), maxFact)})
	}
	if len(p.Command) > maxCommand {
		p.Command = "waybill " + shell.Line(r.csvWords()...)
	}
	p.Counts = r.sums.all.Split
	p.Delivered = percent(p.Counts[report.Delivered], p.Counts.Total())
	if p.Counts.Total() == 0 {
		return p
	}
	r.rows.giveTo(p, r)
	r.countDays(p)
	statuses := r.statuses()
	for _, line := range statuses.Lines {
		if line.Split[report.Problem] > 0 {
			p.Exceptions = append(p.Exceptions, line)
		}
	}
	p.Sums = []report.Table{statuses, r.ages(), r.carriers(), r.transit()}
	return p
}

// Maximum lengths of texts in a report, in characters.
const (
	maxFact    = 400
	maxCommand = 2000
	maxName    = 40
)

const maxStatusLines = 20

// addLines adds up to most lines to a table, and sums further lines in one with the name rest.
func addLines(t *report.Table, all []sumLine, most int, rest string, cells func(*portion) []string) {
	others := &portion{}
	for i, line := range all {
		if i < most {
			t.Lines = append(t.Lines, report.Line{Name: line.name, Cells: cells(line.portion), Split: line.Split})
		} else {
			others.addAll(line.portion)
		}
	}
	if n := len(all) - most; n > 0 {
		rest = cmp.Or(rest, command.Number(int64(n))+" others")
		t.Lines = append(t.Lines, report.Line{Name: rest, Cells: cells(others), Split: others.Split})
	}
}

func countAndShare(of int64) func(*portion) []string {
	return func(p *portion) []string { return []string{command.Number(p.Total()), percent(p.Total(), of)} }
}

func (r *reporter) statuses() report.Table {
	t := report.Table{Title: "Statuses", Columns: []string{"Status", "Trackings", "Share"}}
	var all, problems []sumLine
	for name, p := range r.sums.statuses {
		if line := (sumLine{name, p.Total(), p}); p.Split[report.Problem] > 0 {
			problems = append(problems, line)
		} else {
			all = append(all, line)
		}
	}
	most := func(a, b sumLine) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) }
	slices.SortFunc(all, most)
	slices.SortFunc(problems, most)
	cells := countAndShare(r.sums.all.Total())
	addLines(&t, all, maxStatusLines, "", cells)
	addLines(&t, problems, maxStatusLines, "other problems", cells) // no sum hides problems
	slices.SortStableFunc(t.Lines, func(a, b report.Line) int { return cmp.Compare(b.Total(), a.Total()) })
	return t
}

func (r *reporter) ages() report.Table {
	t := report.Table{
		Title: "Age of what is under way", Columns: []string{"Age", "Under way", "With a problem"},
		Note: "Time since the run that created a tracking.",
	}
	for _, age := range r.sums.agesInOrder() {
		all := r.sums.ages[age].Split
		split := report.Split{report.UnderWay: all[report.UnderWay], report.Problem: all[report.Problem]}
		if split.Total() > 0 {
			cells := []string{command.Number(split[report.UnderWay]), command.Number(split[report.Problem])}
			t.Lines = append(t.Lines, report.Line{Name: ageName(age), Cells: cells, Split: split})
		}
	}
	return t
}

func (r *reporter) carriers() report.Table {
	t := report.Table{Title: "Carriers", Columns: []string{"Carrier", "Trackings", "Delivered", "Half within"}}
	var all []sumLine
	for _, p := range r.sums.carriersByCount() {
		all = append(all, sumLine{shorten(cmp.Or(p.name, "not known"), maxName), p.Total(), p})
	}
	addLines(&t, all, maxCarriers, "", func(p *portion) []string {
		return []string{command.Number(p.Total()), percent(p.delivered(), p.Total()), p.transit.typical()}
	})
	return t
}

func (r *reporter) transit() report.Table {
	t := report.Table{Title: "Transit times", Columns: []string{"Days", "Trackings", "Share"}}
	if r.sums.all.transit == nil {
		t.Note = "Known after a response or an event with the checkpoints of a delivered tracking."
		return t
	}
	took := r.sums.all.transit.section()
	t.Note = took.note + " From the first to the last checkpoint of delivered trackings."
	addLines(&t, took.lines, maxTransitDays, "more", countAndShare(took.of))
	return t
}

func shorten(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return strings.Clone(s[:i]) + "…"
		}
	}
	return s
}

// Maximum lengths of texts in a row of a report, in characters: longer than identifiers of any carrier.
const (
	maxIdentifier = 120
	maxText       = 160
)

type reportRow struct {
	*statusClass
	stuck                                     bool
	reference, number, carrier, event, latest string
	own                                       ledger.Own
	checkpoint, moved, updated                time.Time // moved is the checkpoint, else when the row was sent
}

func newReportRow(st ledger.TrackingStatus, s *statusClass) reportRow {
	k := reportRow{
		statusClass: s, reference: shorten(st.Item.ReferID, maxIdentifier), number: shorten(st.Item.Number, maxIdentifier),
		carrier: st.Carrier(), event: st.Reason, moved: st.Sent, own: st.Own,
	}
	if seen := st.Sighting; seen != nil {
		k.event = cmp.Or(view.ErrorText(seen.Error), seen.LatestEvent, k.event)
		k.latest, k.updated, k.checkpoint = shorten(seen.LatestTime, maxName), seen.Seen, seen.Times.Checkpoint
		if !k.checkpoint.IsZero() {
			k.moved = k.checkpoint
		}
	}
	k.event = shorten(k.event, maxText)
	return k
}

// The ranks of rows. Rows of lower rank come first, and stay if there is no room for all.
const (
	rankProblem = iota
	rankStuck
	rankUnderWay
	rankNotReported
	rankDelivered
	ranks
)

func (r *reportRow) rank() int {
	if r.stuck && r.class != report.Problem {
		return rankStuck
	}
	return [...]int{
		report.Problem: rankProblem, report.UnderWay: rankUnderWay,
		report.NotReported: rankNotReported, report.Delivered: rankDelivered,
	}[r.class]
}

func (r *reportRow) size() int {
	return 64 + len(r.reference) + len(r.number) + len(r.carrier) + len(r.event) + len(r.latest) + len(r.own)
}

// reportRows keeps the latest rows of each rank for one page, in bounded memory.
type reportRows struct {
	byRank      [ranks][]reportRow
	rows, bytes int
}

func (s *reportRows) add(row reportRow) {
	rank := row.rank()
	s.byRank[rank] = append(s.byRank[rank], row)
	s.rows++
	s.bytes += row.size()
	for last := ranks - 1; s.rows > report.MaxRows || s.bytes > report.MaxBytes; {
		if len(s.byRank[last]) == 0 {
			last--
			continue
		}
		s.rows--
		s.bytes -= s.byRank[last][0].size()
		s.byRank[last][0] = reportRow{}
		s.byRank[last] = s.byRank[last][1:]
	}
}

const maxListed = 8

// giveTo adds the rows to a page: latest problems, longest stuck trackings, then the trackings created last.
func (s *reportRows) giveTo(p *report.Page, r *reporter) {
	longest := func(a, b reportRow) int { return a.moved.Compare(b.moved) }
	var stuck []reportRow
	for rank := range s.byRank {
		slices.Reverse(s.byRank[rank])
		for _, row := range s.byRank[rank] {
			if row.stuck {
				stuck = append(stuck, row)
			}
		}
	}
	slices.SortStableFunc(s.byRank[rankProblem], func(a, b reportRow) int { return longest(b, a) })
	slices.SortStableFunc(s.byRank[rankStuck], longest)
	slices.SortStableFunc(stuck, longest)
	p.FirstProblems = r.shown(s.byRank[rankProblem][:min(maxListed, len(s.byRank[rankProblem]))])
	p.FirstStuck = r.shown(stuck[:min(maxListed, len(stuck))])
	for _, ranked := range s.byRank {
		p.Rows = append(p.Rows, r.shown(ranked)...)
	}
}

func (r *reporter) shown(rows []reportRow) []report.Row {
	all := make([]report.Row, len(rows))
	for i := range rows {
		all[i] = r.row(&rows[i])
	}
	return all
}

func (r *reporter) row(k *reportRow) report.Row {
	row := report.Row{
		Class: k.class, Reference: k.reference, Number: k.number, Carrier: shorten(k.carrier, maxName), Status: k.name,
		Event: k.event, Checkpoint: r.time(k.checkpoint), Updated: r.time(k.updated), Own: shorten(k.own.String(), maxText),
	}
	if k.stuck {
		row.Stuck = view.Duration(r.now.Sub(k.moved))
	}
	if row.Checkpoint == "" {
		row.Checkpoint = view.ServiceTime(k.latest, render.LocalMinute)
	}
	return row
}

const zoneOffset = "-07:00"

// time formats a time, with its offset if that differs from the page's.
func (r *reporter) time(t time.Time) string {
	layout := "2006-01-02 15:04"
	switch t = t.Local(); {
	case t.IsZero():
		return ""
	case t.Format(zoneOffset) != r.now.Local().Format(zoneOffset):
		layout += " " + zoneOffset
	}
	return t.Format(layout)
}
