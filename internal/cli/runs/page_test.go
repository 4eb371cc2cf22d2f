package runs

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

func TestRowsOfARunAreSoughtForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := func(yield func(ledger.Row, error) bool) {
			for range 10_000 {
				time.Sleep(time.Millisecond)
				if !yield(ledger.Row{State: ledger.Accepted}, nil) {
					return
				}
			}
		}
		p := Page{Rows: rowStates(ledger.RunSummary{Counts: ledger.Counts{Accepted: 9_999, Rejected: 1}})}
		if err := p.readRows(rows, 5); err != nil {
			t.Fatal(err)
		}
		if p.Complete || p.Examined < 3_000 || p.Examined > 4_000 {
			t.Errorf("complete %v after %d rows; want to stop after 3 s, of a millisecond each", p.Complete, p.Examined)
		}
		if p.Rows[0].State != "rejected" || len(p.Rows[0].Rows) != 0 || len(p.Rows[1].Rows) != 5 {
			t.Errorf("rows %+v", p.Rows)
		}
		p = Page{Rows: p.Rows[1:]}
		if p.Rows[0].Rows = nil; p.readRows(rows, 5) != nil || !p.Complete || p.Examined > 6 {
			t.Errorf("complete %v after %d rows; want to stop as soon as each state has its rows", p.Complete, p.Examined)
		}
	})
}

func TestRepeatsAreNoRowsOfTheirState(t *testing.T) {
	p := Page{Rows: rowStates(ledger.RunSummary{Counts: ledger.Counts{Rejected: 2}})}
	err := p.readRows(func(yield func(ledger.Row, error) bool) {
		_ = yield(ledger.Row{State: ledger.Rejected, Line: 2}, nil) && yield(ledger.Row{State: ledger.Rejected, Line: 3, Repeat: true}, nil) &&
			yield(ledger.Row{State: ledger.Rejected, Line: 4}, nil)
	}, 5)
	if err != nil || len(p.Rows[0].Rows) != 2 || p.Rows[0].Rows[1].Line != 4 {
		t.Errorf("rows %+v, %v", p.Rows, err)
	}
}
