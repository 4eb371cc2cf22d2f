package command

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/term"
)

// The end of a command's time is said in words, whatever was under way.
func TestFinishSaysThatTheTimeIsUp(t *testing.T) {
	var out bytes.Buffer
	f := &Factory{App: &app.App{IO: term.New(nil, &out, &out, term.Facts{})}}
	code := f.Finish(t.Context(), fmt.Errorf("lock s.db: %w", context.DeadlineExceeded))
	if want := "waybill: lock s.db: timed out\n"; code != Pending || out.String() != want {
		t.Errorf("status %d: %q; want %d: %q", code, out.String(), Pending, want)
	}
}
