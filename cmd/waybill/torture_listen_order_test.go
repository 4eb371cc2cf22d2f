package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// What is answered with 200 stands in the store for everybody to see. The full
// form opens the store as it would be if the power had failed when the first
// byte of a 200 left, for each of them.
func TestTortureListenOrder(t *testing.T) {
	t.Parallel()
	n := either(20, 80) // of more, the log of the store would be begun anew
	w := newHome(t)
	path, log := filepath.Join(w.home, "inbox.db"), filepath.Join(w.home, "strace.log")
	var l *listener
	if full() {
		l = w.listensTraced(path, log, "-q", "--exit-after", fmt.Sprint(n))
	} else {
		l = w.listens(path, nil, "-q", "--exit-after", fmt.Sprint(n))
	}
	db, err := sqlite.Open(t.Context(), path, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // till then the log of the store is there
	watchAnswers(t, l, db, deliveries(1, n, 1))
	if code, err := ended(l.cmd, patience); code != 0 || err != nil {
		t.Errorf("ended with %d after %d events: %v: %s", code, n, err, l.said())
	}
	if !full() {
		return
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	m := synced(string(text), answerBegins)
	if len(m.problems) > 0 || len(m.messages) != n {
		t.Fatalf("%d answers to %d deliveries; %q", len(m.messages), n, m.problems)
	}
	for i, kept := range m.messages {
		if got := deliveriesAfterPowerCut(t, path, kept); got != int64(i+1) {
			t.Fatalf("answer %d, %d bytes synced: %d deliveries would be left", i+1, kept, got)
		}
	}
}

func deliveriesAfterPowerCut(t *testing.T, path string, kept int64) int64 {
	t.Helper()
	db, err := sqlite.Open(t.Context(), powerCut(t, path, kept), store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	counts, err := db.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return counts.Deliveries
}

// watchAnswers sends deliveries of one event each and looks into the store at
// each answer.
func watchAnswers(t *testing.T, l *listener, db *store.DB, requests [][]byte) {
	t.Helper()
	c, err := dial(l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, request := range requests {
		if status, err := c.do(request); status != 200 || err != nil {
			t.Fatalf("delivery %d: status %d, %v", i, status, err)
		}
		e, err := db.Event(t.Context(), int64(i+1))
		if err != nil || !strings.HasSuffix(string(request), "["+string(e.Raw)+"]") || e.Mark != inbox.Current || e.Verified != inbox.Yes {
			t.Fatalf("delivery %d was answered, and this is stored: %v: %+v", i, err, e)
		}
	}
}
