package render

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/waybill-cli/waybill/internal/term"
)

const (
	pageRows = 1000 // rows that are laid out together
	wideFlex = 40   // columns that a flexible column keeps while less important ones are shown
	wantFlex = 20   // columns that it keeps if it may be left out itself
	usualID  = 36   // columns of the widest identifier that always fits its column, such as a UUID
	maxID    = 64   // columns of the longest identifier that is shown completely
)

// gap is the number of spaces between columns.
const gap = 2

// page is a table on a terminal. It holds rows until there are more than [pageRows], then streams them. tablewriter
// measures and aligns finished cells; it can neither choose which columns to cut or leave out, nor stream rows.
type page struct {
	columns []Column // the shown columns
	places  []int    // index of their cells in a row
	rows    [][]Cell // of visible text
	widths  []int    // of the columns, once rows are written as they come
}

func newPage(columns []Column) *page {
	p := &page{columns: slices.Clone(columns), places: make([]int, len(columns))}
	for i := range p.places {
		p.places[i] = i
	}
	return p
}

func (p *page) begin(*Rows) error { return nil }

func (p *page) row(r *Rows, cells []Cell) error {
	row := make([]Cell, len(p.columns))
	for i, place := range p.places {
		text := strings.TrimRight(term.Visible(cells[place].Text), " ")
		c := p.columns[i]
		if c.ID && len(text) > maxID { // there are at least as many bytes as columns
			text = term.Truncate(text, maxID)
		}
		switch {
		case p.widths == nil:
		case c.Flex && len(text) > p.widths[i]:
			text = term.Truncate(text, p.widths[i])
		case c.ID && isCut(text):
			text = term.Truncate(text, max(p.widths[i], usualID))
		}
		row[i] = Cell{Text: text, Style: cells[place].Style}
	}
	if p.widths != nil {
		return p.line(r, row)
	}
	if len(p.rows) < pageRows {
		p.rows = append(p.rows, row)
		return nil
	}
	if err := p.startStreaming(r); err != nil {
		return err
	}
	return p.row(r, cells)
}

func (p *page) startStreaming(r *Rows) error {
	p.widths = p.fit(r.sink.out.Width())
	return p.writeBuffered(r)
}

func (p *page) writeBuffered(r *Rows) error {
	rows := append([][]Cell{header(p.columns)}, p.rows...)
	p.rows = nil
	for _, row := range rows {
		if err := p.line(r, row); err != nil {
			return err
		}
	}
	return nil
}

// line writes one row in columns of fixed widths. A wider cell moves the following cells, unless there is free space.
func (p *page) line(r *Rows, row []Cell) error {
	start, at := 0, 0 // column start, and current end of the line
	for i, c := range row {
		if c.Text != "" {
			width := term.DisplayWidth(c.Text)
			space := start - at
			if p.columns[i].Right {
				space += p.widths[i] - width
			}
			space = max(space, min(at, 1))
			r.add(term.Styled(strings.Repeat(" ", space)))
			if width == 0 {
				c.Style = term.Normal // as in styled: the text is not visible
			}
			r.add(r.sink.out.Style(c.Style, c.Text))
			at += space + width
		}
		start += p.widths[i] + gap
	}
	r.add("\n")
	return r.sink.ended()
}

