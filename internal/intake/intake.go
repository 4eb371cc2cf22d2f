// Package intake reads orders from XLSX, CSV, TSV, JSON and JSON Lines into items to create, each with its place. It
// changes only the white space around a value, guesses nothing silently, and holds one record at a time.
package intake

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Format is a file format of rows.
type Format string

// Formats. In [Options] the empty format means [Auto].
const (
	Auto  Format = "auto" // by content; the file name breaks ties
	CSV   Format = "csv"
	TSV   Format = "tsv"
	JSON  Format = "json"  // an array of items, or an object whose data is an array
	JSONL Format = "jsonl" // consecutive objects
	XLSX  Format = "xlsx"  // one sheet of a workbook
	List  Format = "list"  // with [Options.Refs], one REF per line without a header
)

// Limits on what is held in memory.
const (
	MaxRecord   = 1 << 20 // bytes in one record or header, decoded
	MaxCarriers = 1000    // distinct carrier names that are counted individually
)

// FieldCarrier stands for a column of carrier names. Only their codes in [Options] are sent.
const FieldCarrier = "carrier"

// errorColumn is the column, or JSON field, that [Rejects] adds and that is never read.
const errorColumn = "waybillError"

// ErrNoRows reports that the input has no data rows: it is empty, an empty array, or only a header.
var ErrNoRows = errors.New("no data rows")

// Options says how to read an input. The zero value reads UTF-8 in any format.
type Options struct {
	tracking.Rules

	// Map names the column of a field: referId, rawTrackingNumber, carrierCode or [FieldCarrier]. JSON has fixed names
	// and ignores it.
	Map map[string]string

	Encoding    string            // such as windows-1252; empty for UTF-8, or the encoding of a byte order mark
	StripSpaces bool              // remove spaces inside tracking numbers
	Carriers    map[string]string // from name, in any case, or code to the code sent; "" omits it
	Format      Format
	Sheet       string // of a workbook: its name, or its number from 1; empty for the only one that fits
	Own         bool   // keep the columns of a table that are not sent: see [Record]
	KeepText    bool   // also keep the text of good rows, so that [Rejects] can write them

	// Refs reads references to trackings instead of items to create: one column or field with a referId or a number is
	// enough, and others are ignored. Plain texts, one a line or in a JSON array, are read too. Odd values are accepted.
	Refs bool
}

// Problem is an error, or a note, at one place of an input. Message and Hint have no invisible foreign characters;
// Header and Value are as read, Value cut if it is long.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // physical line of the cell or field, 1-based; 0 for the whole file
	Column int    `json:"column,omitempty"` // 1-based: a CSV column, in JSON a character of the line; 0 for the whole row
	Sheet  string `json:"sheet,omitempty"`  // of a workbook; line is then the row's number
	Cell   string `json:"cell,omitempty"`   // of a table: its address, such as B17; empty for the whole row
	Header string `json:"header,omitempty"` // name of the column, or path of the JSON field; empty for the whole row
	tracking.Problem
	Row int `json:"row,omitempty"` // of a table, as a spreadsheet numbers it, 1-based
}

// Record is one row of an input.
type Record struct {
	File     string
	Line     int           // physical line on which it starts, 1-based
	Row      int           // of a table, as a spreadsheet numbers it, 1-based; 0 for JSON
	Item     tracking.Item // to be sent only if the record is good
	Ref      string        // with [Options.Refs], a plain text: a referId or a number; Item is then empty
	Hidden   bool          // the sheet hides this row
	Own      string        // values of the columns that are kept but not sent: a JSON object of strings; empty if none
	Carrier  string        // name in the column of carrier names, as read; empty if none
	Problems []Problem

	text  string      // the row in its own dialect, without line end and error column; empty if not kept
	cells []xlsx.Cell // the row of a sheet; nil if not kept
}

// RowPlace names a record as a spreadsheet does, "orders.csv row 35 (B35)", or without a row as editors do.
func RowPlace(file string, line, row int, cell string) string {
	if row == 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	at := fmt.Sprintf("%s row %d", file, row)
	switch {
	case cell != "" && line != row:
		at += fmt.Sprintf(" (%s, line %d)", cell, line)
	case cell != "":
		at += " (" + cell + ")"
	case line != row:
		at += fmt.Sprintf(" (line %d)", line)
	}
	return at
}

// Good reports whether the record can be sent: all problems are notes.
func (rec Record) Good() bool {
	return !slices.ContainsFunc(rec.Problems, func(p Problem) bool { return !p.Note })
}

// Carrier is a carrier name that occurs in some rows.
type Carrier struct {
	Name string // as read, without surrounding white space
	Rows int64
}

