package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// A loopback address of another computer's listener is no address here: events send and
// replay refuse it, and listen says that it shares the deliveries.
func TestListenersOfOtherComputers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	other, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const target = "http://127.0.0.1:1"
	sink, err := other.OpenSink(t.Context(), inbox.SinkKey{Name: forward.SinkName, URL: target}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := inbox.Listener{URL: "http://127.0.0.1:2", Host: "warehouse-pc/1a2b3c4d", Sinks: []int64{sink.ID}}
	if err := other.AddListener(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	d, rows := inbox.Decode(inbox.Delivery{ReceivedAt: time.Now(), Method: "POST", Path: "/", Body: []byte(`[{"eventId":"1"}]`), Verified: inbox.Yes})
	if _, err := other.Put(t.Context(), d, rows); err != nil {
		t.Fatal(err)
	}
	env := []string{"WAYBILL_STORE=" + path, "WAYBILL_BASE_URL=http://127.0.0.1:9"}
	ends := func(want command.Code, says string, args ...string) {
		t.Helper()
		if code, stdout, stderr := run(t, env, args...); code != want || !strings.Contains(stderr, says) {
			t.Errorf("%s: status %d: %s%s; want %d and %q", strings.Join(args, " "), code, stdout, stderr, want, says)
		}
	}
	ends(command.Usage, "the listeners of this store run on other computers: warehouse-pc\n", "events", "send")
	ends(command.Usage, "target "+target+" is on another computer: warehouse-pc\n", "events", "replay", "1")
	ends(command.OK, "warning: a listener on warehouse-pc forwards to "+target+" too", "listen", "--addr", "127.0.0.1:0", "--forward-to", "1", "--forward-unverified", "--timeout", "10ms")

	l.Host = app.Computer() // one here too
	here, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	if err := here.AddListener(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	ends(command.Unreachable, "Replaying to "+target, "events", "replay", "1")
	ends(command.Unreachable, "Sending to the listener at http://127.0.0.1:2", "events", "send")
}
