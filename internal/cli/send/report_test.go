package send

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// The time that rows took to send is without the wait for their processing.
func TestCountsShowTheTimeOfSending(t *testing.T) {
	var buf bytes.Buffer
	io := term.New(nil, &buf, &buf, term.Facts{OutTerminal: true, Env: map[string]string{"NO_COLOR": "1"}})
	res := Result{Run: "1", Read: 2, Accepted: 2, Sent: 2, Batches: 1, ElapsedSeconds: 13, sending: 1200 * time.Millisecond}
	if err := printCounts((&command.Output{}).On(io.Out), res); err != nil {
		t.Fatal(err)
	}
	if want := "2 rows sent in 1 request, 1.2 s\n"; !strings.HasSuffix(buf.String(), want) {
		t.Errorf("%q; want %q at the end", buf.String(), want)
	}
}