func (p *page) end(r *Rows) error {
	if p.widths != nil || len(p.columns) == 0 {
		return nil
	}
	widths := p.fit(r.sink.out.Width())
	if p.needsLines(widths) {
		p.widths = widths
		return p.writeBuffered(r)
	}
	var b bytes.Buffer
	t := tablewriter.NewTable(&b, layout(p.columns)...)
	t.Header(styled(r, header(p.columns)))
	for _, row := range p.rows {
		if err := t.Append(styled(r, row)); err != nil {
			return fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := t.Render(); err != nil {
		return fmt.Errorf("lay out table: %w", err)
	}
	text := strings.ReplaceAll(b.String(), " \x1b[0m", " ") // tablewriter repeats the reset after the padding
	for line := range strings.Lines(text) {
		r.add(term.Styled(strings.TrimRight(line, " \n") + "\n"))
	}
	return nil
}

func styled(r *Rows, row []Cell) []string {
	cells := make([]string, len(row))
	for i, c := range row {
		if cells[i] = c.Text; term.DisplayWidth(c.Text) > 0 { // otherwise nothing is visible
			cells[i] = string(r.sink.out.Style(c.Style, c.Text))
		}
	}
	return cells
}

// fit cuts columns or leaves them out to fit a terminal of width room, see [Rows]. It returns their widths.
func (p *page) fit(room int) []int {
	for i, column := range slices.Backward(p.columns) {
		if column.Sparse && p.isEmpty(i) {
			p.leaveOut(i)
		}
	}
	widths, usual := p.measure()
	for p.need(usual) > room {
		last, _ := p.lastRank()
		if last < 0 {
			break
		}
		p.leaveOut(last)
		widths, usual = slices.Delete(widths, last, last+1), slices.Delete(usual, last, last+1)
	}
	p.cut(widths, usual, room)
	for _, row := range p.rows {
		for i, c := range p.columns {
			if c.Flex || c.ID && isCut(row[i].Text) {
				row[i].Text = term.Truncate(row[i].Text, widths[i])
			}
		}
	}
	return widths
}

// needsLines reports whether tablewriter can't lay out the rows: a cell is wider than its column, such as a long
// identifier, or tablewriter measures it differently, as it counts combined characters one by one.
func (p *page) needsLines(widths []int) bool {
	return slices.ContainsFunc(p.rows, func(row []Cell) bool {
		for i, c := range row {
			width := term.DisplayWidth(c.Text)
			if width > widths[i] || width != twwidth.WidthWithOptions(c.Text, twwidth.Options{}) {
				return true
			}
		}
		return false
	})
}

// isCut reports whether an identifier was too long to be shown in full.
func isCut(text string) bool { return strings.HasSuffix(text, "…") }

// cut reduces the widths in steps until they fit room, starting with the least important columns.
func (p *page) cut(widths, usual []int, room int) {
	over := -gap - room
	order := make([]int, len(widths))
	for i, w := range widths {
		over += w + gap
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return p.columns[b].Rank - p.columns[a].Rank })
	steps := []struct{ flex, id int }{{wideFlex, maxID}, {wideFlex, 0}, {wantFlex, usualID}, {16, 30}, {8, 24}}
	for _, step := range steps {
		for _, i := range order {
			least := p.columns[i].least(widths[i], step.flex, step.id)
			if step.id == 0 {
				least = min(widths[i], usual[i])
			}
			width := max(widths[i]-max(over, 0), least)
			over -= widths[i] - width
			widths[i] = width
		}
	}
}

// need returns the width of the page with its columns cut, but flexible ones only to the width that they keep.
func (p *page) need(usual []int) int {
	_, highest := p.lastRank()
	total := -gap
	for i, c := range p.columns {
		flex := wideFlex
		if c.Rank == highest {
			flex = wantFlex
		}
		total += c.least(usual[i], flex, usualID) + gap
	}
	return total
}

// least returns the width to which a column may be cut if flexible columns keep flex and identifiers id.
func (c Column) least(width, flex, id int) int {
	switch {
	case c.Flex:
		return min(width, max(term.DisplayWidth(term.Visible(c.Name)), flex))
	case c.ID:
		return min(width, max(term.DisplayWidth(term.Visible(c.Name)), id))
	}
	return width
}

// lastRank returns the next column to leave out, empty ones first, and its rank; -1 if all must stay.
func (p *page) lastRank() (last, highest int) {
	last, highest = -1, 1
	for i, c := range p.columns {
		rank := c.Rank
		if rank > 0 && p.isEmpty(i) {
			rank = math.MaxInt
		}
		if rank >= highest {
			last, highest = i, rank
		}
	}
	return last, highest
}

func (p *page) leaveOut(column int) {
	p.columns, p.places = slices.Delete(p.columns, column, column+1), slices.Delete(p.places, column, column+1)
	for i, row := range p.rows {
		p.rows[i] = slices.Delete(row, column, column+1)
	}
}

func (p *page) isEmpty(i int) bool {
	return !slices.ContainsFunc(p.rows, func(row []Cell) bool { return row[i].Text != "" })
}

// measure returns the width that each column needs for its header and rows, and the width without identifiers wider
// than [usualID], which is [usualID] if most of them are wider.
func (p *page) measure() (widths, usual []int) {
	widths, usual = make([]int, len(p.columns)), make([]int, len(p.columns))
	wide := make([]int, len(p.columns))
	for _, row := range append(p.rows, header(p.columns)) {
		for i, c := range row {
			width := term.DisplayWidth(c.Text)
			widths[i] = max(widths[i], width)
			if !p.columns[i].ID || width <= usualID {
				usual[i] = max(usual[i], width)
			} else {
				wide[i]++
			}
		}
	}
	for i, n := range wide {
		if n > len(p.rows)/2 {
			usual[i] = usualID
		}
	}
	return widths, usual
}

func header(columns []Column) []Cell {
	row := make([]Cell, len(columns))
	for i, c := range columns {
		row[i] = Cell{Text: term.Visible(c.Name), Style: term.Heading}
	}
	return row
}

// layout returns the options of a table without borders that leaves cells unchanged.
func layout(columns []Column) []tablewriter.Option {
	aligned := make(tw.Alignment, len(columns))
	for i, c := range columns {
		aligned[i] = tw.AlignLeft
		if c.Right {
			aligned[i] = tw.AlignRight
		}
	}
	return []tablewriter.Option{
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithTrimSpace(tw.Off),
		tablewriter.WithTrimLine(tw.Off),
		tablewriter.WithTrimTab(tw.Off),
		tablewriter.WithPadding(tw.Padding{Right: "  ", Overwrite: true}),
		tablewriter.WithAlignment(aligned),
		tablewriter.WithEastAsian(tw.Off), // widths as term measures them
	}
}
