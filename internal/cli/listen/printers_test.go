package listen

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// printer returns what prints for a receiver whose store holds so many
// deliveries, and what it has printed.
func printer(t *testing.T, deliveries int64) (*eventPrinter, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	streams := term.New(strings.NewReader(""), &out, &out, term.Facts{})
	printer, err := render.New(streams.Out, render.Options{Format: string(render.Table)})
	if err != nil {
		t.Fatal(err)
	}
	return &eventPrinter{out: &command.Output{Printer: printer}, io: streams, lastDelivery: deliveries, lastIndex: math.MaxInt, hide: func(raw json.RawMessage) json.RawMessage { return raw }, stop: func() { t.Error("ended") }}, &out
}

func TestWhatIsVerifiedAgainIsNotNew(t *testing.T) {
	p, _ := printer(t, 5)
	second, third := webhook.Event{Index: 1}, webhook.Event{Index: 2}
	for _, e := range []inbox.Event{
		{Seq: 8, Delivery: 5}, // verified again, before anything came
		{Seq: 9, Delivery: 6},
		{Seq: 10, Delivery: 6, Event: second},
		{Seq: 11, Delivery: 6, Event: third, Mark: inbox.Duplicate},
		{Seq: 12, Delivery: 2}, // and all of them, later
		{Seq: 13, Delivery: 6},
		{Seq: 14, Delivery: 6, Event: second},
		{Seq: 15, Delivery: 7},
	} {
		typ := listen.Event
		if e.Mark == inbox.Duplicate {
			typ = listen.Duplicate
		}
		if err := p.print(listen.Notification{Type: typ, Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	if want := (summaryJSON{Deliveries: 2, Events: 3, Duplicates: 1}); p.summary != want {
		t.Errorf("counted %+v; want %+v", p.summary, want)
	}
}

func TestAValueOfMegabytesIsOneLine(t *testing.T) {
	p, out := printer(t, 0)
	huge := strings.Repeat("A\x1b[31m", 1<<20)
	e := inbox.Event{Seq: 1, Delivery: 1}
	e.Kind, e.TrackingNumber, e.StatusLabel, e.LatestEvent = huge, huge, huge, huge
	if err := p.print(listen.Notification{Type: listen.Event, Event: e}); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if len(got) > 500 || strings.Count(got, "\n") != 1 || strings.Contains(got, "\x1b") || strings.Count(got, "…") != 4 {
		t.Errorf("%d bytes: %.600q", len(got), got)
	}
}

// The line of a refused delivery fits a terminal.
func TestARefusalFitsTheTerminal(t *testing.T) {
	for _, columns := range []string{"60", "80", "110"} {
		p, out := printer(t, 0)
		streams := term.New(strings.NewReader(""), out, out, term.Facts{OutTerminal: true, Env: map[string]string{"COLUMNS": columns, "TERM": "dumb"}})
		printer, err := render.New(streams.Out, render.Options{Format: string(render.Table)})
		if err != nil {
			t.Fatal(err)
		}
		p.out.Printer = printer
		if err := p.printRefused(inbox.Delivery{Seq: 12, RemoteAddr: "127.0.0.1:41234", Reason: webhook.ReasonSignatureMismatch}); err != nil {
			t.Fatal(err)
		}
		line := strings.TrimRight(out.String(), "\n")
		if want, _ := strconv.Atoi(columns); term.DisplayWidth(line) > want || !strings.Contains(line, "signature_mismatch") || !strings.Contains(line, "127.0.0.1:41234") {
			t.Errorf("%d of %s columns: %s", term.DisplayWidth(line), columns, line)
		}
	}
}
