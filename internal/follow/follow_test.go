package follow_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/follow"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is a store with rows of R1/N1, R2/N2, R3/n-2 and a sink.
type world struct {
	*testing.T
	db   *store.DB
	sink *follow.Follower
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "w.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	staging, err := db.Stage(t.Context(), ledger.Plan{Files: []string{"-"}, Mode: ledger.Async, BatchSize: 10})
	if err != nil {
		t.Fatal(err)
	}
	var rows []ledger.Entry
	for i, k := range []tracking.Key{{ReferID: "R1", Number: "N1"}, {ReferID: "R2", Number: "N2"}, {ReferID: "R3", Number: "n-2"}} {
		rows = append(rows, ledger.Entry{Line: i + 2, Item: tracking.Item{ReferID: k.ReferID, Number: k.Number}})
	}
	if _, err := staging.Add(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := staging.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &world{t, db, &follow.Follower{Inbox: db, Ledger: db}}
}

// event is one with an eventId, a time after at in minutes, and a status.
func event(id, number string, minutes int, status string) string {
	return fmt.Sprintf(`{"eventId":%q,"event":"router.x","eventTime":%q,"data":{"trackingNumber":%q,"routerId":"r-%s","status":7,"statusTrack":%q,
		"summary":{"statusLabel":%q,"latestCheckpointTime":"2026-11-20T11:00:00.000Z"}}}`,
		id, at.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339Nano), number, id, status, status)
}

// put stores a delivery that came an hour after at.
func (w *world) put(verified inbox.Verified, body string) inbox.Receipt {
	w.Helper()
	d := inbox.Delivery{ReceivedAt: at.Add(time.Hour), Body: []byte(body), Verified: verified}
	receipt, err := w.db.Put(w.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body)))
	if err != nil {
		w.Fatal(err)
	}
	return receipt
}

func (w *world) learn(minutes int, s ledger.Sighting) {
	w.Helper()
	s.Key, s.Phase, s.Seen, s.Source = tracking.Key{ReferID: "R1", Number: "N1"}, ledger.Processed, at.Add(time.Duration(minutes)*time.Minute), ledger.FromQuery
	if err := w.db.Record(w.Context(), []ledger.RecordedAnswer{{Seen: []ledger.Sighting{s}}}); err != nil {
		w.Fatal(err)
	}
}

