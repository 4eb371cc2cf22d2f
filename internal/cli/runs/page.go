package runs

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// Limits of a [Page].
const (
	PageRuns = 50              // runs of a list, unless more are asked for
	MaxRuns  = 500             // runs of a list
	PageRows = 100             // rows of each state, unless more are asked for
	MaxRows  = 2000            // rows of each state
	maxScan  = 3 * time.Second // for finding them
)

// Listed is a run of a list: what `runs list -o json` has, and its state in words.
type Listed struct {
	Run
	StateText string `json:"stateText"`
}

// ReadList returns runs, newest first and no more than limit.
func ReadList(ctx context.Context, c *command.Call, limit int) ([]Listed, error) {
	all := []Listed{}
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return all, err
	}
	for s, err := range db.History.Runs(ctx, "", limit) {
		if err != nil {
			return nil, err
		}
		all = append(all, Listed{newRun(s), describeState(s)})
	}
	return all, nil
}

// Page is what `runs show -o json` prints of a run, its latest batches alone, with its
// rows by state.
type Page struct {
	Run
	StateText string      `json:"stateText"`
	Earlier   int         `json:"earlierBatches"` // that batchList leaves out
	Rows      []RowsState `json:"rows"`
	Examined  int64       `json:"examined"` // rows that were read to find them
	Complete  bool        `json:"complete"` // rows has the first ones of each state; else reading took too long
	Commands  []string    `json:"commands"` // what can be done about its rows
}

// RowsState is rows of a run in one state, in the order of the input.
type RowsState struct {
	State string     `json:"state"` // as `runs rows --state` names it
	Tone  string     `json:"tone"`
	Count int64      `json:"count"`
	Rows  []view.Row `json:"rows"` // the first ones, without repeats
}

// ReadPage returns a run with up to limit rows of each state.
func ReadPage(ctx context.Context, c *command.Call, run string, limit int) (*Page, error) {
	id, err := strconv.ParseInt(run, 10, 64)
	if err != nil || id < 1 {
		return nil, fmt.Errorf("%w: %s", ledger.ErrNoRun, command.Quoted(run))
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, fmt.Errorf("%w: %d", ledger.ErrNoRun, id)
	}
	d, err := readRun(ctx, c, db, id, showOptions{})
	if err != nil {
		return nil, err
	}
	p := &Page{Run: d.json(), StateText: describeState(d.run), Earlier: d.left, Rows: rowStates(d.run), Commands: commands(c, d.run, d.next)}
	err = p.readRows(db.History.Rows(ctx, id), limit)
	return p, err
}

// rowStates returns the states that rows of a run are in, those first that need
// something done.
func rowStates(s ledger.RunSummary) []RowsState {
	all := []RowsState{}
	for _, state := range []struct {
		name string
		rows int64
	}{
		{string(ledger.Rejected), s.Rejected()},
		{string(ledger.Unknown), s.Counts.Unknown},
		{string(ledger.Sending), s.Counts.Sending},
		{string(ledger.Pending), s.Counts.Pending},
		{view.Superseded, s.Superseded},
		{view.Dismissed, s.Dismissed},
		{string(ledger.Accepted), s.Counts.Accepted},
	} {
		if state.rows > 0 {
			all = append(all, RowsState{state.name, view.Tone(view.StateStyle(state.name)), state.rows, []view.Row{}})
		}
	}
	return all
}

// readRows reads rows until each state has as many as it is to have.
func (p *Page) readRows(rows iter.Seq2[ledger.Row, error], limit int) error {
	open := len(p.Rows) // states that want more
	end := time.Now().Add(maxScan)
	for row, err := range rows {
		if err != nil {
			return err
		}
		if open == 0 {
			break
		}
		if p.Examined++; p.Examined%1000 == 0 && time.Now().After(end) {
			return nil
		}
		for i := range p.Rows {
			s := &p.Rows[i]
			if s.State != view.RowState(row) || row.Repeat || len(s.Rows) == limit {
				continue
			}
			if s.Rows = append(s.Rows, view.NewRow(row)); len(s.Rows) == limit || int64(len(s.Rows)) == s.Count {
				open--
			}
		}
	}
	p.Complete = true
	return nil
}

// commands returns what can be done about the rows of a run: next first.
func commands(c *command.Call, s ledger.RunSummary, next string) []string {
	id, all := strconv.FormatInt(s.ID, 10), []string{}
	if next != "" {
		all = append(all, next)
	}
	if s.Rejected() > 0 && !s.Live {
		all = append(all, c.CommandLine("runs", "retry", id), c.CommandLine("runs", "dismiss", id))
	}
	return append(all, c.CommandLine("list", "--run", id, "-o", "csv", "--out", "trackings.csv"))
}
