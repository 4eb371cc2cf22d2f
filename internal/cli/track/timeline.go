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
	"github.com/waybill-cli/waybill/internal/tracking"
)

type stop struct {
	when, utc, event, note string
	place, short           string // with and without the ZIP code
}

// Widths of a timeline on a terminal, in columns.
const (
	timelineGap = 2  // between columns
	minEvent    = 16 // minimum for an event on narrow terminals
	minPlace    = 16 // minimum for a place
)

// drawTimeline prints a timeline with the anomalies below each checkpoint. If it is too wide, it drops UTC first, then
// ZIP codes, and then wraps events and places.
func drawTimeline(out *command.Output, entries []tracking.Entry) error {
	stops := []stop{{when: "LOCAL TIME", utc: "UTC", event: "EVENT", place: "PLACE", short: "PLACE"}}
	for _, e := range entries {
		s := stop{
			when: term.Visible(view.CheckpointTime(e.Checkpoint)), utc: term.Visible(view.UTCMinute(e.UTC)),
			event: term.Visible(e.Event), place: term.Visible(view.Place(e.Checkpoint)),
		}
		e.ZIP = ""
		s.short = term.Visible(view.Place(e.Checkpoint))
		if len(e.Anomalies) > 0 {
			s.note = term.Visible("! " + view.Anomalies(e.Anomalies))
		}
		stops = append(stops, s)
	}
	widths, whole := widthsOf(stops, out.Out().Width())
	if !whole {
		for i := range stops {
			stops[i].place = stops[i].short
		}
		widths, _ = widthsOf(stops, out.Out().Width())
	}
	var text term.Styled
	for i, s := range stops {
		styles := [...]term.Style{term.Normal, term.Faint, term.Normal, term.Normal}
		if i == 0 {
			styles = [...]term.Style{term.Heading, term.Heading, term.Heading, term.Heading}
		}
		var cells [len(widths)][]part
		for j, text := range [...]string{s.when, s.utc, s.event, s.place} {
			cells[j] = lines(text, widths[j], styles[j])
		}
		cells[2] = append(cells[2], lines(s.note, widths[2], term.Caution)...)
		text += drawCells(out.Out(), cells[:], widths[:])
	}
	return out.Out().Printf("%s", text)
}

// widthsOf returns the columns' widths, 0 for a dropped column, and whether all events and places fit on one line.
func widthsOf(stops []stop, room int) (widths [4]int, whole bool) {
	var when, utc, event, place, note int
	for _, s := range stops {
		when, utc = max(when, term.DisplayWidth(s.when)), max(utc, term.DisplayWidth(s.utc))
		event, place = max(event, term.DisplayWidth(s.event)), max(place, term.DisplayWidth(s.place))
		note = max(note, term.DisplayWidth(s.note))
	}
	room -= when + 2*timelineGap // left for events and places
	if withUTC := room - utc - timelineGap; event+place <= withUTC {
		room = withUTC
	} else {
		utc = 0
	}
	whole = event+place <= room
	place = min(place, max(room-event, room*2/5, minPlace))
	event = min(max(event, note), max(room-place, minEvent))
	return [...]int{when, utc, event, place}, whole
}

func lines(text string, width int, style term.Style) []part {
	if text == "" || width == 0 {
		return nil
	}
	var parts []part
	for _, line := range render.Wrap(text, width) {
		parts = append(parts, part{term.Truncate(line, width), style})
	}
	return parts
}

func drawCells(w *term.Writer, cells [][]part, widths []int) (text term.Styled) {
	height := 0
	for _, c := range cells {
		height = max(height, len(c))
	}
	for i := range height {
		space := 0
		for j, c := range cells {
			if widths[j] == 0 {
				continue
			}
			own := 0
			if i < len(c) {
				own = term.DisplayWidth(c[i].text)
				text += term.Styled(strings.Repeat(" ", space)) + w.Style(c[i].style, c[i].text)
				space = 0
			}
			space += widths[j] - own + timelineGap
		}
		text += "\n"
	}
	return text
}

type part struct {
	text  string
	style term.Style
}

func printLabel(out *command.Output, n view.StatusFormatter, t query.Tracking, now time.Time) error {
	at, place, latest := view.ServiceTime(t.LatestTime, render.LocalMinute), "", t.LatestEvent
	if timeline := t.Timeline(); len(timeline) > 0 {
		at, place, latest = view.CheckpointTime(timeline[0].Checkpoint), view.Place(timeline[0].Checkpoint), ""
	}
	if at != "" && place != "" {
		at += ", "
	}
	fresh, transit, unverified := "", "", ""
	if !t.Learnt.IsZero() {
		fresh = "received " + view.Ago(t.Learnt, now) + " by " + view.Source(t.Source)
	}
	if d := t.Transit(); d > 0 {
		transit = view.Duration(d) + " in transit"
	}
	if t.Unverified != nil {
		unverified = n.Unverified(*t.Unverified) + "; it changes nothing"
	}
	number := strings.TrimSpace(cmp.Or(t.CarrierCode, t.SentCarrier) + " " + t.Number)
	return errors.Join(
		printParts(out, " · ", part{t.ReferID, term.Heading}, part{number, term.Heading}),
		printParts(out, "  ", part{n.Phase(t), n.PhaseStyle(t)}, part{at + place, term.Normal}),
		printParts(out, " · ", part{fresh, cmp.Or(view.FreshStyle(t, now), term.Faint)}, part{transit, term.Faint}),
		out.Fields([]render.Field{
			{Name: "Reason", Value: t.Reason},
			{Name: "Error", Value: t.Error, Style: term.Bad},
			{Name: "Latest event", Value: latest},
			{Name: "Unverified", Value: unverified, Style: term.Caution},
		}),
	)
}

// printParts prints the non-empty parts in one line, or in several on a narrow terminal.
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
