package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// Runs, however many there are, take the same few statements: each is kept.
func TestStatementsDoNotNameRuns(t *testing.T) {
	d := opened(t, filepath.Join(t.TempDir(), "w.db"))
	stageAndPrune := func(runs int) int {
		for range runs {
			staging, err := d.Stage(t.Context(), ledger.Plan{Files: []string{"-"}, Mode: ledger.Async, BatchSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := staging.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := d.PruneRuns(t.Context(), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		return d.Prepared()
	}
	if few, many := stageAndPrune(2), stageAndPrune(10); many != few {
		t.Errorf("%d statements after 2 runs, %d after 12", few, many)
	}
}
