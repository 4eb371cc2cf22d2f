package render

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/waybill-cli/waybill/internal/term"
)

const (
	pageRows = 1000 // rows that are laid out together
	gap      = 2    // columns of space between columns
	minFlex  = 8    // columns that a flexible column keeps
	maxID    = 64   // columns that an identifier takes; a longer one is none that a person could use
)

// page is a table on a terminal. Its rows are held until there are more than
// go on a page.
type page struct {
	rows   [][]cell
	widths []int // of the columns, once rows are written as they come
}

type cell struct {
	text  string // visible
	style term.Style
}

func (p *page) begin(*Rows) error { return nil }

func (p *page) row(r *Rows, cells []string) error {
	row := make([]cell, len(cells))
	for i, c := range cells {
		text := strings.TrimRight(term.Visible(c), " ")
		if r.columns[i].ID {
			text = term.Truncate(text, maxID)
		}
		row[i] = cell{text, r.style(i, c)}
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
	return p.line(r, row)
}

// startStreaming goes over to writing rows as they come.
func (p *page) startStreaming(r *Rows) error {
	p.widths = p.measure(r)
	rows := append([][]cell{header(r)}, p.rows...)
	p.rows = nil
	for _, row := range rows {
		if err := p.line(r, row); err != nil {
			return err
		}
	}
	return nil
}

// line writes one row in columns of fixed widths. A cell that is wider moves
// the rest of its line.
func (p *page) line(r *Rows, row []cell) error {
	space := 0
	for i, c := range row {
		free := max(p.widths[i]-term.DisplayWidth(c.text), 0)
		if r.columns[i].Right {
			space, free = space+free, 0
		}
		if c.text != "" {
			r.add(term.Styled(strings.Repeat(" ", space)))
			r.add(r.sink.out.Style(c.style, c.text))
			space = 0
		}
		space += free + gap
	}
	r.add("\n")
	return r.sink.ended()
}

// end lays out a page and writes it.
func (p *page) end(r *Rows) error {
	if p.widths != nil || len(r.columns) == 0 {
		return nil
	}
	p.fit(r)
	var b bytes.Buffer
	t := tablewriter.NewTable(&b, layout(r.columns)...)
	var held placeholders
	t.Header(held.replace(r, header(r)))
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

// fit cuts flexible columns, the first ones first, if the page is wider than
// the terminal, though not below what makes them readable.
func (p *page) fit(r *Rows) {
	widths := p.measure(r)
	over := -gap - r.sink.out.Width()
	for _, w := range widths {
		over += w + gap
	}
	for i, c := range r.columns {
		if !c.Flex || over <= 0 {
			continue
		}
		width := max(widths[i]-over, term.DisplayWidth(c.Name), minFlex)
		over -= max(widths[i]-width, 0)
		for _, row := range p.rows {
			row[i].text = term.Truncate(row[i].text, width)
		}
	}
}

// measure returns how wide each column must be for its header and its rows.
func (p *page) measure(r *Rows) []int {
	widths := make([]int, len(r.columns))
	for _, row := range append(p.rows, header(r)) {
		for i, c := range row {
			widths[i] = max(widths[i], term.DisplayWidth(c.text))
		}
	}
	return widths
}

func header(r *Rows) []cell {
	row := make([]cell, len(r.columns))
	for i, c := range r.columns {
		row[i] = cell{term.Visible(c.Name), term.Heading}
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
func (p *placeholders) replace(r *Rows, row []cell) []string {
	cells := make([]string, len(row))
	for i, c := range row {
		width := term.DisplayWidth(c.text)
		if width == 0 || width == len(c.text) && c.style == term.Normal {
			cells[i] = c.text
			continue
		}
		p.texts = append(p.texts, r.sink.out.Style(c.style, c.text))
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
