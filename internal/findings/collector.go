package findings

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Collector collects the findings of an input: rows, then [Collector.Finish]. It
// holds a few findings of each kind; the others, and what rows are compared by,
// are in temporary files without names. It is not safe for concurrent use.
type Collector struct {
	files   []string
	cols    []columns // of each file
	seed    maphash.Seed
	numbers disk.Spill // entries by number
	orders  disk.Spill // entries by order
	forms   map[carriers.Form]*FormCount
	lengths lengths
	rules   map[string]*ruleCount // by group: numbers that only a length tells

	groups map[groupKey]*Group
	spool  *os.File // all findings, a JSON line each; nil before the first
	out    *bufio.Writer
	enc    *json.Encoder
}

type groupKey struct {
	severity Severity
	kind     Kind
}

type columns struct{ ref, number place }

// ruleCount counts the numbers of a length that fit some rule, and that fit none.
type ruleCount struct{ fit, failed int64 }

// New returns a collector. The caller closes it.
func New() *Collector {
	return &Collector{
		seed: maphash.MakeSeed(), forms: map[carriers.Form]*FormCount{}, rules: map[string]*ruleCount{}, groups: map[groupKey]*Group{},
		lengths: lengths{count: map[int]int64{}, zeroFirst: map[int]int64{}},
	}
}

// Add takes a row and what reading found of it. r may be nil.
func (c *Collector) Add(r *intake.Reader, rec intake.Record) error {
	file := c.file(r, rec.File)
	for _, p := range rec.Problems {
		if err := c.report(ofProblem(p)); err != nil {
			return err
		}
	}
	if rec.Hidden {
		f := c.finding(Warning, HiddenRow, place{file: file, line: rec.Line, sheet: c.cols[file].ref.sheet}, "", "the row is hidden, and is read all the same", "delete it if it is not meant, or unhide it")
		if err := c.report(f); err != nil {
			return err
		}
	}
	if !rec.Good() {
		return nil
	}
	at := c.cols[file]
	at.ref.line, at.number.line = rec.Line, rec.Line
	if err := c.examine(rec.Item, at); err != nil {
		return err
	}
	e := entry{number: rec.Item.Number, order: rec.Item.ReferID, file: file, line: rec.Line}
	return c.keep(e, maphash.String(c.seed, tracking.FoldNumber(e.number)), maphash.String(c.seed, foldOrder(e.order)))
}

func (c *Collector) file(r *intake.Reader, name string) int {
	if last := len(c.files) - 1; last >= 0 && c.files[last] == name {
		return last
	}
	at := columns{ref: place{file: len(c.files), header: tracking.FieldReferID}, number: place{file: len(c.files), header: tracking.FieldNumber}}
	if r != nil {
		if sum := r.Summary(); sum.ReferColumn > 0 {
			at.ref.column, at.ref.header, at.ref.sheet = sum.ReferColumn, sum.ReferID, sum.Sheet
			at.number.column, at.number.header, at.number.sheet = sum.NumColumn, sum.Number, sum.Sheet
		}
	}
	c.files, c.cols = append(c.files, name), append(c.cols, at)
	return len(c.files) - 1
}

func (c *Collector) report(f Finding) error {
	if c.spool == nil {
		file, err := disk.Temp()
		if err != nil {
			return fmt.Errorf("keep the findings: %w", err)
		}
		c.spool, c.out = file, bufio.NewWriter(file)
		c.enc = json.NewEncoder(c.out)
	}
	if f.group == "" {
		c.count(f)
	}
	return c.enc.Encode(spooled{f, f.group})
}

type spooled struct {
	Finding
	Group string `json:"group,omitempty"`
}

func (c *Collector) count(f Finding) {
	key := groupKey{f.Severity, f.Kind}
	g := c.groups[key]
	if g == nil {
		g = &Group{Kind: f.Kind, Severity: f.Severity}
		c.groups[key] = g
	}
	g.add(f)
}

// Report is what was found.
type Report struct {
	Groups []Group     // the gravest first
	Forms  []FormCount // most rows first
	c      *Collector
}

// Finish compares the rows with each other and returns what was found.
func (c *Collector) Finish() (*Report, error) {
	if err := errors.Join(c.compareNumbers(), c.compareOrders()); err != nil {
		return nil, err
	}
	if err := c.reportUnknownCarriers(); err != nil {
		return nil, err
	}
	if err := c.countGrouped(); err != nil {
		return nil, err
	}
	r := &Report{c: c}
	for _, g := range c.groups {
		r.Groups = append(r.Groups, *g)
	}
	order := []Severity{Error, Warning, Note}
	slices.SortFunc(r.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Severity), slices.Index(order, b.Severity)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	for _, n := range c.forms {
		r.Forms = append(r.Forms, *n)
	}
	slices.SortFunc(r.Forms, func(a, b FormCount) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Carrier, b.Carrier), cmp.Compare(a.Form, b.Form))
	})
	return r, nil
}

// countGrouped counts the findings that stand and fall with a group.
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
		if c.spool == nil {
			return
		}
		err := c.out.Flush()
		if err == nil {
			_, err = c.spool.Seek(0, io.SeekStart)
		}
		dec := json.NewDecoder(bufio.NewReader(c.spool))
		for err == nil {
			var f spooled
			if err = dec.Decode(&f); err == nil && !yield(f, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(spooled{}, fmt.Errorf("read the findings again: %w", err))
		}
	}
}

// Count returns how many findings of a severity there are.
func (r *Report) Count(severity Severity) int64 {
	var n int64
	for _, g := range r.Groups {
		if g.Severity == severity {
			n += g.Count
		}
	}
	return n
}

// All yields every finding, those of rows in their order.
func (r *Report) All() iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		for f, err := range r.c.spooled() {
			if (err != nil || f.Group == "" || !r.c.dropped(f.Group)) && !yield(f.Finding, err) {
				return
			}
		}
	}
}

// Close removes what was kept.
func (c *Collector) Close() {
	c.numbers.Close()
	c.orders.Close()
	if c.spool != nil {
		_ = c.spool.Close() // nobody reads it again
	}
}
