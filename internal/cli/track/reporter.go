package track

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/shell"
)

type reporter struct {
	*listing
	now        time.Time
	stuckSince time.Time // trackings that did not move since are stuck

	sums  *sums
	stuck int64
	rows  reportRows
}

func newReporter(l *listing) *reporter {
	return &reporter{listing: l, now: time.Now(), stuckSince: l.filter.StuckSince, sums: newSums(l.names)}
}

// read reads the trackings once, so that all numbers agree while others write. Their sums
// are those of stats; of the rows it keeps as many as a page has.
func (r *reporter) read(ctx context.Context) (err error) {
	if r.stuckSince.IsZero() {
		if r.stuckSince, err = command.ParseSince("--stuck", stuckAfter); err != nil {
			return err
		}
	}
	counts := map[ledger.Group]int64{}
	var groups []ledger.Group
	if r.db != nil {
		for st, err := range r.db.Trackings.Statuses(ctx, r.call.Account(ctx), r.filter) {
			if err != nil {
				return err
			}
			g := ledger.GroupOf(st)
			counts[g]++
			stuck := st.StuckSince(r.stuckSince)
			if stuck {
				r.stuck++
			}
			r.rows.add(newReportRow(st, r.sums.standing(g.StatusCount), stuck))
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
		Number: command.Number, Title: "Tracking report",
		Summary: r.sums.summary.String(), Stuck: r.stuck, StuckText: "for " + view.Duration(r.now.Sub(r.stuckSince)) + " or more",
		Zone: r.now.Local().Format(zoneOffset), Command: r.csvCommand(),
	}
	p.Facts = append(p.Facts, report.Fact{Name: "Made", Value: render.LocalTime(r.now)})
	if account := r.call.Account(ctx); account != "" {
		p.Facts = append(p.Facts, report.Fact{Name: "Account", Value: shorten(account, maxFact)})
	}
	if len(r.words) > 0 {
		p.Facts = append(p.Facts, report.Fact{Name: "Filter", Value: shorten(shell.Line(r.words...), maxFact)})
	}
	if len(p.Command) > maxCommand {
		p.Command = shell.Line(slices.Concat([]string{"waybill", "list"}, r.words, []string{"-o", "csv", "--out", "trackings.csv"})...)
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

// Lengths of texts in a report, in characters.
const (
	maxFact    = 400
	maxCommand = 2000
	maxName    = 40
)

const maxStatusLines = 20

// addLines adds lines to a table; those beyond a number are one, which rest names.
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
		t.Lines = append(t.Lines, report.Line{Name: cmp.Or(rest, command.Number(int64(n))+" others"), Cells: cells(others), Split: others.Split})
	}
}

func countAndShare(of int64) func(*portion) []string {
	return func(p *portion) []string { return []string{command.Number(p.trackings()), percent(p.trackings(), of)} }
}

func (r *reporter) statuses() report.Table {
	t := report.Table{Title: "Statuses", Columns: []string{"Status", "Trackings", "Share"}}
	var all []sumLine
	for name, p := range r.sums.statuses {
		all = append(all, sumLine{name, p.trackings(), p})
	}
	slices.SortFunc(all, func(a, b sumLine) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name)) })
	addLines(&t, all, maxStatusLines, "", countAndShare(r.sums.all.trackings()))
	return t
}

// ages lists how old what is not delivered is.
func (r *reporter) ages() report.Table {
	t := report.Table{
		Title: "Age of what is under way", Columns: []string{"Age", "Under way", "With a problem"},
		Note: "Time since the run that created a tracking.",
	}
	for _, age := range r.sums.agesInOrder() {
		split := report.Split{report.UnderWay: r.sums.ages[age].Split[report.UnderWay], report.Problem: r.sums.ages[age].Split[report.Problem]}
		if split.Total() > 0 {
			t.Lines = append(t.Lines, report.Line{Name: ageName(age), Cells: []string{command.Number(split[report.UnderWay]), command.Number(split[report.Problem])}, Split: split})
		}
	}
	return t
}

func (r *reporter) carriers() report.Table {
	t := report.Table{Title: "Carriers", Columns: []string{"Carrier", "Trackings", "Delivered", "Half within"}}
	var all []sumLine
	for _, p := range r.sums.carriersByCount() {
		all = append(all, sumLine{shorten(cmp.Or(p.name, "not known"), maxName), p.trackings(), p})
	}
	addLines(&t, all, maxCarriers, "", func(p *portion) []string {
		return []string{command.Number(p.trackings()), percent(p.delivered(), p.trackings()), p.transit.typical()}
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

// shorten returns a text of at most so many characters.
func shorten(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return strings.Clone(s[:i]) + "…"
		}
	}
	return s
}
