package track

import (
	"io"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/report"
	"github.com/waybill-cli/waybill/internal/term"
)

// The column beside the count is a share of all, or of the line what was delivered, and its
// head says which.
func TestHeadsOfSections(t *testing.T) {
	line := sumLine{name: "dhl", n: 4, portion: &portion{}}
	line.Split[report.Delivered] = 1
	for _, tt := range []struct {
		sec  section
		want string
	}{
		{section{title: "status", of: 8, lines: []sumLine{line}}, "STATUS TRACKINGS SHARE dhl 4 50.0 %"},
		{section{title: "carrier", of: 8, delivered: true, lines: []sumLine{line}, note: "a note"}, "CARRIER TRACKINGS DELIVERED dhl 4 25.0 % a note"},
	} {
		env := map[string]string{"NO_COLOR": "1", "COLUMNS": "40"}
		io := term.New(nil, io.Discard, io.Discard, term.Facts{OutTerminal: true, Env: env})
		d := drawing{out: io.Out, name: minSumName}
		d.draw(tt.sec)
		if got := strings.Join(strings.Fields(string(d.text)), " "); got != tt.want {
			t.Errorf("%q; want %q", got, tt.want)
		}
	}
}
