package track

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
)

// printer prints results as they come: one row for each tracking, or its whole
// timeline; one REF alone with its timeline, at the end.
type printer struct {
	call     *command.Call
	names    view.StatusNames
	single   bool
	timeline bool
	keep     func(query.Ending) bool // which results rows show; nil for all
	limit    int                     // results that rows show at most, the first in order; 0 for all

	only    *query.Ending  // of single
	list    *render.List   // of JSON
	rows    *rows          // of a table or CSV
	first   []query.Ending // of limit
	more    int64          // rows beyond limit
	summary *view.Summary
	older   []string // notes on answers that are older than events, the first ones
	olders  int64
	beside  unverified
}

func newPrinter(c *command.Call, p printer) (*printer, error) {
	p.call, p.names = c, view.NewStatusNames(c.Config.Statuses)
	p.summary = view.NewSummary(p.names)
	asRows := c.Out.IsCSV() || c.Cmd.Flags().Changed("columns")
	var err error
	switch {
	case c.Out.Machine():
		if !p.single {
			p.list = c.Out.BeginList()
		}
	case asRows, !p.single && !p.timeline:
		p.rows, err = newRows(c.Out, p.names)
	}
	return &p, err
}

func (p *printer) add(e query.Ending) error {
	p.note(e.Result)
	p.summary.AddResult(e.Result)
	switch {
	case p.single:
		p.only = &e
		return nil
	case p.list != nil:
		return p.list.Add(p.names.Answer(e.Result))
	case p.rows != nil && p.keep != nil && !p.keep(e):
		return nil
	case p.rows != nil && p.limit > 0:
		p.hold(e)
		return nil
	case p.rows != nil:
		return p.rows.add(linesOf(e))
	}
	return errors.Join(printResult(p.call.Out, p.names, e.Result), p.call.Out.Line(""))
}

// hold keeps a result if it is one of the first.
func (p *printer) hold(e query.Ending) {
	i, _ := slices.BinarySearchFunc(p.first, e.Target.Pos, func(e query.Ending, pos int64) int { return cmp.Compare(e.Target.Pos, pos) })
	p.first = slices.Insert(p.first, i, e)
	if len(p.first) > p.limit {
		p.more += int64(len(linesOf(p.first[p.limit])))
		p.first = p.first[:p.limit]
	}
}

func (p *printer) endRows() error {
	room := p.limit
	for _, e := range p.first {
		lines := linesOf(e)
		shown := lines[:min(room, len(lines))]
		if err := p.rows.add(shown); err != nil {
			return err
		}
		room -= len(shown)
		p.more += int64(len(lines) - len(shown))
	}
	if err := p.rows.end(p.call.Out); err != nil || p.more == 0 {
		return err
	}
	return p.call.Out.Line("… and %s more (--rows shows all)", command.Number(p.more))
}

const notedOlder = 3

func (p *printer) note(res query.Result) {
	for _, t := range res.Trackings {
		if t.Unverified != nil {
			p.beside.add(*t.Unverified)
		}
		if t.Older == nil {
			continue
		}
		if p.olders++; p.olders <= notedOlder {
			p.older = append(p.older, fmt.Sprintf("The service's answer about %s is older than an event: the answer says %s, the event %s",
				command.Quoted(t.Number), p.names.Status(t.Older.Status, t.Older.StatusLabel, t.Older.StatusTrack), p.names.Phase(t)))
		}
	}
}

// end prints what is left to print, and below it the summary. failed is the error
// that the command ends with; a REF alone of which nothing is known has no other
// output.
func (p *printer) end(failed error) error {
	var err error
	switch {
	case p.single:
		err = p.printOnly(failed)
	case p.list != nil:
		err = p.list.Close()
	case p.rows != nil:
		err = p.endRows()
	}
	if err != nil {
		return err
	}
	if !p.single {
		p.summary.Print(p.call)
	}
	if !p.single && p.rows != nil { // elsewhere each tracking has its own
		p.beside.note(p.call.IO, p.names)
	}
	for _, text := range p.older {
		p.call.IO.Note("%s", text)
	}
	if p.olders > notedOlder {
		p.call.IO.Note("%s in all are older than an event; -o json has them as olderAnswer", command.Plural(p.olders, "answer"))
	}
	return nil
}

func (p *printer) printOnly(failed error) error {
	if p.only == nil {
		return nil
	}
	res, out := &p.only.Result, p.call.Out
	switch {
	case failed != nil && !answered(*res):
		return nil
	case out.Machine():
		return out.Object(p.names.Answer(*res))
	case p.rows != nil: // one table, not two and a header
		return errors.Join(p.rows.add(linesOf(*p.only)), p.rows.end(out))
	case failed == nil || !absent(*res):
		return printResult(out, p.names, *res)
	}
	return nil // the error says it
}

// answered reports whether anything is known of a result's trackings.
func answered(res query.Result) bool {
	for _, t := range res.Trackings {
		if t.Phase != query.NotAsked {
			return true
		}
	}
	return false
}
