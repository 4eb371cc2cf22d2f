package track

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
)

// maxRows is the number of unfinished REFs, and of finished ones, that a page chooses from.
const maxRows = 200

// board counts trackings by status during a wait, holds a page's rows, reports changes. It is safe for concurrent use.
type board struct {
	names   view.StatusFormatter
	holding bool                   // hold rows
	changed func(changeJSON) error // nil for nothing

	mu      sync.Mutex
	summary *view.Summary
	targets int64
	open    map[int64][]view.Line // unfinished REFs, by position
	closed  [][]view.Line         // finished REFs, latest last
}

// changeJSON is a tracking that changed, in the output of --watch.
type changeJSON struct {
	Type                 string           `json:"type"` // change
	At                   time.Time        `json:"at"`
	Ref                  string           `json:"ref"`
	ReferID              string           `json:"referId"`
	TrackingNumber       string           `json:"trackingNumber"`
	Before               *view.StatusJSON `json:"before"` // null if the tracking was not known
	After                view.StatusJSON  `json:"after"`
	LatestEvent          string           `json:"latestEvent"`
	LatestCheckpointTime string           `json:"latestCheckpointTime,omitempty"`
}

// update records the current result of a target.
func (b *board) update(e query.TargetResult) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(e.Result.Trackings) == 0 && e.Target.Counted != nil {
		return nil // no response
	}
	if b.holding {
		b.open[e.Target.Pos] = linesOf(e)
		if len(b.open) > maxRows {
			delete(b.open, slices.Max(slices.Collect(maps.Keys(b.open))))
		}
	}
	if len(e.Result.Trackings) == 0 {
		e.Result.Trackings = []query.Tracking{{Phase: query.NotAsked}}
	}
	return b.count(e.Target, e.Result)
}

// finish records the final result of a target.
func (b *board) finish(e query.TargetResult) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, e.Target.Pos)
	if b.holding && !e.Unfinished {
		b.closed = append(b.closed, linesOf(e))
		b.closed = b.closed[max(len(b.closed)-maxRows, 0):]
	}
	return b.count(e.Target, e.Result)
}

func (b *board) count(t *query.Target, res query.Result) error {
	was := t.Counted
	if was == nil {
		b.targets++
	}
	t.Counted = b.summary.Recount(was, res)
	if b.changed == nil || was == nil {
		return nil
	}
	for i, now := range t.Counted {
		isSame := func(c query.Counted) bool { return c.Number == now.Number || len(was) == 1 && c.Number == "" }
		before := slices.IndexFunc(was, isSame)
		if before >= 0 && was[before].Kind == now.Kind {
			continue
		}
		c := changeJSON{Type: "change", At: time.Now().UTC(), Ref: res.Ref, After: b.summary.Status(now.Kind)}
		if before >= 0 {
			c.Before = new(b.summary.Status(was[before].Kind))
		}
		if i < len(res.Trackings) {
			f := res.Trackings[i]
			c.ReferID, c.TrackingNumber, c.LatestEvent, c.LatestCheckpointTime = f.ReferID, f.Number, f.LatestEvent, f.LatestTime
		}
		if err := b.changed(c); err != nil {
			return err
		}
	}
	return nil
}

func (b *board) hasParcels() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.summary.Trackings() != b.targets
}

// progress returns counts by status for the progress line, except the status that is waited for.
func (b *board) progress(but string) (texts []string, fields map[string]any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	j := b.summary.JSON()
	for _, s := range j.ByStatus {
		if s.Name != but {
			texts = append(texts, command.Number(s.Trackings)+" "+s.Name)
		}
	}
	if len(texts) > 0 && b.summary.Trackings() != b.targets {
		texts[0] = command.Plural(b.summary.Trackings(), "tracking") + ": " + texts[0]
	}
	return texts, map[string]any{"byStatus": j.ByStatus}
}

// draw draws as many rows as fit: unfinished REFs in the order of the command, then finished ones, latest first.
func (b *board) draw(out *command.Output, w *term.Writer, progress string, height int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	counts := ""
	if b.summary.Trackings() > 0 {
		counts = b.summary.String()
	}
	if err := w.Printf("%s\n%s\n\n", w.Style(term.Heading, progress), term.Truncate(counts, w.Width())); err != nil {
		return err
	}
	table, err := command.BeginTable(out.On(w), b.names.AnswerColumns(view.Reader{IsPerson: true, Now: time.Now()}))
	if err != nil {
		return err
	}
	var lines []view.Line
	for _, pos := range slices.Sorted(maps.Keys(b.open)) {
		lines = append(lines, b.open[pos]...)
	}
	for _, closed := range slices.Backward(b.closed) {
		lines = append(lines, closed...)
	}
	room := max(height-5, 0) // less the lines above, the header, and the number of further rows
	lines = lines[:min(len(lines), room)]
	for i := range lines {
		if err := table.Add(&lines[i]); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := b.summary.Trackings() - int64(len(lines)); more > 0 {
		return w.Printf("%s\n", w.Style(term.Faint, "… and "+command.Number(more)+" more"))
	}
	return nil
}