// Summary describes what a [Reader] has found and done so far.
type Summary struct {
	Rows        int64     // records returned
	Sheet       string    // of a workbook: the sheet that was read
	OtherSheets []string  // visible sheets with cells that lack the columns
	HiddenSheet bool      // Sheet is hidden
	HeaderRow   int       // row of the header, 0 without one; for text its line, 0 if nothing precedes it
	HiddenRows  int64     // hidden rows; they are read like others
	HiddenCols  []string  // names of the hidden columns, as in the header
	Filtered    bool      // Sheet has a filter set
	AsNumbers   int64     // identifiers stored as numbers in the workbook
	Padded      int64     // of these, shown by a number format with leading zeros or text, and read so
	Bad         int64     // records returned that are not good
	Empty       int64     // rows skipped because all their cells are empty; blank lines are not counted
	Exchanged   int64     // good rows whose two identifiers look like each other: see [tracking.Item.Exchanged]
	Trimmed     int64     // values whose surrounding white space was removed
	Stripped    int64     // tracking numbers from which inner spaces were removed
	Hidden      []string  // columns in use whose names contain invisible characters
	Ignored     []string  // names of the columns not sent, as in the header
	Own         []string  // of these, the columns kept with their rows
	OwnLong     int64     // their values longer than MaxOwnText, which are not kept
	OwnLatin    int64     // their values that are not UTF-8, kept as decoded from Windows-1252
	Missing     []string  // with [Options.Refs], columns of [Options.Map] that the header lacks
	LeftOut     []Carrier // carrier names without a code, most rows first; at most MaxCarriers
	LeftOutMore int64     // rows with further names without a code
	ReferID     string    // name of the column of referIds; empty for JSON, or if there is none
	Number      string    // name of the column of tracking numbers; empty as above
	ReferColumn int       // its number, 1-based; 0 for JSON, or if there is none
	NumColumn   int       // of the column of tracking numbers; 0 as above
	Format      Format
	AcceptOdd   bool   // as in [Options]
	Encoding    string // such as utf-8
	Delimiter   rune   // 0 for JSON
}

// rows reads one format. It returns errEnd at the end.
type rows interface {
	next() (Record, error)
}

// Reader reads the rows of one input. It is not safe for concurrent use.
type Reader struct {
	name     string
	rows     rows
	sum      Summary
	carriers *carriers // nil if there are no rows
	dialect  dialect
	book     *table // set for a workbook; nil for other inputs
	release  []func()
	err      error // how reading ended; nil before
}

// Close releases what a reader holds. Next does that itself before it returns an error.
func (r *Reader) Close() {
	for _, release := range slices.Backward(r.release) {
		release()
	}
	r.release = nil
}

// Next returns the next row. A bad row is a record with problems. At the end it returns [io.EOF], or [ErrNoRows] if
// there was no row. A [*FileError] or an error of the reader also ends reading; later calls return the same error.
func (r *Reader) Next() (Record, error) {
	if r.err != nil {
		return Record{}, r.err
	}
	rec, err := Record{}, errEnd
	if r.rows != nil {
		rec, err = r.rows.next()
	}
	if err != nil {
		if errors.Is(err, errEnd) {
			err = io.EOF
			if r.sum.Rows == 0 {
				err = fmt.Errorf("%s: %w", showName(r.name), ErrNoRows)
			}
		}
		r.err = err
		r.Close()
		return Record{}, err
	}
	r.sum.Rows++
	if len(rec.Problems) > 0 && !rec.Good() {
		r.sum.Bad++
	} else if rec.Item.Exchanged() {
		r.sum.Exchanged++
	}
	return rec, nil
}

// One returns the record of an item that is in no file, checked as if read from a file, and its summary.
func (o Options) One(name string, it tracking.Item) (Record, Summary) {
	sum := Summary{Rows: 1, AcceptOdd: o.AcceptOdd}
	it.CarrierCode = newCarriers(o).fromCode([]byte(it.CarrierCode))
	if o.StripSpaces {
		it.Number = stripSpaces(it.Number, &sum)
	}
	rec := Record{File: name, Line: 1, Item: it}
	for _, p := range it.Validate(o.Rules) {
		rec.Problems = append(rec.Problems, Problem{File: name, Line: 1, Problem: p})
	}
	if rec.Good() && it.Exchanged() {
		sum.Exchanged++
	}
	return rec, sum
}

// Swapped reports whether the identifiers of all good rows look exchanged: an error unless odd values are accepted.
func (s Summary) Swapped() bool {
	return !s.AcceptOdd && s.Exchanged > 0 && s.Exchanged == s.Rows-s.Bad
}

// ExchangedText says that the identifiers look exchanged, and what to do; empty unless most rows do.
func (s Summary) ExchangedText() (message, hint string) {
	if s.Exchanged*2 <= s.Rows && !s.Swapped() {
		return "", ""
	}
	hint = "swap the two fields if so"
	if s.ReferID != "" {
		hint = "if the columns are swapped, add --map referId=" + shell.Word(s.Number) +
			" --map rawTrackingNumber=" + shell.Word(s.ReferID)
	}
	if s.Swapped() {
		hint += "; if not, --accept-odd-values sends them as they are"
	}
	return fmt.Sprintf("in %d of %s, referId looks like a tracking number and the number like an order",
		s.Exchanged, plural(int(s.Rows), "row")), hint
}

const shownNames = 8

// LeftOutText says which carrier names are not used, and what to do; empty if there are none.
func (s Summary) LeftOutText() (message, hint string) {
	if len(s.LeftOut) == 0 {
		return "", ""
	}
	rows := s.LeftOutMore
	var names []string
	for i, l := range s.LeftOut {
		if rows += l.Rows; i < shownNames {
			names = append(names, fmt.Sprintf("%s (%d)", tracking.Quote(l.Name), l.Rows))
		}
	}
	if more := len(s.LeftOut) - shownNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more names", more))
	}
	return fmt.Sprintf("carrier names not used (%s): %s", plural(int(rows), "row"), strings.Join(names, ", ")),
		"the service detects carriers; --carrier-map " + shell.Word(s.LeftOut[0].Name) + "=CODE sends one"
}

// Summary returns the findings so far; it is complete once Next has returned an error.
func (r *Reader) Summary() Summary {
	s := r.sum
	if r.carriers != nil {
		s.LeftOut, s.LeftOutMore = r.carriers.leftOut()
	}
	return s
}
