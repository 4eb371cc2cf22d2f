package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/storetest"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// killable is a store whose process a test can end.
type killable struct {
	*store.DB
	file *file

	mu     sync.Mutex
	stages []func() error
}

// open opens the store at path as a process of its own.
func open(t testing.TB, path string) *killable {
	t.Helper()
	f, shared, err := openFile(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, e := &killable{file: f}, f.engine(shared)
	e.LockStaging = func(ctx context.Context) (string, func() error, error) {
		name, unlock, err := f.lockStaging(ctx)
		k.mu.Lock()
		defer k.mu.Unlock()
		if err == nil {
			k.stages = append(k.stages, unlock)
		}
		return name, unlock, err
	}
	k.DB = store.New(e)
	return k
}

// kill lets go of the locks that the store holds, as the death of its process would.
func (k *killable) kill() error {
	var errs []error
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, unlock := range k.stages {
		errs = append(errs, unlock())
	}
	o := &k.file.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock != nil {
		errs = append(errs, o.lock.Close())
		o.lock = nil
	}
	return errors.Join(errs...)
}

func harness() storetest.Harness {
	return storetest.Harness{
		Place: func(t testing.TB) string { return filepath.Join(t.TempDir(), "waybill.db") },
		Open: func(t testing.TB, path string) storetest.Store {
			t.Helper()
			d := open(t, path)
			return storetest.Store{
				Trackings:  storetest.Trackings{Stager: d, Queue: d, UnknownRows: d, History: d, Keys: d, Accounts: d, Trackings: d, Statistics: d, Sweeps: d, Eraser: d, EventFollower: d},
				Deliveries: storetest.Deliveries{Store: d, Overviews: d, Verdicts: d, Retention: d, Outbox: d, Forwardings: d, Listeners: d, Changes: d},
				Observed:   d,
				Close:      d.Close,
			}
		},
		Kill: func(t testing.TB, s storetest.Store) {
			t.Helper()
			d, ok := s.Trackings.Queue.(*killable)
			if !ok {
				t.Fatalf("%T is not ours", s.Trackings.Queue)
			}
			if err := d.kill(); err != nil {
				t.Fatal(err)
			}
		},
		Check: func(t testing.TB, path string) {
			t.Helper()
			ctx := context.WithoutCancel(t.Context())
			d, err := Open(ctx, path, store.Options{MustExist: true})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.Check(ctx), d.Close()); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestLedger(t *testing.T) { inFiles(t, storetest.Ledger) }

func TestCounts(t *testing.T) { inFiles(t, storetest.Counts) }

func TestInbox(t *testing.T) { inFiles(t, storetest.Inbox) }

func TestObserved(t *testing.T) { inFiles(t, storetest.Observed) }

func TestOutbox(t *testing.T) { inFiles(t, storetest.Outbox) }

// inFiles runs a suite beside the others.
func inFiles(t *testing.T, suite func(*testing.T, storetest.Harness)) {
	t.Helper()
	t.Parallel()
	suite(t, harness())
}

// TestReleased sees that deliveries which turn out to be authentic later are
// shown to sinks once more.
func TestReleased(t *testing.T) {
	ctx := t.Context()
	d, err := Open(ctx, filepath.Join(t.TempDir(), "waybill.db"), store.Options{})
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
	authentic := func(rows []inbox.Event) bool { return rows[len(rows)-1].Verified == inbox.Yes }
	verify := func(seq int64) {
		t.Helper()
		if _, err := d.SetVerdict(ctx, inbox.Delivery{Seq: seq, Verified: inbox.Yes}); err != nil {
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
	advance(inbox.Progress{Read: 2})
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
