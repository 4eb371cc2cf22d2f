// Package findings reports errors and oddities in the rows of an input before it is sent, in words for people: each
// finding with its place, and grouped by kind. It changes nothing, and keeps no rows.
package findings

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/xlsx"
)

// Severity is the consequence of a finding for the row.
type Severity string

// Severities, the gravest first.
const (
	Error   Severity = "error"   // the row is not sent
	Warning Severity = "warning" // it is sent unchanged, and is probably wrong
	Note    Severity = "note"    // it is sent unchanged, and is probably intended
)

// Kind is the subject of a finding.
type Kind string

// Kinds. If an input can't be read at all, its reader returns an error instead.
const (
	BadRow         Kind = "bad-row" // a rule of the service, or the shape of the row
	Damaged        Kind = tracking.KindDamaged
	Placeholder    Kind = tracking.KindPlaceholder
	Invisible      Kind = tracking.KindInvisible
	WhiteSpace     Kind = tracking.KindSpace
	CarrierName    Kind = tracking.KindCarrierName
	Unusual        Kind = "unusual"          // some other note on a good row
	CheckDigit     Kind = "check-digit"      // it is wrong in every form that the number has
	UnknownCarrier Kind = "unknown-carrier"  // most numbers of one length fit no published rule
	LookAlike      Kind = "look-alike"       // a wrong character, such as one that looks like the right one
	LowerCase      Kind = "lower-case"       // letters that carriers write as capitals
	LostZeros      Kind = "lost-zeros"       // leading zeros are missing
	NoForm         Kind = "no-form"          // not a form of tracking numbers
	OtherCarrier   Kind = "other-carrier"    // the number is of another carrier than the row
	SeveralInCell  Kind = "several-in-cell"  // more than one number in a cell
	Markup         Kind = "markup"           // HTML entities, tags, percent signs of a URL
	Quotes         Kind = "quotes"           // quotes around the value
	Contradiction  Kind = "contradiction"    // one tracking with two carrier codes
	SharedNumber   Kind = "shared-number"    // one number under two orders
	Spelling       Kind = "spelling"         // the same number or order written in two ways
	RepeatedRow    Kind = "repeated-row"     // the same row twice: sent once
	SeveralNumbers Kind = "several-numbers"  // an order with several numbers
	HiddenRow      Kind = "hidden-row"       // the sheet does not show the row
	HiddenColumn   Kind = "hidden-column"    // the sheet does not show a column in use
	Exchanged      Kind = "exchanged"        // the two columns appear to be exchanged
	UnusedColumn   Kind = "unused-column"    // not read
	LeftOut        Kind = "carrier-left-out" // names of carriers that are not sent
)

// Finding is one problem or oddity in one place.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     Kind     `json:"kind"`
	intake.Problem

	group string // the group with which the finding may be dropped; empty for none
}

// Shown is the maximum number of findings in [Group.First].
const Shown = 20

// Group has all findings of a kind and severity.
type Group struct {
	Kind     Kind      `json:"kind"`
	Severity Severity  `json:"severity"`
	Count    int64     `json:"count"`
	First    []Finding `json:"first"` // the first ones of the input, at most [Shown]
}

// byPlace compares findings by file, in the order of reading, by line and by column. Of equal ones the first is less.
func (c *Collector) byPlace(a, b Finding) int {
	if a.File != b.File {
		return c.indexOf(a.File) - c.indexOf(b.File)
	}
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), -1)
}

func (c *Collector) indexOf(file string) int {
	return slices.IndexFunc(c.cols, func(at columns) bool { return at.ref.File == file })
}

// FormCount counts the numbers of good rows that have a form.
type FormCount struct {
	Carrier string `json:"carrier"` // "unknown" for numbers without a known form
	Form    string `json:"form,omitempty"`
	Rows    int64  `json:"rows"`
	Wrong   int64  `json:"wrong"` // of these, with a wrong check digit
}

