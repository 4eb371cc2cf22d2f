package storage

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// fakeEraser removes what it is given, and then fails with err unless that is nil.
type fakeEraser struct {
	done ledger.Erasure
	err  error
}

func (f fakeEraser) Erase(context.Context, []tracking.Query, ledger.EraseOptions) (ledger.Erasure, error) {
	return f.done, nil
}

func (f fakeEraser) Compact(context.Context) ([]string, error) { return nil, f.err }

func (f fakeEraser) Erased(_ context.Context, qs []tracking.Query) ([]bool, error) {
	return make([]bool, len(qs)), nil
}

// erasingWith returns an erasure of one order, and what it prints on standard output
// and standard error.
func erasingWith(t *testing.T, f fakeEraser) (e *erasing, stdout, stderr *bytes.Buffer) {
	t.Helper()
	c, stdout, stderr := clitest.Call(t)
	return &erasing{call: c, queries: []tracking.Query{{ReferID: "ORD-1"}}, db: &app.Store{Path: "w.db", Eraser: f}}, stdout, stderr
}

// Whatever was removed before an error is reported.
func TestErasureThatFailsReportsWhatItRemoved(t *testing.T) {
	failed := errors.New("it fails")
	for want, done := range map[string]ledger.Erasure{
		"1 row":                {Rows: 1},
		"1 tracking":           {Trackings: 1},
		"3 responses":          {Responses: 3},
		"1 event":              {Events: 1},
		"1 delivery":           {Deliveries: 1},
		"2 refused deliveries": {Refused: 2},
		"1 text":               {Texts: 1},
		"":                     {},
	} {
		e, stdout, _ := erasingWith(t, fakeEraser{done, failed})
		if err := e.run(t.Context()); !errors.Is(err, failed) {
			t.Errorf("%+v: %v; want %v", done, err, failed)
		}
		if want != "" {
			want = "Erased " + want + ": 1 of 1 shipment found\n"
		}
		if stdout.String() != want {
			t.Errorf("%+v: %q; want %q", done, stdout, want)
		}
	}
}
