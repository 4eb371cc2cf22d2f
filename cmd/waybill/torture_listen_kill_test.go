package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// sender is somebody who sends what was not answered again, until it is.
type sender struct {
	open    [][2]int       // series and number of deliveries that got no answer
	next    [2]int         // the next new one
	answers map[string]int // how often each event was answered with 200
	tries   map[string]int // how often each was sent
	later   int            // how often it was told to come again
	done    atomic.Int64   // how many answers there are, while it sends
}

func newSender(series int) *sender {
	return &sender{next: [2]int{series, 0}, answers: map[string]int{}, tries: map[string]int{}}
}

// body is the delivery of one event.
func (s *sender) body(d [2]int) string { return "[" + event(d[0], d[1]) + "]" }

// send sends until the connection breaks, or it is told to come again, or all
// is answered and more is not wanted. Other answers than 200 and 503 are errors.
func (s *sender) send(addr string, more bool) error {
	c, err := dial(addr)
	if err != nil {
		return nil // it was killed before
	}
	defer c.Close()
	for more || len(s.open) > 0 {
		if len(s.open) == 0 {
			s.open = append(s.open, s.next)
			s.next[1]++
		}
		id := eventID(s.open[0][0], s.open[0][1])
		s.tries[id]++
		status, err := c.do(signed(s.body(s.open[0])))
		if broken(err) {
			return nil
		}
		if status == 503 {
			s.later++
			return nil
		}
		if status != 200 || err != nil {
			return fmt.Errorf("%s: status %d, %w", id, status, err)
		}
		s.answers[id]++
		s.done.Add(1)
		s.open = s.open[1:]
	}
	return nil
}

// A listener that is killed again and again while eight senders are busy: each
// delivery that got a 200 is in the store, byte for byte, and counts once.
func TestTortureListenKills(t *testing.T) {
	t.Parallel()
	kills := either(5, 200)
	random, w := dice(t), newHome(t)
	path := filepath.Join(w.home, "inbox.db")
	senders := make([]*sender, 8)
	for i := range senders {
		senders[i] = newSender(i)
	}
	for range kills {
		l := w.listens(path, nil, "-q")
		killUnder(t, l, senders, random)
		if t.Failed() {
			return
		}
	}
	l := w.listens(path, nil, "-q")
	sendAll(t, l.addr, senders, false)
	l.stop()
	answered, cut := 0, 0
	for _, s := range senders {
		answered += len(s.answers)
		for _, n := range s.tries {
			if n > 1 {
				cut++
			}
		}
		if len(s.open) > 0 || s.later > 0 {
			t.Errorf("%d deliveries were not answered in the end, %d told to come again", len(s.open), s.later)
		}
	}
	if answered < 20*kills || cut < kills {
		t.Errorf("%d deliveries and %d cut ones of %d kills: the test proves too little", answered, cut, kills)
	}
	holds(t, path, senders)
	t.Logf("%d kills, %d deliveries, %d of them sent more than once", kills, answered, cut)
}

// Two listeners on one store get the same deliveries at the same time, and are
// ended by signals while busy: they finish what they have begun and end with
// 0, and each event stands once.
func TestTortureListenOfTwo(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	path := filepath.Join(w.home, "inbox.db")
	senders := make([]*sender, 8)
	for i := range senders {
		senders[i] = newSender(i % 4)
	}
	for round := range either(1, 20) {
		first, second := w.listens(path, nil, "-q"), w.listens(path, nil, "-q")
		var both sync.WaitGroup
		both.Go(func() { // once each sender has had ten answers more
			lags := func(s *sender) bool { return s.done.Load() < int64(10*(round+1)) }
			for end := time.Now().Add(patience); slices.ContainsFunc(senders, lags) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			_ = first.cmd.Process.Signal(syscall.SIGTERM)
			_ = second.cmd.Process.Signal(os.Interrupt)
		})
		both.Go(func() { sendAll(t, first.addr, senders[:4], true) })
		both.Go(func() { sendAll(t, second.addr, senders[4:], true) })
		both.Wait()
		for _, l := range []*listener{first, second} {
			if code, err := ended(l.cmd, patience); code != 0 || err != nil {
				t.Errorf("ended by a signal with %d: %v: %s", code, err, l.said())
			}
		}
	}
	all := newSender(0)
	for _, s := range senders {
		for id, n := range s.tries {
			all.tries[id] += n
			all.answers[id] += s.answers[id]
		}
	}
	shared := 0
	for _, n := range all.answers {
		if n > 1 {
			shared++
		}
	}
	if shared < 20 {
		t.Errorf("only %d of %d deliveries went to both: the test proves too little", shared, len(all.tries))
	}
	if err := checkStore(t, path); err != nil {
		t.Errorf("the store is damaged: %v", err)
	}
	stored, standing := kept(t, path)
	for id, answers := range all.answers {
		// One that was cut may be stored or not.
		if stored[id] < answers || stored[id] > all.tries[id] || standing[id] > 1 || answers > 0 && standing[id] != 1 {
			t.Errorf("%s was sent %d times, answered %d times: it is stored %d times and stands %d times", id, all.tries[id], answers, stored[id], standing[id])
		}
	}
	sameBytes(t, path)
}

// killUnder kills a listener within a fraction of a second of work.
func killUnder(t *testing.T, l *listener, senders []*sender, random *rand.Rand) {
	t.Helper()
	delay := 20*time.Millisecond + time.Duration(random.Int64N(int64(180*time.Millisecond)))
	kill := time.AfterFunc(delay, func() { _ = l.cmd.Process.Kill() })
	defer kill.Stop()
	sendAll(t, l.addr, senders, true)
	if code, err := ended(l.cmd, patience); code != -1 || err != nil {
		t.Errorf("ended with %d before it was killed: %v: %s", code, err, l.said())
	}
}

func sendAll(t *testing.T, addr string, senders []*sender, more bool) {
	t.Helper()
	var all sync.WaitGroup
	for _, s := range senders {
		all.Go(func() {
			if err := s.send(addr, more); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// holds checks that a store has exactly what the senders sent: each event
// stands once, and whatever else there is of it came with another try.
func holds(t *testing.T, path string, senders []*sender) {
	t.Helper()
	if err := checkStore(t, path); err != nil {
		t.Errorf("the store is damaged: %v", err)
	}
	all, standing := kept(t, path)
	known := 0
	for _, s := range senders {
		for id, tries := range s.tries {
			known++
			if standing[id] != 1 || all[id] > tries || all[id] < s.answers[id] {
				t.Errorf("%s was sent %d times, answered %d times: it is stored %d times and stands %d times", id, tries, s.answers[id], all[id], standing[id])
			}
		}
	}
	if len(all) != known {
		t.Errorf("%d events are stored; want %d", len(all), known)
	}
	sameBytes(t, path)
}

// sameBytes checks that every stored event is what [event] made under its id.
func sameBytes(t *testing.T, path string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for e, err := range db.Events(t.Context(), inbox.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		var series, n int
		if _, err := fmt.Sscanf(e.EventID, "%08x-0000-4000-8000-%012x", &series, &n); err != nil || string(e.Raw) != event(series, n) {
			t.Errorf("%s: %v: stored as %s", e.EventID, err, e.Raw)
		}
		if e.Verified != inbox.Yes || e.Mark != inbox.Current && e.Mark != inbox.Duplicate {
			t.Errorf("%s is verified %s and marked %q", e.EventID, e.Verified, e.Mark)
		}
	}
}
