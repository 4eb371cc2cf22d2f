package track

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// reporter collects what a report shows.
type reporter struct {
	*listing
	now        time.Time
	stuckSince time.Time // trackings that did not move since are stuck
	masked     bool
	identifiers

	groups    []ledger.Group
	sums      *sums
	stuck     int64
	rows      reportRows
	standings map[ledger.StatusCount]*standing
}

// standing is how a report shows trackings of one status.
type standing struct {
	class report.Class
	name  string // empty until all are read
}

func newReporter(l *listing, masked bool) *reporter {
	return &reporter{listing: l, now: time.Now(), stuckSince: l.filter.StuckSince, masked: masked, standings: map[ledger.StatusCount]*standing{}}
}

// read reads the trackings once, so that all numbers agree while others write. Their sums
// are those of stats; of the rows it keeps as many as a page has.
func (r *reporter) read(ctx context.Context) (err error) {
	if r.stuckSince.IsZero() {
		if r.stuckSince, err = command.ParseSince("--stuck", stuckAfter); err != nil {
			return err
		}
	}
	if r.db != nil {
		if err := r.readTrackings(ctx, r.call.Account(ctx)); err != nil {
			return err
		}
	}
	if r.masked && r.db != nil {
		if err := r.findIdentifiers(ctx); err != nil {
			return err
		}
	}
	r.sums = newSums(r.names, r.groups, r.now)
	r.summary = view.NewSummary(r.names)
	for _, g := range r.groups {
		r.summary.AddCount(r.maskStatus(g.StatusCount))
	}
	for c, s := range r.standings {
		s.name = r.summary.Name(r.maskStatus(c))
	}
	return nil
}

// readTrackings reads the trackings that match, as rows and as groups.
func (r *reporter) readTrackings(ctx context.Context, account string) error {
	counts := map[ledger.Group]int64{}
	for st, err := range r.db.Trackings.Statuses(ctx, account, r.filter) {
		if err != nil {
			return err
		}
		g := ledger.GroupOf(st)
		g.Trackings = 0
		counts[g]++
		stuck := st.StuckSince(r.stuckSince)
		if stuck {
			r.stuck++
		}
		r.rows.add(r.newRow(st, stuck))
	}
	runs, err := r.db.Statistics.LatestRuns(ctx, account, math.MaxInt32)
	if err != nil {
		return err
	}
	created := map[int64]time.Time{}
	for _, run := range runs {
		created[run.ID] = run.Created
	}
	for g, n := range counts {
		g.Trackings, g.Created = n, created[g.Run]
		r.groups = append(r.groups, g)
	}
	return nil
}

// standing returns how trackings of a status are shown.
func (r *reporter) standing(c ledger.StatusCount) *standing {
	c.Trackings = 0
	s := r.standings[c]
	if s == nil {
		s = &standing{class: r.class(c)}
		r.standings[c] = s
	}
	return s
}

// class returns how trackings of a status stand.
func (r *reporter) class(c ledger.StatusCount) report.Class {
	st := ledger.TrackingStatus{State: c.State, Superseded: c.Superseded}
	if c.Dismissed {
		st.Dismissed = r.now
	}
	if c.Phase != "" {
		st.Sighting = &ledger.Sighting{Phase: c.Phase, Status: c.Status, StatusLabel: c.StatusLabel, StatusTrack: c.StatusTrack}
	}
	t := view.Known(st)
	switch style := r.names.PhaseStyle(t); {
	case st.Sighting != nil && st.Sighting.Delivered():
		return report.Delivered
	case style == term.Bad, style == term.Caution:
		return report.Problem
	case t.Phase == ledger.Processed:
		return report.UnderWay
	}
	return report.NotReported
}

// page returns what the report shows.
func (r *reporter) page(ctx context.Context) *report.Page {
	p := &report.Page{
		Number: view.Number, Title: "Tracking report", Masked: r.masked,
		Summary: r.summary.String(), Stuck: r.stuck, StuckText: "for " + view.Duration(r.now.Sub(r.stuckSince)) + " or more",
		Zone: r.now.Local().Format(zoneOffset), Command: r.csvCommand(),
	}
	p.Facts = append(p.Facts, report.Fact{Name: "Made", Value: render.LocalTime(r.now)})
	if account := r.call.Account(ctx); account != "" && !r.masked {
		p.Facts = append(p.Facts, report.Fact{Name: "Account", Value: shorten(account, maxFact)})
	}
	if words := r.shownWords(); len(words) > 0 {
		p.Facts = append(p.Facts, report.Fact{Name: "Filter", Value: shorten(shell.Line(words...), maxFact)})
	}
	if r.masked || len(p.Command) > maxCommand {
		p.Command = shell.Line(slices.Concat([]string{"waybill", "list"}, r.shownWords(), []string{"-o", "csv", "--out", "trackings.csv"})...)
	}
	byStatus, byAge, byCarrier := map[string]report.Split{}, map[int]report.Split{}, map[string]report.Split{}
	for _, g := range r.groups {
		s := r.standing(g.StatusCount)
		p.Counts[s.class] += g.Trackings
		addTo(byStatus, s.name, s.class, g.Trackings)
		addTo(byCarrier, strings.ToLower(g.Carrier), s.class, g.Trackings)
		if s.class == report.UnderWay || s.class == report.Problem {
			addTo(byAge, ageOfGroup(g, r.now), s.class, g.Trackings)
		}
	}
	p.Delivered = percent(p.Counts[report.Delivered], p.Counts.Total())
	if p.Counts.Total() == 0 {
		return p
	}
	r.rows.giveTo(p, r)
	p.Periods, p.NoPeriod = r.periods()
	statuses := r.statuses(byStatus)
	for _, line := range statuses.Lines {
		if line.Split[report.Problem] > 0 {
			p.Exceptions = append(p.Exceptions, line)
		}
	}
	p.Sums = []report.Table{statuses, ages(byAge), r.carriers(byCarrier), r.transit()}
	return p
}