func ofProblem(p intake.Problem) Finding {
	f := Finding{Severity: Error, Kind: BadRow, Problem: p}
	f.Header = cmp.Or(p.Header, p.Field)
	if p.Note {
		f.Severity, f.Kind = Warning, Unusual
	}
	if p.Kind != "" {
		f.Kind = Kind(p.Kind)
	}
	if kind, message, hint := severalInCell(p.Value, p.Field); f.Kind == WhiteSpace && kind != "" {
		f.Kind, f.Message, f.Hint = kind, message, hint
	}
	return f
}

// with returns a finding at the place of f.
func (f Finding) with(severity Severity, kind Kind, value, message, hint string) Finding {
	f.Severity, f.Kind, f.Message, f.Hint = severity, kind, message, hint
	f.Value = strings.Clone(intake.Shorten(value))
	if f.Row > 0 && f.Column > 0 {
		f.Cell = xlsx.Address(f.Column-1, f.Row)
	}
	return f
}

func (c *Collector) atEntry(e entry) string {
	return intake.RowPlace(c.cols[e.file].number.File, e.line, e.row, "")
}

// Collector collects the findings of an input: add its rows, then call [Collector.Finish]. It holds a few findings of
// each kind; unnamed temporary files hold the others, and the data to compare rows. It is not safe for concurrent use.
type Collector struct {
	cols    []columns // per file
	keeper  *keeper
	forms   map[carriers.Form]*FormCount
	lengths lengths
	rules   map[string]*ruleCount // by group: numbers recognized only by their length
	codes   map[string]bool       // whether a carrier code or name belongs to a carrier whose forms are known

	contradictory map[Row]Finding

	groups []Group
	spool  *os.File     // findings, a JSON line each; nil while all are held
	buffer bytes.Buffer // findings not yet in spool
	err    error        // the first error of keeping findings: no more are kept
}

// maxBuffer is the size of findings, in bytes, that is held without a file: few findings need no temporary folder.
const maxBuffer = 1 << 20

// columns holds the places of a row's order and number, for [Finding.with].
type columns struct{ ref, number Finding }

type ruleCount struct{ fit, failed int64 }

// New returns a collector. Callers must close it.
func New() *Collector {
	return &Collector{
		keeper: newKeeper(),
		forms:  map[carriers.Form]*FormCount{},
		rules:  map[string]*ruleCount{},
		codes:  map[string]bool{},

		contradictory: map[Row]Finding{},
		lengths:       lengths{count: map[int]int64{}, zeroFirst: map[int]int64{}},
	}
}

// Add examines a row and adds the problems that reading found in it. r may be nil.
func (c *Collector) Add(r *intake.Reader, rec intake.Record) error {
	file := c.file(r, rec.File)
	for _, p := range rec.Problems {
		c.report(ofProblem(p))
	}
	if rec.Hidden {
		row := Finding{Problem: intake.Problem{File: rec.File, Line: rec.Line, Row: rec.Row, Sheet: c.cols[file].ref.Sheet}}
		c.report(row.with(Warning, HiddenRow, "", "the row is hidden, and is read all the same",
			"delete it if it is not meant, or unhide it"))
	}
	if rec.Good() {
		it := rec.Item
		e := entry{number: it.Number, order: it.ReferID, carrier: it.CarrierCode, file: file, line: rec.Line, row: rec.Row}
		e.unlike = c.examine(rec, c.placesOf(e))
		c.keeper.add(e)
	}
	return c.err
}

func (c *Collector) file(r *intake.Reader, name string) int {
	if last := len(c.cols) - 1; last >= 0 && c.cols[last].ref.File == name {
		return last
	}
	var at columns
	at.ref.File, at.ref.Header, at.number.File, at.number.Header = name, tracking.FieldReferID, name, tracking.FieldNumber
	if r != nil {
		if sum := r.Summary(); sum.ReferColumn > 0 {
			at.ref.Column, at.ref.Header, at.ref.Sheet = sum.ReferColumn, sum.ReferID, sum.Sheet
			at.number.Column, at.number.Header, at.number.Sheet = sum.NumColumn, sum.Number, sum.Sheet
		}
	}
	c.cols = append(c.cols, at)
	return len(c.cols) - 1
}

