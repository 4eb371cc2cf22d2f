// Package render prints values in the requested format: tables and fields for people, JSON, JSON Lines and CSV for
// programs, optionally filtered by jq, and XLSX workbooks. It makes no decisions about the values.
//
// Text may be foreign. It is made visible in human output, escaped in JSON, and kept from being executed in CSV for
// Excel. All write errors are returned; [term.ErrClosed] means that the reader has closed.
package render

import (
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Format is an output format.
type Format string

// The output formats.
const (
	Table Format = "table" // for people
	JSON  Format = "json"  // one value
	JSONL Format = "jsonl" // one value per line
	CSV   Format = "csv"
	XLSX  Format = "xlsx" // a workbook, one sheet per table
)

// Options configure how results are printed. The zero value prints tables.
type Options struct {
	Format string // a [Format]; empty for table
	JQ     string // filter for JSON output, empty for none; with table it implies json
	Excel  byte   // cell separator of CSV that Excel opens by double click; 0 for plain CSV
	Title  string // name of the sheets of a workbook
	Live   bool   // write each element immediately: somebody is waiting for it
}

// Printer prints results in one format. It is not safe for concurrent use.
type Printer struct {
	out    *term.Writer
	format Format
	query  *query // nil for none
	excel  byte
	live   bool
	book   *workbook // only for a workbook; else nil
}

// New returns a Printer. The error is a [*JQError] if the expression does not compile or the format can't be filtered.
func New(out *term.Writer, o Options) (*Printer, error) {
	p := &Printer{out: out, format: Format(o.Format), excel: o.Excel, live: o.Live}
	switch p.format {
	case "":
		p.format = Table
	case Table, JSON, JSONL, CSV:
	case XLSX:
		p.book = &workbook{w: xlsx.NewWriter(out), title: o.Title}
	default:
		return nil, fmt.Errorf("output %q: want table, json, jsonl, csv or xlsx", o.Format)
	}
	if o.JQ == "" {
		return p, nil
	}
	if p.format == CSV || p.format == XLSX {
		return nil, &JQError{Expr: o.JQ, Err: errFormat}
	}
	if p.format == Table {
		p.format = JSON
	}
	var err error
	p.query, err = compile(o.JQ)
	return p, err
}

// NewTables returns a Printer that prints tables.
func NewTables(out *term.Writer) *Printer { return &Printer{out: out, format: Table} }

// Format returns the format in effect.
func (p *Printer) Format() Format { return p.format }

// Machine reports whether the format is json or jsonl.
func (p *Printer) Machine() bool { return p.format == JSON || p.format == JSONL }

// IsFalse reports whether the last result of jq was false or null, or there was no result.
func (p *Printer) IsFalse() bool { return p.query.last == nil || p.query.last == false }

// Excel reports whether the output is CSV for Excel or a workbook.
func (p *Printer) Excel() bool { return p.excel != 0 || p.format == XLSX }

// Text adds text outside tables to a workbook, each line as a row.
func (p *Printer) Text(text string) error {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if err := p.book.line(strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// Close completes a workbook that has a sheet; else it does nothing. cut counts the texts that were cut to fit a cell.
func (p *Printer) Close() (cut int64, err error) {
	if p.book == nil || p.book.sheets == 0 {
		return 0, nil
	}
	err = p.book.w.Close()
	return p.book.w.Cut(), err
}

// Out returns the Writer that results are printed to.
func (p *Printer) Out() *term.Writer { return p.out }

// Table begins a table of many rows: a sheet or CSV in these formats, else a text table.
func (p *Printer) Table(columns ...Column) *Rows {
	var r *Rows
	if p.book != nil {
		r = p.book.table(columns...)
	} else if p.format == CSV {
		r = newCSV(p.out, p.excel, columns)
	} else {
		r = NewTable(p.out, columns...)
	}
	r.sink.live = p.live
	return r
}

// maxBuffered is the number of buffered bytes that causes a write.
const maxBuffered = 64 << 10

type sink struct {
	out    *term.Writer
	styled bool // the output contains styles
	live   bool // nothing is buffered
	buf    []byte
}

// ended is called when an element is complete in the buffer.
func (s *sink) ended() error {
	if s.live || len(s.buf) >= maxBuffered {
		return s.flush()
	}
	return nil
}

func (s *sink) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	write := s.out.Write
	if s.styled {
		write = s.out.WriteStyled
	}
	_, err := write(s.buf)
	s.buf = s.buf[:0]
	return err
}
