package track

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

type part struct {
	text  string
	style term.Style
}

// printLabel shows on a terminal which tracking it is, its status, and how fresh
// that is.
func printLabel(out *command.Output, n view.StatusNames, t query.Tracking, now time.Time) error {
	at, place := view.ServiceTime(t.LatestTime, render.LocalMinute), ""
	timeline := t.Timeline()
	if len(timeline) > 0 {
		at, place = view.CheckpointTime(timeline[0].Checkpoint), view.Place(timeline[0].Checkpoint)
	}
	if at != "" && place != "" {
		at += ", "
	}
	fresh, transit := "", ""
	if !t.Learnt.IsZero() {
		fresh = "updated " + view.Ago(t.Learnt, now) + " by " + view.Source(t.Source)
	}
	if d := t.Transit(); d > 0 {
		transit = view.Duration(d) + " in transit"
	}
	fields := []render.Field{
		{Name: "Reason", Value: t.Reason},
		{Name: "Error", Value: t.Error, Style: term.Bad},
	}
	if len(timeline) == 0 {
		fields = append(fields, render.Field{Name: "Latest event", Value: t.LatestEvent})
	}
	if t.Unverified != nil {
		fields = append(fields, render.Field{Name: "Unverified", Value: n.Unverified(*t.Unverified) + "; it changes nothing", Style: term.Caution})
	}
	number := strings.TrimSpace(cmp.Or(t.CarrierCode, t.SentCarrier) + " " + t.Number)
	return errors.Join(
		printParts(out, " · ", part{t.ReferID, term.Heading}, part{number, term.Heading}),
		printParts(out, "  ", part{n.Phase(t), n.PhaseStyle(t)}, part{at + place, term.Normal}),
		printParts(out, " · ", part{fresh, cmp.Or(view.FreshStyle(t, now), term.Faint)}, part{transit, term.Faint}),
		out.Fields(fields),
	)
}

// printParts prints the parts that are not empty as one line, or as several where
// the terminal is too narrow.
func printParts(out *command.Output, separator string, parts ...part) error {
	var line []any
	width := 0
	for _, p := range parts {
		if p.text == "" {
			continue
		}
		own := term.DisplayWidth(term.Visible(p.text))
		switch width += term.DisplayWidth(separator) + own; {
		case line == nil:
			width = own
		case width > out.Out().Width():
			width, line = own, append(line, term.Styled("\n"))
		default:
			line = append(line, term.Styled(separator))
		}
		line = append(line, out.Out().Style(p.style, p.text))
	}
	if line == nil {
		return nil
	}
	return out.Line(strings.Repeat("%s", len(line)), line...)
}