// report counts and keeps a finding, unless keeping an earlier one failed.
func (c *Collector) report(f Finding) {
	if c.err != nil {
		return
	}
	if f.group == "" {
		c.count(f)
	}
	err := json.NewEncoder(&c.buffer).Encode(spooled{f, f.group})
	if err == nil && c.buffer.Len() >= maxBuffer {
		if c.spool == nil {
			c.spool, err = disk.Temp()
		}
		if err == nil {
			_, err = c.buffer.WriteTo(c.spool)
		}
	}
	if err != nil {
		c.err = fmt.Errorf("keep the findings: %w", err)
	}
}

type spooled struct {
	Finding
	Group string `json:"group,omitempty"`
}

func (c *Collector) count(f Finding) {
	i := slices.IndexFunc(c.groups, func(g Group) bool { return g.Kind == f.Kind && g.Severity == f.Severity })
	if i < 0 {
		i = len(c.groups)
		c.groups = append(c.groups, Group{Kind: f.Kind, Severity: f.Severity})
	}
	g := &c.groups[i]
	g.Count++
	at, _ := slices.BinarySearchFunc(g.First, f, c.byPlace)
	if at < Shown {
		g.First = slices.Insert(g.First, at, f)
		g.First = g.First[:min(len(g.First), Shown)]
	}
}

// Report is the result of a [Collector].
type Report struct {
	Groups        []Group         // the gravest first
	Forms         []FormCount     // most rows first
	Contradictory map[Row]Finding // the rows with a [Contradiction]
	c             *Collector
}

// Row is a row of an input.
type Row struct {
	File string
	Line int
	Item tracking.Item
}

// Finish compares the rows with each other and returns all findings.
func (c *Collector) Finish() (*Report, error) {
	if err := c.keeper.end(); err != nil {
		return nil, fmt.Errorf("compare the rows: %w", err)
	}
	byOrder := func(list []entry) {
		grouped(list, func(e entry) string { return foldOrder(e.order) }, c.compareOrder)
	}
	if err := errors.Join(c.compareNumbers(), eachPart(&c.keeper.orders, byOrder)); err != nil {
		return nil, err
	}
	c.reportUnknownCarriers()
	if err := cmp.Or(c.err, c.countGrouped()); err != nil {
		return nil, err
	}
	r := &Report{Groups: c.groups, Contradictory: c.contradictory, c: c}
	order := []Severity{Error, Warning, Note}
	slices.SortFunc(r.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)),
			cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	for _, n := range c.forms {
		r.Forms = append(r.Forms, *n)
	}
	slices.SortFunc(r.Forms, func(a, b FormCount) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Carrier, b.Carrier), cmp.Compare(a.Form, b.Form))
	})
	return r, nil
}

func (c *Collector) countGrouped() error {
	if len(c.rules) == 0 {
		return nil
	}
	for f, err := range c.spooled() {
		if err != nil {
			return err
		}
		if f.Group != "" && !c.dropped(f.Group) {
			c.count(f.Finding)
		}
	}
	return nil
}

func (c *Collector) spooled() iter.Seq2[spooled, error] {
	return func(yield func(spooled, error) bool) {
		var r io.Reader = bytes.NewReader(c.buffer.Bytes())
		if c.spool != nil {
			r = io.MultiReader(bufio.NewReader(io.NewSectionReader(c.spool, 0, math.MaxInt64)), r)
		}
		dec := json.NewDecoder(r)
		for {
			var f spooled
			switch err := dec.Decode(&f); {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(spooled{}, fmt.Errorf("read the findings again: %w", err))
				return
			case !yield(f, nil):
				return
			}
		}
	}
}

// Count returns the number of findings of a severity.
func (r *Report) Count(severity Severity) int64 {
	var n int64
	for _, g := range r.Groups {
		if g.Severity == severity {
			n += g.Count
		}
	}
	return n
}

// All yields every finding, the findings about single rows in the order of the rows.
func (r *Report) All() iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		for f, err := range r.c.spooled() {
			if (err != nil || f.Group == "" || !r.c.dropped(f.Group)) && !yield(f.Finding, err) {
				return
			}
		}
	}
}

// Close removes the temporary files.
func (c *Collector) Close() {
	_ = c.keeper.end() // Finish returns its error
	c.keeper.numbers.Close()
	c.keeper.orders.Close()
	_ = c.spool.Close() // nobody reads it again; nil while all are held
}
