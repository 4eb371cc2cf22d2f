package render

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/waybill-cli/waybill/internal/term"
)

const (
	pageRows = 1000 // rows that are laid out together
	wantFlex = 20   // columns that a flexible column keeps while others can be left out
	minFlex  = 8    // columns that it keeps at all
	maxID    = 64   // columns that an identifier takes; a longer one is none that a person could use
)

// gap is how many columns of space are between columns.
const gap = 2

// page is a table on a terminal. Its rows are held until there are more than
// go on a page.
type page struct {
	columns []Column // that are shown
	places  []int    // where their cells stand in a row
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
		limit := len(text) // bytes are at least as many as columns
		switch {
		case p.columns[i].ID:
			limit = maxID
		case p.columns[i].Flex && p.widths != nil:
			limit = p.widths[i]
		}
		if len(text) > limit {
			text = term.Truncate(text, limit)
		}
		row[i] = Cell{text, cells[place].Style}
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

// startStreaming goes over to writing rows as they come.
func (p *page) startStreaming(r *Rows) error {
	p.widths = p.fit(r.sink.out.Width())
	rows := append([][]Cell{p.header()}, p.rows...)
	p.rows = nil
	for _, row := range rows {
		if err := p.line(r, row); err != nil {
			return err
		}
	}
	return nil
}

// line writes one row in columns of fixed widths. A cell that is wider moves what
// follows, as far as there is no space to make up for it.
func (p *page) line(r *Rows, row []Cell) error {
	start, at := 0, 0 // of the column, and where the line ends so far
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
				c.Style = term.Normal // as on a page: nothing is there to be seen
			}
			r.add(r.sink.out.Style(c.Style, c.Text))
			at += space + width
		}
		start += p.widths[i] + gap
	}
	r.add("\n")
	return r.sink.ended()
}

// end lays out a page and writes it.
func (p *page) end(r *Rows) error {
	if p.widths != nil || len(p.columns) == 0 {
		return nil
	}
	p.fit(r.sink.out.Width())
	var b bytes.Buffer
	t := tablewriter.NewTable(&b, layout(p.columns)...)
	var held placeholders
	t.Header(held.replace(r, p.header()))
	for _, row := range p.rows {
		if err := t.Append(held.replace(r, row)); err != nil {
			return fmt.Errorf("lay out table: %w", err)
		}
	}
	if err := t.Render(); err != nil {
		return fmt.Errorf("lay out table: %w", err)
	}
	for line := range strings.Lines(b.String()) {
		r.add(held.restore(strings.TrimRight(line, " \n")) + "\n")
	}
	return nil
}

// fit leaves out columns and cuts flexible ones where the page is wider than a
// terminal of so many columns. It returns how wide they are then.
func (p *page) fit(room int) []int {
	widths := p.measure()
	for p.leastWidth(widths) > room {
		last := p.lastRank()
		if last < 0 {
			break
		}
		p.columns, p.places, widths = slices.Delete(p.columns, last, last+1), slices.Delete(p.places, last, last+1), slices.Delete(widths, last, last+1)
		for i, row := range p.rows {
			p.rows[i] = slices.Delete(row, last, last+1)
		}
	}
	over := -gap - room
	for _, w := range widths {
		over += w + gap
	}
	if over <= 0 {
		return widths
	}
	for _, least := range []int{wantFlex, minFlex} {
		for i, c := range p.columns {
			width := max(widths[i]-max(over, 0), c.leastWidth(widths[i], least))
			over -= widths[i] - width
			widths[i] = width
		}
	}
	for _, row := range p.rows {
		for i, c := range p.columns {
			if c.Flex {
				row[i].Text = term.Truncate(row[i].Text, widths[i])
			}
		}
	}
	return widths
}

// leastWidth returns how wide the page is with its flexible columns cut.
func (p *page) leastWidth(widths []int) int {
	total := -gap
	for i, c := range p.columns {
		total += c.leastWidth(widths[i], wantFlex) + gap
	}
	return total
}

// leastWidth returns to how much a column of some width may be cut, if flexible ones
// keep so much.
func (c Column) leastWidth(width, least int) int {
	if !c.Flex {
		return width
	}
	return min(width, max(term.DisplayWidth(term.Visible(c.Name)), least))
}

// lastRank returns the column that is the next to be left out: one without a cell
// before others. It is -1 if all must stay.
func (p *page) lastRank() int {
	last, highest := -1, 1
	for i, c := range p.columns {
		rank := c.Rank
		if rank > 0 && !slices.ContainsFunc(p.rows, func(row []Cell) bool { return row[i].Text != "" }) {
			rank = math.MaxInt
		}
		if rank >= highest {
			last, highest = i, rank
		}
	}
	return last
}

// measure returns how wide each column must be for its header and its rows.
func (p *page) measure() []int {
	widths := make([]int, len(p.columns))
	for _, row := range append(p.rows, p.header()) {
		for i, c := range row {
			widths[i] = max(widths[i], term.DisplayWidth(c.Text))
		}
	}
	return widths
}

func (p *page) header() []Cell {
	row := make([]Cell, len(p.columns))
	for i, c := range p.columns {
		row[i] = Cell{term.Visible(c.Name), term.Heading}
	}
	return row
}

// layout returns the options of a table without borders that leaves cells as
// they are.
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

// placeholder is a character of one column that no visible text holds.
const placeholder = '\ufdd0'

// placeholders replace cells while the table is laid out: the layout counts
// single characters, where a reader sees several as one, and extends colours
// into the padding.
type placeholders struct {
	texts []term.Styled // in the order in which they are written
}

// replace returns the cells of a row for the layout.
func (p *placeholders) replace(r *Rows, row []Cell) []string {
	cells := make([]string, len(row))
	for i, c := range row {
		width := term.DisplayWidth(c.Text)
		if width == 0 || width == len(c.Text) && c.Style == term.Normal {
			cells[i] = c.Text
			continue
		}
		p.texts = append(p.texts, r.sink.out.Style(c.Style, c.Text))
		cells[i] = strings.Repeat(string(placeholder), width)
	}
	return cells
}

var placeholderRun = regexp.MustCompile(string(placeholder) + "+")

// restore puts the texts of one line back.
func (p *placeholders) restore(line string) term.Styled {
	return term.Styled(placeholderRun.ReplaceAllStringFunc(line, func(string) string {
		text := p.texts[0]
		p.texts = p.texts[1:]
		return string(text)
	}))
}
