package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/storetest"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// abandon lets go of the locks that d holds, as the death of its process would.
func (d *DB) abandon() error {
	d.owner.mu.Lock()
	defer d.owner.mu.Unlock()
	lock := d.owner.lock
	d.owner.lock = nil
	if lock == nil {
		return d.stagingLocks.close()
	}
	return errors.Join(lock.Close(), d.stagingLocks.close())
}

func harness() storetest.Harness {
	return storetest.Harness{
		Place: func(t testing.TB) string { return filepath.Join(t.TempDir(), "waybill.db") },
		Open: func(t testing.TB, path string) storetest.Store {
			t.Helper()
			d, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return storetest.Store{
				Trackings:  storetest.Trackings{Stager: d, Queue: d, UnknownRows: d, History: d, Keys: d, Accounts: d, Trackings: d, Statistics: d, Versions: d, Sweeps: d, EventFollower: d},
				Deliveries: storetest.Deliveries{Store: d, Verdicts: d, Retention: d, Outbox: d, Forwardings: d, Listeners: d, Changes: d},
				Close:      d.Close,
			}
		},
		Kill: func(t testing.TB, s storetest.Store) {
			t.Helper()
			d, ok := s.Trackings.Queue.(*DB)
			if !ok {
				t.Fatalf("%T is not ours", s.Trackings.Queue)
			}
			if err := d.abandon(); err != nil {
				t.Fatal(err)
			}
		},
		Check: func(t testing.TB, path string) {
			t.Helper()
			ctx := context.WithoutCancel(t.Context())
			d, err := Open(ctx, path, Options{MustExist: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.Check(ctx), d.Close()); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestLedger(t *testing.T) { storetest.Ledger(t, harness()) }

func TestInbox(t *testing.T) { storetest.Inbox(t, harness()) }

func TestOutbox(t *testing.T) { storetest.Outbox(t, harness()) }

// TestReleased sees that deliveries which turn out to be authentic later are
// shown to sinks once more.
func TestReleased(t *testing.T) {
	ctx := t.Context()
	d, err := Open(ctx, filepath.Join(t.TempDir(), "waybill.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sink, err := d.OpenSink(ctx, inbox.SinkKey{Name: "forward"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		dl := inbox.Delivery{ReceivedAt: time.Now(), Verified: inbox.Unknown, Body: fmt.Appendf(nil, `[{"eventId":"%d"}]`, i)}
		if _, err := d.Put(ctx, dl, inbox.Prepare(dl, webhook.Decode(dl.Body))); err != nil {
			t.Fatal(err)
		}
	}
	authentic := func(rows []inbox.Event) bool { return rows[0].Verified == inbox.Yes }
	verify := func(seq int) {
		t.Helper()
		if err := d.run(ctx, func(ctx context.Context, t *tx) error {
			for _, query := range []string{"UPDATE deliveries SET verified = 'yes' WHERE seq = $1", "UPDATE events SET verified = 'yes' WHERE delivery = $1"} {
				if _, err := t.exec(ctx, query, seq); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	advance := func(want inbox.Progress) {
		t.Helper()
		got, err := d.Advance(ctx, sink.ID, 2, authentic)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	}
	advance(inbox.Progress{Read: 2, Skipped: []int64{1, 2}})
	verify(2)
	verify(3) // not passed yet: the cursor comes to it by itself
	verify(2) // was so already
	advance(inbox.Progress{Read: 2, Queued: []int64{2, 3}})
	advance(inbox.Progress{})
	entries, _, err := d.ClaimEntries(ctx, sink.ID, 9, time.Now().Add(time.Second))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v; want 2 entries", entries, err)
	}
}
