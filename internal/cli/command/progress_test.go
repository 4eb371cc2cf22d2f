package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Of a total that is not known nothing is said, and no time is left of it.
func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		total int64
		want  string
	}{
		{0, "Checking: 30 REFs · 6/s · 5s elapsed\n"},
		{50, "Checking: 30 of 50 REFs, 20 left · 6/s · 5s elapsed, about 4s left\n"},
		{20, "Checking: 30 of 20 REFs · 6/s · 5s elapsed\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := NewProgress(term.New(nil, &out, &out, term.Facts{}), "Checking", "REFs", tt.total)
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

// waited is a wait of 3m10s in which 41 are delivered a second, and 2 in a hundred
// were before.
func waited(io *term.IO) *Progress {
	const total, known = 12_431, 4153
	p := NewWaitProgress(io, "Waiting", "delivered", total, time.Now().Add(30*time.Minute), func() ([]string, map[string]any) {
		return []string{"431 in transit", "98 processing"}, map[string]any{"byStatus": []any{map[string]any{"name": "in transit", "trackings": 431}}}
	})
	p.AddKnown(known)
	for range 189 {
		time.Sleep(time.Second)
		p.Add(41)
	}
	time.Sleep(time.Second)
	return p
}

// A narrow terminal shows what matters most.
func TestProgressFitsTheTerminal(t *testing.T) {
	for _, tt := range []struct {
		columns string
		want    string
	}{
		{"145", "Waiting: 11,902 of 12,431 delivered, 529 left · 41/s · 3m10s elapsed, about 13s left, times out in 26m50s · 431 in transit · 98 processing"},
		{"140", "Waiting: 11,902 of 12,431 delivered, 529 left · 41/s · 3m10s elapsed, about 13s left, times out in 26m50s · 431 in transit"},
		{"120", "Waiting: 11,902 of 12,431 delivered, 529 left · 41/s · 3m10s elapsed, about 13s left, times out in 26m50s"},
		{"108", "Waiting: 11,902 of 12,431 delivered, 529 left · 3m10s elapsed, about 13s left, times out in 26m50s"},
		{"100", "Waiting: 11,902 of 12,431 delivered, 529 left, about 13s left, times out in 26m50s"},
		{"80", "Waiting: 11,902 of 12,431 delivered, 529 left, about 13s left"},
		{"60", "Waiting: 11,902 of 12,431 delivered, about 13s left"},
		{"50", "Waiting: 11,902 of 12,431 delivered"},
		{"38", "Waiting: 11,902 of 12,431 delive…"},
	} {
		synctest.Test(t, func(t *testing.T) {
			io := term.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{ErrTerminal: true, OutTerminal: true, Env: map[string]string{"COLUMNS": tt.columns}})
			p := waited(io)
			defer p.Stop()
			if got := p.bar.Line(io.Err.Width()); got != tt.want {
				t.Errorf("%s columns: %q; want %q", tt.columns, got, tt.want)
			}
		})
	}
}

// JSON has as numbers what the line says.
func TestProgressAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		io := term.New(nil, &out, &out, term.Facts{})
		io.Configure(term.Options{JSON: true, Verbose: true})
		waited(io).Stop()
		lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
		var got map[string]any
		if err := json.Unmarshal(lines[len(lines)-1], &got); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]any{
			"type": "progress", "label": "Waiting", "done": 11902., "total": 12431., "left": 529., "perSecond": 41.,
			"elapsedSeconds": 190., "leftSeconds": 12., "timeoutSeconds": 1610.,
		} {
			if got[name] != want {
				t.Errorf("%s is %v; want %v: %s", name, got[name], want, lines[len(lines)-1])
			}
		}
		if all, ok := got["byStatus"].([]any); !ok || len(all) != 1 {
			t.Errorf("byStatus is %v", got["byStatus"])
		}
	})
}

// A pipe gets a line if something was done, not because time went by.
func TestProgressLinesSayWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(term.New(nil, &out, &out, term.Facts{}), "Checking", "REFs", 10)
		p.Add(1)
		time.Sleep(time.Minute)
		p.Add(1)
		time.Sleep(time.Minute)
		p.Stop()
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2 {
			t.Errorf("%d lines; want 2: %s", n, out.String())
		}
	})
}

