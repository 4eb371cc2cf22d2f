// Package render turns plain values into what a user asked for: tables and fields for people, JSON, JSON Lines and
// CSV for programs, filtered by jq if wanted, and XLSX workbooks. It decides nothing about the values.
//
// Text given to it may be foreign. In human output it is made visible, in JSON escaped, in CSV for Excel kept from
// being run. Every error of a write is returned; [term.ErrClosed] means that the reader went away.
package render

import (
	"fmt"
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Format is a form of output.
type Format string

// The forms of output.
const (
	Table Format = "table" // for people
	JSON  Format = "json"  // one value
	JSONL Format = "jsonl" // a value a line
	CSV   Format = "csv"
	XLSX  Format = "xlsx" // a workbook, a sheet for each table
)

// Options say how results are printed. The zero value prints tables.
type Options struct {
	Format string // a [Format]; empty for table
	JQ     string // filter of JSON output, empty for none; with table it makes the format json
	Excel  byte   // CSV is what Excel opens by double click, cells separated by this; 0 if not
	Title  string // name of the sheets of a workbook
	Live   bool   // each element is written when it is added: somebody is waiting for it
}

// Printer prints results in one format. Its methods are used one after another.
type Printer struct {
	out    *term.Writer
	format Format
	query  *query // nil for none
	excel  byte
	live   bool
	book   *workbook // nil but for a workbook
}

// New returns a Printer. The error is a [*JQError] for an expression that does not compile or fit the format.
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

// IsFalse reports whether the last result of jq is false or null, or there was none.
func (p *Printer) IsFalse() bool { return p.query.last == nil || p.query.last == false }

// Excel reports whether CSV is made for Excel, or a workbook is.
func (p *Printer) Excel() bool { return p.excel != 0 || p.format == XLSX }

// Text adds text to a workbook that is in no table, each line in a row.
func (p *Printer) Text(text string) error {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if err := p.book.line(strings.TrimRight(line, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// Close ends a workbook with a sheet; else it does nothing. cut is how many texts were longer than a cell.
func (p *Printer) Close() (cut int64, err error) {
	if p.book == nil || p.book.sheets == 0 {
		return 0, nil
	}
	err = p.book.w.Close()
	return p.book.w.Cut(), err
}

// Out returns where results go.
func (p *Printer) Out() *term.Writer { return p.out }

// Table begins a table of many rows, or CSV or a sheet if that is the format.
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

// maxBuffered is how many bytes wait at most before they are written.
const maxBuffered = 64 << 10

type sink struct {
	out    *term.Writer
	styled bool // what is written holds styles
	live   bool // nothing waits
	buf    []byte
}

// ended is called when an element is whole in the buffer.
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
