package inspect_test

import (
	"database/sql"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
)

// A read-only page writes nothing to a store, also not to one that is made later.
func TestReadOnlyPageWritesNothing(t *testing.T) {
	s := openShop(t)
	s.receive(inbox.Yes, "e1", "N1", "MOVED")
	dir := strings.TrimSuffix(s.call.Config.Store, "s.db")
	env := slices.Concat(s.env[:2], []string{"WAYBILL_STORE=" + dir + "later.db"})
	reader, _, stderr := clitest.Call(t, env...)
	reader.ReadOnly = true
	get := serveCall(t, reader)
	if status, v := get("/deliveries"); status != http.StatusOK || len(array(v, "deliveries")) != 0 {
		t.Fatalf("without a store: %d %v", status, v)
	}
	s.run(command.OK, "store", "copy", dir+"s.db", dir+"later.db")
	file, err := sql.Open("sqlite", dir+"later.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	if _, err := file.ExecContext(t.Context(), "UPDATE batches SET state = 'sending', owner = 'gone' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/tracking?referId=R1", "/session", "/deliveries", "/deliveries/1"} {
		if status, v := get(path); status != http.StatusOK {
			t.Errorf("%s: %d %v", path, status, v)
		}
	}
	if _, err := reader.Store(t.Context()); !errors.Is(err, inbox.ErrReadOnly) {
		t.Errorf("the store can be written: %v", err)
	}
	db, err := reader.ExistingStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if at, last, err := db.Events.Followed(t.Context()); err != nil || at >= last {
		t.Errorf("the events were recorded: %d of %d, %v", at, last, err)
	}
	var state string
	if err := file.QueryRowContext(t.Context(), "SELECT state FROM batches WHERE id = 1").Scan(&state); err != nil || state != "sending" {
		t.Errorf("rows of a process that ended were changed: %s, %v", state, err)
	}
	if stderr.Len() > 0 {
		t.Errorf("printed: %s", stderr)
	}
}
