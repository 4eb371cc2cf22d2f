package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// Kills at every moment of a wait: what was recorded is whole, and the next
// wait ends without a further question about what was recorded.
func TestTortureKillsOfWait(t *testing.T) {
	t.Parallel()
	askKills(t, true, "wait", "--run", "1", "-o", "jsonl", "-q")
}

// The same of a show, which asks about everything each time.
func TestTortureKillsOfShow(t *testing.T) {
	t.Parallel()
	askKills(t, false, "show", "--run", "1", "-o", "jsonl", "-q")
}

// askKills kills a command at moments that are spread over its questions, each
// time from the same start, and lets the next one come to its end. goesOn says
// that it asks about no tracking whose answer was recorded.
func askKills(t *testing.T, goesOn bool, args ...string) {
	s := &answering{sent: map[string][]string{}}
	w := newHome(t).at(listenAt(t, "127.0.0.1:0", s).URL)
	k := &askKill{world: w, service: s, rows: either(1100, 10_000), path: filepath.Join(w.home, "kills.db"), args: args}
	w.env = append(w.env, "WAYBILL_STORE="+k.path, "WAYBILL_ACCOUNT=kills", "WAYBILL_CONCURRENCY=8")
	if code, _, stderr := w.run("create", orders(t, w.home, k.rows, ascending), "-q", "--skip-proof"); code != 0 {
		t.Fatalf("create ended with %d: %s", code, stderr)
	}
	var err error
	if k.created, err = os.ReadFile(k.path); err != nil {
		t.Fatal(err)
	}
	moments, met, parts := either(8, 50), 0, 0
	for i := range moments {
		k.restart()
		question := (2*i + 1) * k.rows / (2 * moments)
		alive, part := k.kill(question, time.Duration(i%6)*10*time.Millisecond, goesOn)
		if t.Failed() {
			t.Fatalf("killed at question %d of %d", question, k.rows)
		}
		if alive {
			met++
		}
		if part {
			parts++
		}
	}
	if n := len(k.recorded()); n != k.rows {
		t.Errorf("%d of %d are recorded at the end", n, k.rows)
	}
	t.Logf("%d of %d kills met a living process, %d of them with a part of %d answers recorded", met, moments, parts, k.rows)
	if met < moments/2 || parts == 0 {
		t.Error("the test proves too little")
	}
}

// askKill is a store with accepted rows, and a command that asks about them.
type askKill struct {
	*world

	service *answering
	rows    int
	path    string
	created []byte // the store before the first question
	args    []string
}

// restart forgets everything that was asked.
func (k *askKill) restart() {
	k.tb.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.RemoveAll(k.path + suffix); err != nil {
			k.tb.Fatal(err)
		}
	}
	if err := os.WriteFile(k.path, k.created, 0o600); err != nil {
		k.tb.Fatal(err)
	}
	k.service.forget()
}

// finish lets the command come to its end, which shows every tracking.
func (k *askKill) finish() {
	k.tb.Helper()
	code, stdout, stderr := k.run(k.args...)
	if n := bytes.Count(stdout, []byte("\n")); code != 0 || n != k.rows {
		k.tb.Errorf("%q ended with %d and %d lines; want 0 and %d\n%s", k.args, code, n, k.rows, stderr)
	}
}

// kill kills the command some time after so many questions and checks what it
// left, and the next one. It reports whether the command was still running, and
// whether a part of the answers was recorded.
func (k *askKill) kill(question int, delay time.Duration, goesOn bool) (alive, part bool) {
	t := k.tb
	t.Helper()
	cmd := k.command(k.args...)
	asked := k.service.await(question)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		select {
		case <-asked:
			time.Sleep(delay)
			_ = cmd.Process.Kill()
		case <-done:
		}
	})
	code, err := ended(cmd, allowed())
	close(done)
	killing.Wait()
	if err != nil || code > 0 {
		t.Fatalf("ended with %d: %v: %s", code, err, cmd.Stderr)
	}
	recorded := k.recorded()
	for _, ref := range printed(cmd.Stdout.(*bytes.Buffer).Bytes()) {
		if !recorded[ref] {
			t.Errorf("%s was printed, and is not recorded", ref)
		}
	}
	before := k.service.count()
	k.finish()
	for ref, n := range k.service.count() {
		if again := n > before[ref]; again && recorded[ref] && goesOn {
			t.Errorf("%s was recorded, and is asked about again", ref)
		}
	}
	return code == -1, len(recorded) > 0 && len(recorded) < k.rows
}

// recorded returns the referIds whose answer is recorded. The store must be
// whole, and hold of each what the service sent, byte for byte.
func (k *askKill) recorded() map[string]bool {
	t := k.tb
	t.Helper()
	db, err := sqlite.Open(t.Context(), k.path, store.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Check(t.Context()); err != nil {
		t.Errorf("the store is damaged: %v", err)
	}
	all, n := map[string]bool{}, 0
	for st, err := range db.Statuses(t.Context(), ledger.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		ref := st.Item.ReferID
		raw, err := db.LastAnswer(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		n++
		seen := st.Sighting != nil
		if st.State != ledger.Accepted || seen != (raw != nil) || seen == st.Asked.IsZero() {
			t.Errorf("%s is %s, its status %+v, its answer %q, asked %v", ref, st.State, st.Sighting, raw, st.Asked)
		}
		if !seen {
			continue
		}
		if all[ref] = true; st.Sighting.Phase != ledger.Processed || !k.service.answered(ref, string(raw)) {
			t.Errorf("%s is %s with %q, which the service did not send", ref, st.Sighting.Phase, raw)
		}
	}
	if n != k.rows {
		t.Errorf("%d of %d rows are there", n, k.rows)
	}
	return all
}

// printed returns the referIds of whole lines.
func printed(stdout []byte) (refs []string) {
	for line := range bytes.Lines(stdout) {
		var r struct{ ReferID string }
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &r) == nil {
			refs = append(refs, r.ReferID)
		}
	}
	return refs
}

// answering is a service that knows every order as delivered, and what it
// answered. No two answers are the same.
type answering struct {
	mu    sync.Mutex
	made  bool                // something was created
	sent  map[string][]string // by referId
	left  int                 // questions until asked closes
	asked chan struct{}
}

func (s *answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost:
		s.made = true
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
		return
	case !s.made:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	ref := r.URL.Query().Get("referId")
	answer := strings.Replace(delivered(ref), "{", fmt.Sprintf(`{"answer": %d,`, len(s.sent[ref])), 1)
	s.sent[ref] = append(s.sent[ref], answer)
	if s.left--; s.left == 0 {
		close(s.asked)
	}
	_, _ = io.WriteString(w, answer)
}

// await returns what closes when so many further questions have come.
func (s *answering) await(questions int) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.asked = questions, make(chan struct{})
	return s.asked
}

func (s *answering) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sent)
}

// count returns how often each referId was asked about.
func (s *answering) count() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := make(map[string]int, len(s.sent))
	for ref, all := range s.sent {
		n[ref] = len(all)
	}
	return n
}

func (s *answering) answered(ref, raw string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.sent[ref], raw)
}