// want checks the statuses that are known after all events were followed, in
// the order of a list: by referId, or number.
func (w *world) want(what string, want ...string) {
	w.Helper()
	if err := w.sink.CatchUp(w.Context()); err != nil {
		w.Fatal(err)
	}
	got := []string{}
	for st, err := range w.db.Statuses(w.Context(), ledger.Filter{}) {
		if err != nil {
			w.Fatal(err)
		}
		if st.Sighting != nil {
			got = append(got, st.Item.ReferID+"/"+st.Item.Number+" "+st.Sighting.StatusTrack)
		}
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestVerifiedEventsUpdateWhatIsKnown(t *testing.T) {
	w := newWorld(t)
	w.put(inbox.Yes, "["+event("1", "N1", 1, "moving")+", 7,"+event("2", "N2", 1, "held")+`,{"eventId":"3","data":{"trackingNumber":"SILENT"}},{"eventId":"4","data":{"status":1}}]`)
	w.want("known", "R1/N1 moving", "R2/N2 held", "R3/n-2 held")
	found, err := w.db.Find(t.Context(), "R1", "")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	want := ledger.Sighting{
		Key: tracking.Key{ReferID: "R1", Number: "N1"}, Phase: ledger.Processed,
		Report: tracking.Report{
			Status: "7", StatusLabel: "moving",
			StatusTrack: "moving", LatestTime: "2026-11-20T11:00:00.000Z",
		},
		Times: tracking.Times{Checkpoint: at.Add(-time.Hour)},
		Seen:  at.Add(time.Hour), AsOf: at.Add(time.Minute), Source: ledger.FromEvent, Event: 1,
	}
	if diff := cmp.Diff(want, *found[0].Sighting); diff != "" {
		t.Errorf("known of R1 (-want +got):\n%s", diff)
	}
}

func TestOlderNewsNeverTakesNewerBack(t *testing.T) {
	w := newWorld(t)
	w.put(inbox.Yes, "["+event("1", "N1", 5, "delivered")+","+event("2", "N1", 4, "moving")+"]")
	w.want("in one delivery", "R1/N1 delivered")
	w.put(inbox.Yes, "["+event("3", "N1", 3, "moving")+"]")
	w.want("after a late one", "R1/N1 delivered")
	w.learn(10, ledger.Sighting{Report: tracking.Report{StatusTrack: "returned"}})
	w.put(inbox.Yes, "["+event("4", "N1", 9, "moving")+"]")
	w.want("an event older than a query", "R1/N1 returned")
	w.put(inbox.Yes, "["+event("5", "N1", 11, "archived")+"]")
	w.want("a newer event", "R1/N1 archived")
	// One that says it comes from the future counts as of its receipt.
	w.put(inbox.Yes, "["+event("6", "N1", 24*60, "odd")+"]")
	w.want("from the future", "R1/N1 odd")
	w.learn(61, ledger.Sighting{Report: tracking.Report{StatusTrack: "queried"}})
	w.want("a query after it", "R1/N1 queried")
}

// A forged event changes nothing, and the genuine one with the same eventId that comes after it counts.
func TestUnverifiedChangeNothing(t *testing.T) {
	w := newWorld(t)
	for _, verified := range []inbox.Verified{inbox.No, inbox.Unknown} {
		w.put(verified, "["+event("1", "N1", 1, "delivered")+","+event("2", "FOREIGN", 1, "delivered")+"]")
		w.want("forged")
	}
	w.put(inbox.Yes, "["+event("1", "N1", 1, "moving")+"]")
	w.want("genuine", "R1/N1 moving")
	w.put(inbox.Yes, "["+event("1", "N1", 2, "delivered")+"]")
	w.want("a conflict: the first stands", "R1/N1 moving")
}

// What was kept unverified counts once it is shown to be genuine.
func TestRejudgedAndReadmittedCount(t *testing.T) {
	w := newWorld(t)
	receipt := w.put(inbox.Unknown, "["+event("1", "N1", 1, "moving")+"]")
	w.want("unknown")
	if _, err := w.db.SetVerdict(t.Context(), inbox.Delivery{Seq: receipt.Delivery, Verified: inbox.Yes}); err != nil {
		t.Fatal(err)
	}
	w.want("rejudged", "R1/N1 moving")
	d := inbox.Delivery{ReceivedAt: at, Body: []byte("[" + event("2", "N2", 2, "held") + "]"), Verified: inbox.No}
	if _, err := w.db.PutRefused(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	d.Verified = inbox.Yes
	if _, err := w.db.Readmit(t.Context(), 1, d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
		t.Fatal(err)
	}
	w.want("readmitted", "R1/N1 moving", "R2/N2 held", "R3/n-2 held")
}

func TestNumbersThatNobodyHas(t *testing.T) {
	w := newWorld(t)
	w.put(inbox.Yes, "["+event("1", "LAST-MILE", 1, "moving")+"]")
	w.want("not tied", "/LAST-MILE moving")
	w.learn(0, ledger.Sighting{Report: tracking.Report{StatusTrack: "asked", RouterID: "r-2"}})
	w.put(inbox.Yes, "["+event("2", "LAST-MILE", 2, "delivered")+"]")
	w.want("tied by its routerId", "R1/N1 delivered", "/LAST-MILE moving")
}

// TestManyAtOnce has several sinks carry the same events over, one of them in the background.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	woken := make(chan struct{}, 1)
	var ended sync.WaitGroup
	ended.Go(func() { w.sink.Run(ctx, woken, func(err error) { t.Error(err) }) })
	body := "["
	for i := range 400 {
		body += event(fmt.Sprint("x", i), "N1", i%50, fmt.Sprint("s", i)) + ","
	}
	w.put(inbox.Yes, body+event("last", "N1", 55, "last")+"]")
	woken <- struct{}{}
	for range 3 {
		ended.Go(func() {
			if err := w.sink.CatchUp(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	w.want("R1", "R1/N1 last")
	if to, last, err := w.db.Followed(t.Context()); err != nil || to != 401 || last != 401 {
		t.Errorf("followed to %d of %d, %v; want 401", to, last, err)
	}
	stop()
	ended.Wait()
}

// broken is a ledger that fails a few times, and then has nothing to follow.
type broken struct {
	ledger.EventFollower
	left int
}

func (b *broken) Followed(context.Context) (int64, int64, error) {
	if b.left--; b.left >= 0 {
		return 0, 0, errors.New("broken")
	}
	return 0, 0, nil
}

func TestFailuresPassAndAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{left: 3}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		told := 0
		(&follow.Follower{Ledger: b}).Run(ctx, nil, func(error) { told++ })
		if told != 1 || b.left > -15 {
			t.Errorf("told %d failures, asked %d times after them; want one for three in a row, and every three seconds", told, -b.left-1)
		}
	})
}

// An event with an error is recorded, with and without a status.
func TestErrorsOfEventsAreRecorded(t *testing.T) {
	w := newWorld(t)
	w.put(inbox.Yes, `[{"eventId":"e1","event":"router.failed","data":{"trackingNumber":"N1","status":null,"error":{"message":"no carrier"}}},
		{"eventId":"e2","event":"router.failed","data":{"trackingNumber":"N3","status":7,"error":"lost"}}]`)
	w.want("events with an error", "R1/N1 ", "/N3 ")
	for st, err := range w.db.Statuses(t.Context(), ledger.Filter{}) {
		want := map[string]string{"N1": `{"message":"no carrier"}`, "N3": `"lost"`}[st.Item.Number]
		if s := st.Sighting; err != nil || want != "" && (s.Phase != ledger.InError || s.Error != want) {
			t.Errorf("%s: %+v, %v; want error %s", st.Item.Number, s, err, want)
		}
	}
	w.put(inbox.Yes, "["+event("e3", "N1", 90, "delivered")+"]")
	w.want("an event without one", "R1/N1 delivered", "/N3 ")
}
