package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
)

// Listeners ask every second what is to be sent. While nothing is, that needs no
// transaction: it does not wait for those who write.
func TestIdleSinksNeedNoTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	d, err := Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sink, err := d.OpenSink(t.Context(), inbox.SinkKey{Name: "forward", URL: "http://127.0.0.1:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	entries, next, err := d.ClaimEntries(t.Context(), sink.ID, 1, time.Now())
	if err != nil || len(entries) > 0 || !next.IsZero() { // the other has not ended: an error would be its lock
		t.Errorf("%v, %v, %v; want nothing", entries, next, err)
	}
}
