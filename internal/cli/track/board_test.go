package track

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func newTestBoard() *board {
	names := view.NewStatusFormatter(nil)
	return &board{names: names, summary: view.NewSummary(names), open: map[int64][]view.Line{}, holding: true}
}

// known is what is known of a REF.
func known(t *query.Target, phase ledger.Phase, label string) query.TargetResult {
	one := query.Tracking{Tracking: tracking.Tracking{
		ReferID: t.Ref, Number: "N" + t.Ref,
		Report: tracking.Report{StatusLabel: label},
	}, Phase: phase}
	return query.TargetResult{Target: t, Result: query.Result{Ref: t.Ref, Trackings: []query.Tracking{one}}}
}

// However many REFs there are, few are held, and all are counted once.
func TestBoardHoldsFew(t *testing.T) {
	b := newTestBoard()
	const n = 5000
	targets := make([]*query.Target, n)
	for i := range targets {
		targets[i] = &query.Target{Pos: int64(i), Ref: fmt.Sprint(i)}
		for _, phase := range []ledger.Phase{query.NotAsked, ledger.Processing} {
			if err := b.update(known(targets[i], phase, "")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, target := range targets[:n/2] {
		if err := b.finish(known(target, ledger.Processed, "DELIVERED")); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range targets[n/2:] { // asked again
		if err := b.update(known(target, ledger.Processing, "")); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.summary.String(), "5,000 trackings: 2,500 delivered · 2,500 processing"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if len(b.open) != maxRows || len(b.closed) != maxRows {
		t.Errorf("%d open and %d closed are held; want %d", len(b.open), len(b.closed), maxRows)
	}
}

// However results come, what is held is the first that is not done.
func TestBoardHoldsTheFirst(t *testing.T) {
	b := newTestBoard()
	for i := range 3 * maxRows {
		pos := int64(3*maxRows - 1 - i)
		if err := b.update(known(&query.Target{Pos: pos, Ref: fmt.Sprint(pos)}, ledger.Processing, "")); err != nil {
			t.Fatal(err)
		}
	}
	for pos := range int64(maxRows) {
		if b.open[pos] == nil {
			t.Fatalf("row %d is not held", pos)
		}
	}
}

// A terminal shows a few of the rows that are not done, the first that end, and counts the others.
func TestPrinterShowsTheFirst(t *testing.T) {
	c, stdout, _ := clitest.Call(t)
	p, err := newPrinter(c, printer{limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	for pos := range int64(8) {
		if err := p.add(known(&query.Target{Pos: pos, Ref: fmt.Sprint("R", pos)}, ledger.Processing, "")); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.end(nil); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for line := range strings.Lines(stdout.String()) {
		shown = append(shown, strings.Fields(line)[0])
	}
	if got := strings.Join(shown, " "); got != "REFERENCE R0 R1 R2 …" || !strings.Contains(stdout.String(), "… and 5 more") {
		t.Errorf("%s:\n%s", got, stdout)
	}
}

// What is not done comes first, in the order asked for; then the latest that is. The
// page fits the height.
func TestBoardDraws(t *testing.T) {
	b := newTestBoard()
	for i := range 6 {
		target := &query.Target{Pos: int64(i), Ref: fmt.Sprint("R", i)}
		if err := b.update(known(target, ledger.Processing, "")); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			if err := b.finish(known(target, ledger.Processed, "DELIVERED")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for height, want := range map[int]string{
		20: "R1 R3 R5 R4 R2 R0",
		10: "R1 R3 R5 R4 R2 … and 1 more",
		7:  "R1 R3 … and 4 more",
		5:  "… and 6 more",
	} {
		var buf bytes.Buffer
		io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: true, Env: map[string]string{"NO_COLOR": "1", "COLUMNS": "80"}})
		out := (&command.Output{}).On(io.Out)
		if err := b.draw(out, io.Out, "Waiting", height); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(buf.String(), "\n"), "\n")
		var shown []string
		for _, l := range lines[4:] {
			if first, _, _ := strings.Cut(l, " "); first == "…" {
				shown = append(shown, l)
			} else {
				shown = append(shown, first)
			}
		}
		if got := strings.Join(shown, " "); got != want || len(lines) > height {
			t.Errorf("height %d: %s; want %s; %d lines", height, got, want, len(lines))
		}
	}
}

// A change names the status before and after; the first thing that is known is none.
func TestBoardReportsChanges(t *testing.T) {
	b := newTestBoard()
	var got []string
	b.changed = func(c changeJSON) error {
		before := "nothing"
		if c.Before != nil {
			before = c.Before.Name
		}
		got = append(got, c.Ref+": "+before+" → "+c.After.Name)
		return nil
	}
	target := &query.Target{Ref: "R"}
	unanswered := query.TargetResult{Target: target, Result: query.Result{Ref: "R", Err: query.ErrNotAsked}}
	for _, e := range []query.TargetResult{
		{Target: target, Result: query.Result{Ref: "R"}},
		known(target, ledger.Processing, ""), unanswered, known(target, ledger.Processing, ""),
		known(target, ledger.Processed, "IN_TRANSIT"), known(target, ledger.Processed, "DELIVERED"),
	} {
		if err := b.update(e); err != nil {
			t.Fatal(err)
		}
	}
	want := "R: not checked yet → processing, R: processing → in transit, R: in transit → delivered"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("%s; want %s", s, want)
	}
}

// The words of a condition, for what meets it and what does not.
func TestConditionWords(t *testing.T) {
	names := view.NewStatusFormatter(map[string]string{"7": "awaiting pickup"})
	for _, tt := range []struct{ flag, done, notYet string }{
		{"processed", "processed", "still processing"},
		{"status=DELIVERED", "delivered", "not delivered yet"},
		{"status=out_for_delivery", "out for delivery", "not out for delivery yet"},
		{"status=7", "awaiting pickup", "not awaiting pickup yet"},
		{"status=12", "in status 12", "not in status 12 yet"},
		{"event=router.delivered", "with event router.delivered", "without event router.delivered yet"},
		{"change", "changed", "unchanged"},
	} {
		c, err := parseCondition(nil, "--for", tt.flag)
		if err != nil || c.done(names) != tt.done || c.notYet(names) != tt.notYet {
			t.Errorf("%s: %q, %q, %v; want %q, %q", tt.flag, c.done(names), c.notYet(names), err, tt.done, tt.notYet)
		}
	}
}