// Lengths of texts in a report, in characters.
const (
	maxFact    = 400
	maxCommand = 2000
	maxName    = 40
)

// addTo adds trackings of a class to those of a key.
func addTo[K comparable](all map[K]report.Split, key K, class report.Class, n int64) {
	split := all[key]
	split[class] += n
	all[key] = split
}

// shownWords are the flags of the filter, in a masked report without values that may name
// a tracking.
func (r *reporter) shownWords() []string {
	if !r.masked {
		return r.words
	}
	words := slices.Clone(r.words)
	for i := range words {
		if i > 0 && slices.Contains([]string{"--status", "--carrier", "--refer-id"}, words[i-1]) {
			words[i] = redact.Mask
		}
	}
	return words
}

// maxStatusLines is how many statuses a report lists.
const maxStatusLines = 20

// statuses lists how many trackings have which status.
func (r *reporter) statuses(by map[string]report.Split) report.Table {
	t := report.Table{Title: "Statuses", Columns: []string{"Status", "Trackings", "Share"}}
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].Total(), by[a].Total()), cmp.Compare(a, b))
	})
	for i, name := range names {
		line := report.Line{Name: name, Split: by[name]}
		if i >= maxStatusLines {
			last := &t.Lines[len(t.Lines)-1]
			if i == maxStatusLines {
				t.Lines = append(t.Lines, report.Line{})
				last = &t.Lines[len(t.Lines)-1]
			}
			for c, n := range line.Split {
				last.Split[c] += n
			}
			last.Name = view.Number(int64(len(names)-maxStatusLines)) + " others"
			continue
		}
		t.Lines = append(t.Lines, line)
	}
	for i := range t.Lines {
		n := t.Lines[i].Total()
		t.Lines[i].Cells = []string{view.Number(n), percent(n, r.sums.all.trackings)}
	}
	return t
}

// ages lists how old what is not delivered is.
func ages(by map[int]report.Split) report.Table {
	t := report.Table{
		Title: "Age of what is under way", Columns: []string{"Age", "Under way", "With a problem"},
		Note: "Time since the run that created a tracking.",
	}
	for _, age := range agesInOrder(by) {
		split := by[age]
		t.Lines = append(t.Lines, report.Line{Name: ageName(age), Cells: []string{view.Number(split[report.UnderWay]), view.Number(split[report.Problem])}, Split: split})
	}
	return t
}

// carriers lists the carriers with the most trackings.
func (r *reporter) carriers(by map[string]report.Split) report.Table {
	t := report.Table{Title: "Carriers", Columns: []string{"Carrier", "Trackings", "Delivered", "Half within"}}
	all := r.sums.carriersByCount()
	rest := portion{}
	var others report.Split
	for i, p := range all {
		split := by[strings.ToLower(p.name)]
		if i < maxCarriers {
			name := shorten(r.maskText(cmp.Or(p.name, "not known")), maxName)
			t.Lines = append(t.Lines, carrierLine(name, p, split))
			continue
		}
		rest.trackings += p.trackings
		rest.delivered += p.delivered
		for c, n := range split {
			others[c] += n
		}
	}
	if len(all) > maxCarriers {
		t.Lines = append(t.Lines, carrierLine(view.Number(int64(len(all)-maxCarriers))+" others", &rest, others))
	}
	return t
}

func carrierLine(name string, p *portion, split report.Split) report.Line {
	return report.Line{Name: name, Cells: []string{view.Number(p.trackings), percent(p.delivered, p.trackings), p.transit.typical()}, Split: split}
}

// transit lists how long delivered trackings took.
func (r *reporter) transit() report.Table {
	t := report.Table{Title: "Transit times", Columns: []string{"Days", "Trackings", "Share"}}
	sections := r.sums.sections(true)
	i := slices.IndexFunc(sections, func(s section) bool { return s.title == "transit time" })
	if i < 0 {
		t.Note = "Known after a response or an event with the checkpoints of a delivered tracking."
		return t
	}
	took := sections[i]
	t.Note = took.note + " From the first to the last checkpoint of delivered trackings."
	var rest int64
	for n, line := range took.lines {
		if n >= maxTransitDays {
			rest += line.trackings
			continue
		}
		t.Lines = append(t.Lines, transitLine(line.name, line.trackings, took.of))
	}
	if rest > 0 {
		t.Lines = append(t.Lines, transitLine("more", rest, took.of))
	}
	return t
}

func transitLine(name string, n, of int64) report.Line {
	return report.Line{Name: name, Cells: []string{view.Number(n), percent(n, of)}, Split: report.Split{report.Delivered: n}}
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
