package command_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// Of a total that is not known nothing is said, and no time is left of it.
func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		total int64
		want  string
	}{
		{0, "asking: 30 REFs, 10/s\n"},
		{50, "asking: 30 of 50 REFs, 10/s, 2s left\n"},
		{20, "asking: 30 of 20 REFs, 10/s\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := command.NewProgress(term.New(nil, &out, &out, term.Facts{}), "asking", "REFs", tt.total)
			time.Sleep(3 * time.Second)
			p.Add(30)
			time.Sleep(3 * time.Second)
			p.Stop()
			if out.String() != tt.want {
				t.Errorf("total %d: %q; want %q", tt.total, out.String(), tt.want)
			}
		})
	}
}
