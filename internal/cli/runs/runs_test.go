package runs

import (
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/send"
)

// Without a store there are no runs, and no command makes one.
func TestRunsWithoutAStore(t *testing.T) {
	c, stdout, stderr := clitest.Call(t)
	if err := runList(t.Context(), c, 0); err != nil || stdout.Len() > 0 || stderr.Len() == 0 {
		t.Errorf("list: %v; stdout %q, stderr %q; want a note alone", err, stdout, stderr)
	}
	for _, tt := range []struct {
		run  string
		code command.Code
	}{{"1", command.NotFound}, {"0", command.Usage}, {"x", command.Usage}} {
		for what, err := range map[string]error{
			"show":    runShow(t.Context(), c, showOptions{Run: tt.run}),
			"rows":    runRows(t.Context(), c, rowsOptions{Run: tt.run}),
			"dismiss": runDismiss(t.Context(), c, tt.run, ""),
			"resume":  runResume(t.Context(), c, resumeOptions{Run: tt.run, Options: send.Options{Unknown: "keep", Settle: "1s"}}),
		} {
			if code, hint := command.CodeAndHint(err); code != tt.code || hint == "" {
				t.Errorf("%s %s: status %d, %v, hint %q; want %d and a hint", what, tt.run, code, err, hint, tt.code)
			}
		}
	}
	if db, err := c.ExistingStore(t.Context()); db != nil || err != nil {
		t.Errorf("a store was made: %v, %v", db, err)
	}
}