// No time left is guessed from the first row, which is sent alone. Requests without a
// usable answer count as sent, their rows once they are found.
func TestCreateProgressOfAFirstRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewCreateProgress(term.New(nil, &out, &out, term.Facts{}), 2001, 3)
		time.Sleep(4 * time.Second)
		p.Recorded(ledger.Batch{Rows: make([]ledger.BatchRow, 1)}, &tracking.Reply{Outcome: tracking.OutcomeAccepted})
		time.Sleep(2 * time.Second)
		p.Recorded(ledger.Batch{Rows: make([]ledger.BatchRow, 1000)}, &tracking.Reply{Outcome: tracking.OutcomeUnknown})
		p.Resolved(ledger.Accepted, 1000)
		time.Sleep(5 * time.Second)
		p.Stop()
		want := "Creating: 1 of 2,001 rows, 2,000 left · 5s elapsed · 1 of 3 requests\n" +
			"Creating: 1,001 of 2,001 rows, 1,000 left · 100/s · 10s elapsed, about 10s left · 2 of 3 requests\n"
		if got := out.String(); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	})
}

// A create shows rows and requests, and those of unknown outcome with a counter of
// their own.
func TestCreateProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewCreateProgress(term.New(nil, &out, &out, term.Facts{}), 2500, 3)
		p.Recorded(ledger.Batch{Rows: make([]ledger.BatchRow, 1000)}, &tracking.Reply{Outcome: tracking.OutcomeAccepted})
		time.Sleep(6 * time.Second)
		p.Checking(40)
		p.Checked()
		time.Sleep(6 * time.Second)
		p.Checking(0)
		p.Stop()
		want := "Creating: 1,000 of 2,500 rows, 1,500 left · 200/s · 5s elapsed, about 8s left · 1 of 3 requests\n" +
			"Checking: 1 of 40 rows of unknown outcome, 39 left · 5s elapsed, about 4m left\n"
		if got := out.String(); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	})
}

// Rows that another process records are not left; the rate counts the rows of this process.
func TestCreateProgressCountsRowsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewCreateProgress(term.New(nil, &out, &out, term.Facts{}), 4000, 4)
		p.Counted(-10) // less than what is known
		time.Sleep(4 * time.Second)
		p.Recorded(ledger.Batch{Rows: make([]ledger.BatchRow, 1000)}, &tracking.Reply{Outcome: tracking.OutcomeAccepted})
		p.Counted(3000)
		time.Sleep(2 * time.Second)
		p.Counted(5000) // of other rows, too
		time.Sleep(5 * time.Second)
		p.Stop()
		want := "Creating: 3,000 of 4,000 rows, 1,000 left · 200/s · 5s elapsed, about 5s left · 1 of 4 requests\n" +
			"Creating: 4,000 of 4,000 rows · 100/s · 10s elapsed · 1 of 4 requests\n"
		if got := out.String(); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	})
}

// While requests fail, the line says why and when the next one comes.
func TestProgressSaysWhatItWaitsFor(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&api.ConnectError{Host: "host", Err: errors.New("connection refused")}, "Waiting: 0 of 2 delivered, 2 left · connection refused, retrying"},
		{&api.StatusError{Status: 429, Message: "slow down", Pause: 12 * time.Second}, "Waiting: 0 of 2 delivered, 2 left · 429 Too Many Requests, next in 12s"},
		{&api.StatusError{Status: 503}, "Waiting: 0 of 2 delivered, 2 left · 503 Service Unavailable, retrying"},
		{nil, "Waiting: 0 of 2 delivered, 2 left"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := NewWaitProgress(term.New(nil, &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}), "Waiting", "delivered", 2, time.Now().Add(time.Hour), nil)
			defer p.Stop()
			p.Failing(errors.New("an earlier one"))
			p.Failing(tt.err)
			if got, _, _ := strings.Cut(p.Line(120), ", times out"); got != tt.want {
				t.Errorf("%v: %q; want %q", tt.err, got, tt.want)
			}
		})
	}
}
