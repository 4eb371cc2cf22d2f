//go:build !windows

package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// failingOnce is a connector whose next transaction fails as the disk would.
type failingOnce struct {
	*connector
	fail bool
}

func (f *failingOnce) Begin(ctx context.Context, conn *sql.Conn) error {
	if f.fail {
		f.fail = false
		return driver.ErrBadConn
	}
	return f.connector.Begin(ctx, conn)
}

func putOne(t *testing.T, d *store.DB) error {
	t.Helper()
	dl := inbox.Delivery{Body: []byte(`[{"eventId":"c"}]`), Verified: inbox.Yes}
	_, err := d.Put(t.Context(), dl, inbox.Prepare(dl, webhook.Decode(dl.Body)))
	return err
}

// A store whose file is not where it was takes nothing, and goes on when it is
// back.
func TestStoreThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.db")
	d := opened(t, path)
	run := staged(t, d, 2500)
	batch := claimed(t, d, run)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := putOne(t, d); !errors.Is(err, store.ErrGone) {
		t.Errorf("a delivery is taken: %v; want %v", err, store.ErrGone)
	}
	if _, err := d.Claim(t.Context(), run.ID, 1, 1000); !errors.Is(err, store.ErrGone) {
		t.Errorf("rows are claimed: %v; want %v", err, store.ErrGone)
	}
	if err := d.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: batch.ID, State: ledger.Pending}}); !errors.Is(err, store.ErrGone) {
		t.Errorf("an outcome is recorded: %v; want %v", err, store.ErrGone)
	}
	if err := os.Rename(path+".old", path); err != nil {
		t.Fatal(err)
	}
	if err := putOne(t, d); err != nil {
		t.Errorf("the store is back: %v", err)
	}
	if err := d.RecordOutcomes(t.Context(), []ledger.BatchOutcome{{Batch: batch.ID, State: ledger.Accepted, HTTPStatus: 200, Began: time.Now()}}); err != nil {
		t.Errorf("the store is back: %v", err)
	}
	if c, err := d.CountRows(t.Context(), run.ID); err != nil || c.Accepted != 1000 || c.Pending != 1500 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A reader makes no file where the store was.
func TestReadersMakeNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waybill.db")
	d := opened(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CountRows(t.Context(), 1); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v; want %v", err, store.ErrGone)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v; want no file", err)
	}
}

// Another store with the name, and by chance the place on the disk, of the one
// that was opened is known by what is in it.
func TestAnotherStoreInTheSameFile(t *testing.T) {
	folder := t.TempDir()
	path, second := filepath.Join(folder, "waybill.db"), filepath.Join(folder, "second.db")
	if err := opened(t, second).Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := openFile(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, failing := f.engine(""), &failingOnce{connector: &f.writer}
	e.Connector = failing
	d := store.New(e)
	defer d.Close()
	if err := putOne(t, d); err != nil {
		t.Fatal(err)
	}
	if failing.fail = true; putOne(t, d) == nil {
		t.Error("a delivery is taken while the disk fails")
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := putOne(t, d); !errors.Is(err, store.ErrGone) {
		t.Errorf("%v; want %v", err, store.ErrGone)
	}
}
