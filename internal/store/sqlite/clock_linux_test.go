package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// A clock that was set between two commands changes nothing of how long ago an
// absence was proven, as long as the machine was not started anew.
func TestAbsenceByTheClockThatNobodySets(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "waybill.db"))
	run := staged(t, d, 1)
	b := claimed(t, d, run)
	if err := d.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: b.ID, State: ledger.Unknown, Began: time.Now()}}); err != nil {
		t.Fatal(err)
	}
	proven := time.Now().Add(-time.Minute)
	if _, err := d.Resolve(t.Context(), run.ID, []ledger.Resolution{{Row: b.Rows[0].ID, Batch: b.ID, State: ledger.Unknown, AbsentSince: proven, Fingerprint: "404"}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		boot   string
		jump   time.Duration // of the clock on the wall since
		counts bool          // the jump, that is
	}{
		{bootID(), 0, false},
		{bootID(), time.Hour, false},
		{bootID(), -365 * 24 * time.Hour, false},
		{"another", time.Hour, true},
	} {
		t.Run(fmt.Sprint(c.boot, c.jump), func(t *testing.T) {
			direct(t, d, "UPDATE absences SET absent = $1, boot = $2", proven.Add(-c.jump).UnixMilli(), c.boot)
			want := proven
			if c.counts {
				want = proven.Add(-c.jump)
			}
			n := 0
			for x, err := range d.Unknown(t.Context(), run.ID) {
				if n++; err != nil || x.AbsentSince.Sub(want).Abs() > time.Second {
					t.Errorf("absent since %s, %v; want %s", x.AbsentSince, err, want)
				}
			}
			if n != 1 {
				t.Errorf("%d rows; want 1", n)
			}
		})
	}
}
