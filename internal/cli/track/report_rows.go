package track

import (
	"cmp"
	"slices"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/report"
)

// Lengths of texts of a row in a report, in characters: beyond any carrier's identifiers, and rows stay bounded.
const (
	maxIdentifier = 120
	maxText       = 160
)

type reportRow struct {
	*statusClass
	stuck                                     bool
	reference, number, carrier, event, latest string
	own                                       ledger.Own
	checkpoint, moved, updated                time.Time // moved is the checkpoint, else when it was sent
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

// The ranks of rows: the first stand first, and are kept where there is no room for all.
const (
	rankProblem = iota
	rankStuck
	rankUnderWay
	rankNotReported
	rankDelivered
	ranks
)

func (r *reportRow) rank() int {
	switch {
	case r.class == report.Problem:
		return rankProblem
	case r.stuck:
		return rankStuck
	case r.class == report.UnderWay:
		return rankUnderWay
	case r.class == report.NotReported:
		return rankNotReported
	}
	return rankDelivered
}

func (r *reportRow) size() int {
	return 64 + len(r.reference) + len(r.number) + len(r.carrier) + len(r.event) + len(r.latest) + len(r.own)
}

// reportRows keeps rows in bounded memory: those for one page, the latest of each rank.
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

// giveTo gives the rows to a page, in its order: the latest problems and those that are
// stuck for the longest time first, then the trackings that were created last.
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

// time shows a time, with its offset if that is not the one of the page.
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
