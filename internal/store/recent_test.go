package store

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// What a sender puts around its events does not stay in memory with them.
func TestRecentIsBounded(t *testing.T) {
	var r recent
	before := heap()
	for i := range int64(200) {
		body := fmt.Appendf(nil, `[{"eventId":"e%d"}%s]`, i, bytes.Repeat([]byte(" "), 1<<20))
		d, rows := inbox.Decode(inbox.Delivery{Body: body})
		a, err := newArrival(d, rows)
		if err != nil {
			t.Fatal(err)
		}
		a.receipt = inbox.Receipt{Delivery: i + 1, Rows: []inbox.Placement{{Seq: i + 1}}}
		r.add([]eventLine{{a, 0, new(inbox.Mark)}})
	}
	if got, _ := r.after(0, 1000); len(got) != 200 {
		t.Errorf("%d of 200 events are kept", len(got))
	}
	if got := heap() - before; got > 8<<20 {
		t.Errorf("%d bytes are kept", got)
	}
	runtime.KeepAlive(&r)

	var full recent
	for i := range int64(100) {
		body := fmt.Appendf(nil, `[{"eventId":"e%d","data":{"x":"%s"}}]`, i, bytes.Repeat([]byte("x"), 256<<10))
		d, rows := inbox.Decode(inbox.Delivery{Body: body})
		a, err := newArrival(d, rows)
		if err != nil {
			t.Fatal(err)
		}
		a.receipt = inbox.Receipt{Delivery: i + 1, Rows: []inbox.Placement{{Seq: i + 1}}}
		full.add([]eventLine{{a, 0, new(inbox.Mark)}})
	}
	kept, _ := full.after(97, 1000)
	if full.bytes > maxRecentBytes || len(full.events) == 0 || len(kept) == 0 || kept[0].Seq != 98 {
		t.Errorf("%d events of %d bytes are kept", len(full.events), full.bytes)
	}
	if got, atEnd := full.after(10, 1000); got != nil || atEnd {
		t.Error("an old event is kept")
	}
	for after, want := range map[int64]bool{99: false, 100: true, 101: false} {
		if got, atEnd := full.after(after, 1000); atEnd != want || (got != nil) != (after == 99) {
			t.Errorf("behind %d: %d events, at the end: %v", after, len(got), atEnd)
		}
	}
	if _, atEnd := new(recent).after(0, 1); atEnd {
		t.Error("what was never read is at the end")
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
