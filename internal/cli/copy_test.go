package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// A copy that is refused, and would be again, names no command that repeats it.
func TestRefusedCopyIsNotRepeated(t *testing.T) {
	t.Parallel()
	to, ok := pgtest.URL(t)
	if !ok {
		return
	}
	var from [2]string
	for i := range from {
		from[i] = filepath.Join(t.TempDir(), "s.db")
		db, err := sqlite.Open(t.Context(), from[i], store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d, rows := inbox.Decode(inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Body: []byte(`[{"eventId":"1"}]`)})
		if _, err := db.Put(t.Context(), d, rows); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := run(t, nil, "store", "copy", from[0], to); code != command.OK {
		t.Fatalf("status %d: %s%s", code, stdout, stderr)
	}
	for _, again := range from {
		code, _, stderr := run(t, nil, "store", "copy", again, to)
		if code != command.Store || !strings.Contains(stderr, "the target store is not empty") || strings.Contains(stderr, "next:") {
			t.Errorf("status %d: %s", code, stderr)
		}
	}
}
