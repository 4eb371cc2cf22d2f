package listen

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// Widths in columns of a terminal.
const (
	clockWidth  = len("15:04:05")
	maxCell     = 80 // of any value from outside
	leastCell   = 6  // that a cell is cut to for the sake of an identifier
	gap         = "  "
	wide        = 140
	medium      = 110
	narrow      = 80
	leastNumber = 18 // a number of the length of 1Z999AA10123456784
)

// layout is how wide the cells of an event's line are; a cell of width 0 is left
// out. All but the last are padded.
type layout struct {
	id, number, kind, status, verified, latest int
}

// layoutFor returns the layout for so many columns: the status and the latest event
// are left out where there is no room. 0 is no terminal.
func layoutFor(columns int) layout {
	switch {
	case columns == 0:
		return layout{id: 6, number: 24, kind: 28, status: 18, latest: maxCell}
	case columns >= wide:
		return layout{id: 7, number: 22, kind: 26, status: 22, verified: 24, latest: columns - 121}
	case columns >= medium:
		return layout{id: 7, number: 20, kind: columns - 88, status: 19, verified: 24}
	case columns >= narrow:
		return layout{id: 6, number: leastNumber, kind: columns - 62, verified: 22}
	default:
		return layout{id: 6, number: leastNumber, kind: max(columns-50, leastCell), verified: 10}
	}
}

type lineCell struct {
	text  string // foreign or not
	width int    // 0: left out
	keep  bool   // an identifier: cells behind it give way
	style term.Style
}

// line aligns cells: each is padded, and cut unless it is one to keep. What an
// identifier takes too much is taken from the cells behind it.
func line(out *term.Writer, cells ...lineCell) term.Styled {
	return term.Styled(strings.TrimRight(padded(out, cells...), " "))
}

func padded(out *term.Writer, cells ...lineCell) string {
	var b strings.Builder
	missing := 0 // columns that the cells before took too much
	for _, c := range cells {
		if c.width == 0 {
			continue
		}
		limit := maxCell
		if !c.keep {
			limit = min(c.width, max(c.width-missing, leastCell))
			missing -= c.width - limit
		}
		text := term.Truncate(term.Visible(c.text), limit)
		used, room := term.DisplayWidth(text), min(c.width, limit)
		missing += max(used-room, 0)
		b.WriteString(string(out.Style(c.style, text)) + strings.Repeat(" ", max(room-used, 0)) + gap)
	}
	return b.String()
}

func printHead(out *command.Output) error {
	if out.Machine() || !out.Out().IsTerminal() {
		return nil
	}
	l := layoutFor(out.Out().Width())
	head := func(text string, width int) lineCell { return lineCell{text: text, width: width, style: term.Heading} }
	return out.Line("%s", line(out.Out(), head("TIME", clockWidth), head("ID", l.id), head("NUMBER", l.number), head("EVENT", l.kind),
		head("STATUS", l.status), head("VERIFIED", l.verified), head("LATEST EVENT", l.latest)))
}

// textLine returns a text behind a time and an ID, its first words styled. Where it
// is too long for a terminal it goes on below.
func textLine(out *term.Writer, clock, id string, style term.Style, first, rest string) term.Styled {
	l := layoutFor(out.Width())
	start := padded(out, lineCell{text: clock, width: clockWidth}, lineCell{text: id, width: l.id, keep: true})
	lines := render.Wrap(term.Visible(first+" "+rest), out.Width()-len(start))
	lines[0] = string(out.Style(style, first)) + strings.TrimRight(strings.TrimPrefix(lines[0], first), " ")
	return term.Styled(start + strings.Join(lines, "\n"+strings.Repeat(" ", len(start))))
}
