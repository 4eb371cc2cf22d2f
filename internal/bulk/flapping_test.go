package bulk_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/bulk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// boxed is a client of a sandbox as a service of runs.
type boxed struct {
	*sandbox.Server
	client *api.Client
}

func (b boxed) Create(ctx context.Context, items []tracking.Item) *tracking.Reply {
	return b.client.CreateAsync(ctx, items)
}

func (b boxed) Evidence(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Evidence {
	return b.client.Evidence(ctx, q, item)
}

// box starts a sandbox and returns it with a client.
func box(t *testing.T, c sandbox.Config) boxed {
	t.Helper()
	s, err := sandbox.New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	client, err := api.New(api.Options{BaseURL: web.URL, Key: "k", Workers: 4, NumberParam: "trackingNumber"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		web.Close()
		_ = s.Close()
	})
	return boxed{s, client}
}

// absent lets queries be answered, with that probability, as if there were no
// such tracking.
func (b boxed) absent(t *testing.T, probability float64) {
	t.Helper()
	w := httptest.NewRecorder()
	body := fmt.Sprintf(`{"name":%q,"probability":%v}`, sandbox.FaultAbsent, probability)
	b.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/_sandbox/faults", strings.NewReader(body)))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// Accepted rows that are questioned go by the same proof.
func TestFlappingQueriesDoubleNothingThatIsQuestioned(t *testing.T) {
	db, b := open(t), box(t, sandbox.Config{Seed: 3})
	run := stageItems(t, db, ledger.Plan{BatchSize: 1000}, manyItems("there", 300)...)
	execute(t, proving(db, run, b), db, ledger.Counts{Accepted: 300})
	b.absent(t, 0.5)
	for range 6 {
		j := proving(db, run, b)
		j.RetryAbsent = true
		if _, err := j.Execute(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Stats(); s.Created != 300 || s.Distinct != 300 {
		t.Errorf("%d created, %d of them distinct; want 300 once each", s.Created, s.Distinct)
	}
}

// A service that says of half of what it has that there is no such tracking
// is not believed, however often the run is taken up again.
func TestFlappingQueriesDoubleNothing(t *testing.T) {
	for seed := range uint64(4) {
		db, b := open(t), box(t, sandbox.Config{Seed: seed})
		known := stageItems(t, db, ledger.Plan{BatchSize: 10}, manyItems("known", 5)...)
		execute(t, proving(db, known, b), db, ledger.Counts{Accepted: 5})
		if err := b.Fault(sandbox.FaultError502, "createV2", 1); err != nil {
			t.Fatal(err)
		}
		run := stageItems(t, db, ledger.Plan{BatchSize: 1000}, manyItems("lost", 300)...)
		j := proving(db, run, b)
		j.Unknown = bulk.Keep
		execute(t, j, db, ledger.Counts{Unknown: 300})
		b.absent(t, 0.5)
		for range 12 {
			if _, err := proving(db, run, b).Execute(t.Context(), t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if c := counts(t, db, run); c.Rejected+c.Pending+c.Sending > 0 || c.Accepted < 250 {
			t.Errorf("seed %d: %+v", seed, c)
		}
		if s := b.Stats(); s.Created != s.Distinct || s.Distinct != 305 {
			t.Errorf("seed %d: %d created, %d of them distinct; want 305 once each", seed, s.Created, s.Distinct)
		}
	}
}
