package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
)

// What is answered with 200 stands in the store for everybody to see. The full
// form has it from the system's own record that it is on disk: no first byte
// of a 200 leaves while a write to the log of the store is not synced. There is
// one sender, as what several do at once, no log can tell apart.
func TestTortureListenOrder(t *testing.T) {
	t.Parallel()
	n := either(20, 2000)
	w := newHome(t)
	path, log := filepath.Join(w.home, "inbox.db"), filepath.Join(w.home, "strace.log")
	var l *listener
	if full() {
		l = w.listensTraced(path, log, "-q", "--exit-after", fmt.Sprint(n))
	} else {
		l = w.listens(path, nil, "-q", "--exit-after", fmt.Sprint(n))
	}
	watchAnswers(t, l, deliveries(1, n, 1))
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
	// What it prints may well meet the next delivery's write.
	wrong, answers, _ := misorders(string(text), answerBegins)
	wrong = slices.DeleteFunc(wrong, func(line string) bool { return !strings.Contains(line, answerBegins) })
	if len(wrong) > 0 || answers != n {
		t.Errorf("of %d answers to %d deliveries, %d too early: %q", answers, n, len(wrong), wrong)
	}
}

// answerBegins is how strace shows the beginning of a 200.
const answerBegins = `"HTTP/1.1 200`

// watchAnswers sends deliveries of one event each and looks into the store at
// each answer.
func watchAnswers(t *testing.T, l *listener, requests [][]byte) {
	t.Helper()
	db, err := store.Open(t.Context(), l.store, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
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
		if err != nil || !strings.HasSuffix(string(request), "["+string(e.Raw)+"]") || e.Mark != inbox.Standing || e.Verified != inbox.Yes {
			t.Fatalf("delivery %d was answered, and this is stored: %v: %+v", i, err, e)
		}
	}
}
