package store

import (
	"context"
	"errors"
	"testing"

	"github.com/waybill-cli/waybill/internal/store/storetest"
)

// abandon lets go of the locks that d holds, as the death of its process would.
func (d *DB) abandon() error {
	d.owner.mu.Lock()
	defer d.owner.mu.Unlock()
	lock := d.owner.lock
	d.owner.lock = nil
	if lock == nil {
		return d.stagings.close()
	}
	return errors.Join(lock.Close(), d.stagings.close())
}

func harness() storetest.Harness {
	return storetest.Harness{
		Open: func(t testing.TB, path string) storetest.Store {
			t.Helper()
			d, err := Open(t.Context(), path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Kill: func(t testing.TB, s storetest.Store) {
			t.Helper()
			d, ok := s.(*DB)
			if !ok {
				t.Fatalf("%T is not ours", s)
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
