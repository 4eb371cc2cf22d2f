package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// hooked is a connector that calls before ahead of each transaction, unless it is nil.
type hooked struct {
	*connector
	before func()
}

func (h *hooked) Begin(ctx context.Context, conn *sql.Conn) error {
	if h.before != nil {
		h.before()
	}
	return h.connector.Begin(ctx, conn)
}

// What another process stores while a shipment is erased is not kept, whichever
// transaction of the erasure it comes before.
func TestNothingOfWhatArrivesWhileItIsErasedIsLeft(t *testing.T) {
	for at, more := 1, true; more; at++ {
		t.Run(fmt.Sprint("before transaction ", at), func(t *testing.T) { more = eraseMeanwhile(t, at) })
	}
}

// eraseMeanwhile stores responses and deliveries before one transaction of an erasure. It
// reports whether there was one.
func eraseMeanwhile(t *testing.T, at int) bool {
	const ref, number, second = "ORD-ERASE-77", "1Z999AA10123456784", "1Z999AA10123456791"
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "waybill.db")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	f, _, err := openFile(ctx, path, store.Options{})
	must(err)
	engine, hook := f.engine(""), &hooked{connector: &f.writer}
	engine.Connector = hook
	d, other := store.New(engine), opened(t, path)
	put := func(d *store.DB, id int, data string) {
		t.Helper()
		delivery, rows := inbox.Decode(inbox.Delivery{
			ReceivedAt: time.Now(), Verified: inbox.Yes,
			Body: fmt.Appendf(nil, `[{"eventId":"00000000-0000-4000-8000-%012d","data":{%s}}]`, id, data),
		})
		_, err := d.Put(ctx, delivery, rows)
		must(err)
	}
	stageAll(t, d, 10, []ledger.Entry{{Line: 2, Item: tracking.Item{ReferID: ref, Number: number}}})

	query := []tracking.Query{{ReferID: ref}}
	gone, begun := []string{ref, number}, 0
	hook.before = func() {
		if begun++; begun != at {
			return
		}
		names, err := other.Erased(ctx, query)
		must(err)
		seen := func(number string) ledger.Sighting {
			return ledger.NewSighting(tracking.Tracking{Report: tracking.Report{Status: "1"}},
				ledger.Processed, tracking.Key{ReferID: ref, Number: number}, time.Now(), ledger.FromQuery)
		}
		must(other.Record(ctx, []ledger.RecordedAnswer{{ReferID: ref, Asked: time.Now(), Seen: []ledger.Sighting{seen(number), seen(second)}, Raw: []byte(`{"n":"` + number + `"}`)}}))
		put(other, 2, `"trackingNumber":"`+number+`"`)
		if !names[0] { // the response was kept
			put(other, 3, `"trackingNumber":"`+second+`"`)
			gone = append(gone, second)
		}
	}
	_, err = d.Erase(ctx, query, ledger.EraseOptions{})
	must(err)
	hook.before = nil
	must(other.Close())
	_, err = d.Compact(ctx)
	must(err)
	must(d.Close())
	for _, name := range gone {
		if holds(t, path, name) {
			t.Errorf("%s is still there", name)
		}
	}
	return begun >= at
}
