package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// endpoint keeps what it gets: some of the headers, and the body. The bytes of
// the header are proven in package forward.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string
	status int
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		for _, name := range []string{"X-Twice", "Connection", "X-Hop", "Authorization", "X-Signature", forward.HeaderSeq, forward.HeaderAttempt} {
			for _, v := range r.Header[name] {
				fmt.Fprintf(&b, "%s: %s\n", name, v)
			}
		}
		if _, err := io.Copy(&b, r.Body); err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.got = append(e.got, b.String())
		w.WriteHeader(e.status)
	}))
	t.Cleanup(e.Close)
	return e
}

// taken returns what came since the last call.
func (e *endpoint) taken() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// answers sets the status of answers.
func (e *endpoint) answers(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

// filled is a store with deliveries.
type filled struct {
	*testing.T
	path string
}

func (f filled) open(do func(db *store.DB)) {
	f.Helper()
	db, err := sqlite.Open(f.Context(), f.path, store.Options{})
	if err != nil {
		f.Fatal(err)
	}
	do(db)
	if err := db.Close(); err != nil {
		f.Fatal(err)
	}
}

// body is one delivery's, with bytes that no text has and no order of ours.
func body(n int) string {
	return fmt.Sprintf("[ {\"event\":\"kind.%d\", \"eventId\":\"e%d\",\"data\":{\"trackingNumber\":\"N%d\"}} ]\n", n, n, n)
}

// newFilled stores deliveries, numbered from 1, of which those in verdicts say
// whether they verified.
func newFilled(t *testing.T, verdicts ...inbox.Verified) filled {
	t.Helper()
	f := filled{t, filepath.Join(t.TempDir(), "w.db")}
	f.open(func(db *store.DB) {
		for i, v := range verdicts {
			d := inbox.Delivery{
				ReceivedAt: time.Now().Add(time.Duration(i-len(verdicts)) * time.Minute), Method: "POST", Path: "/in", Verified: v, Body: []byte(body(i + 1)),
				Header: []webhook.Field{
					{Name: "X-Twice", Value: "a"},
					{Name: "Connection", Value: "X-Hop"},
					{Name: "X-Hop", Value: "gone"},
					{Name: "X-Twice", Value: "b"},
					{Name: "Authorization", Value: "gone"},
					{Name: "x-signature", Value: "old"},
					{Name: forward.HeaderAttempt, Value: "gone"},
				},
			}
			if _, err := db.Put(t.Context(), d, inbox.Prepare(d, webhook.Decode(d.Body))); err != nil {
				t.Fatal(err)
			}
		}
	})
	return f
}

// give makes a target known, and gives up what it wants.
func (f filled) give(target string) {
	f.Helper()
	f.open(func(db *store.DB) {
		to, err := forward.ParseTarget(target)
		if err != nil {
			f.Fatal(err)
		}
		sink, err := db.OpenSink(f.Context(), to.Key(), &inbox.StartPosition{})
		if err != nil {
			f.Fatal(err)
		}
		if _, err := db.Advance(f.Context(), sink.ID, 100, func(rows []inbox.Event) bool { return to.Filter.Match(rows[0]) }); err != nil {
			f.Fatal(err)
		}
		entries, _, err := db.ClaimEntries(f.Context(), sink.ID, 100, time.Now())
		if err != nil {
			f.Fatal(err)
		}
		for _, l := range entries {
			if err := db.RecordAttempt(f.Context(), l.ID, inbox.AttemptOutcome{Disposition: inbox.GivenUp, Now: time.Now(), Problem: "answered 500"}); err != nil {
				f.Fatal(err)
			}
		}
	})
}

// dead returns the deliveries that are given up, with why.
func (f filled) dead() []string {
	f.Helper()
	var all []string
	f.open(func(db *store.DB) {
		for l, err := range db.DeadEntries(f.Context()) {
			if err != nil {
				f.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%d %s", l.Delivery, l.Problem))
		}
	})
	return all
}

// replay runs the command on the store.
func (f filled) replay(want command.Code, env []string, args ...string) (stdout, stderr string) {
	f.Helper()
	code, stdout, stderr := run(f.T, env, slices.Concat([]string{"events", "replay", "--store", f.path}, args)...)
	if code != want {
		f.Errorf("replay %v: status %d; want %d\n%s%s", args, code, want, stdout, stderr)
	}
	return stdout, stderr
}

// as is the delivery n as a target gets it.
func as(n, attempt int) string {
	return fmt.Sprintf("X-Twice: a\nX-Twice: b\nX-Signature: old\nWaybill-Delivery-Seq: %d\nWaybill-Attempt: %d\n%s", n, attempt, body(n))
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q; want %q", what, got, want)
	}
}

func TestReplaySendsWhatIsMeantAsItCame(t *testing.T) {
	hook := newEndpoint(t)
	f := newFilled(t, inbox.Yes, inbox.No, inbox.Yes, inbox.Yes)
	_, stderr := f.replay(command.OK, nil, "4", "e1", "2", "1", "--to", hook.URL)
	same(t, "by name, each once, as received", hook.taken(), []string{as(1, 2), as(2, 2), as(4, 2)})
	if !strings.Contains(stderr, "not verified: delivery 2") {
		t.Errorf("stderr %q", stderr)
	}
	_, stderr = f.replay(command.OK, nil, "--since", "1h", "--to", hook.URL)
	same(t, "since", hook.taken(), []string{as(1, 2), as(3, 2), as(4, 2)})
	if !strings.Contains(stderr, "--forward-unverified") {
		t.Errorf("stderr %q", stderr)
	}
	f.replay(command.OK, nil, "--since", "3m30s", "--forward-unverified", "--to", hook.URL)
	same(t, "since, unverified too", hook.taken(), []string{as(2, 2), as(3, 2), as(4, 2)})
	f.replay(command.OK, nil, "--filter", "number=N3", "--duplicate", "2", "--to", hook.URL)
	same(t, "filter, three times", hook.taken(), []string{as(3, 2), as(3, 3), as(3, 4)})
	f.replay(command.Usage, nil, "--filter", "number=N9", "--to", hook.URL)
	f.replay(command.NotFound, nil, "e9", "--to", hook.URL)
	same(t, "nothing", hook.taken(), nil)
}

func TestReplayToKnownTargets(t *testing.T) {
	one, two := newEndpoint(t), newEndpoint(t)
	f := newFilled(t, inbox.Yes, inbox.Yes)
	_, stderr := f.replay(command.Usage, nil, "1")
	if !strings.Contains(stderr, "--to URL") {
		t.Errorf("stderr %q", stderr)
	}
	f.give("number=N1=>" + one.URL)
	f.give("event=kind.1=>" + one.URL)
	f.give("number=N*=>" + two.URL)
	f.replay(command.OK, nil, "1", "2")
	same(t, "one", one.taken(), []string{as(1, 2)})
	same(t, "two", two.taken(), []string{as(1, 2), as(2, 2)})
}

func TestReplayOfTheDead(t *testing.T) {
	hook := newEndpoint(t)
	f := newFilled(t, inbox.Yes, inbox.Yes)
	_, stderr := f.replay(command.OK, nil, "--dead")
	if !strings.Contains(stderr, "Nothing was given up") {
		t.Errorf("stderr %q", stderr)
	}
	f.give(hook.URL)
	same(t, "dead", f.dead(), []string{"1 answered 500", "2 answered 500"})

	hook.answers(418)
	f.replay(command.Refused, nil, "--dead")
	same(t, "sent", hook.taken(), []string{as(1, 2), as(2, 2)})
	same(t, "still dead, with the new reason", f.dead(), []string{"1 answered 418", "2 answered 418"})

	// Elsewhere it arrives, but its own target still lacks it. With a corrupted
	// signature nothing was delivered, whatever the answer.
	hook.answers(200)
	other := newEndpoint(t)
	_, stderr = f.replay(command.OK, nil, "--dead", "--to", other.URL)
	if got := other.taken(); len(got) != 2 || !strings.Contains(stderr, "stay in the list") {
		t.Errorf("%q, stderr %q", got, stderr)
	}
	secret := []string{"WAYBILL_WEBHOOK_SECRET=s"}
	f.replay(command.OK, secret, "--dead", "--corrupt-signature", "--scheme", "hmac-body-hex")
	if got := hook.taken(); len(got) != 2 || strings.Contains(got[0], "X-Signature: old") {
		t.Errorf("%q", got)
	}
	same(t, "still dead", f.dead(), []string{"1 answered 418", "2 answered 418"})

	stdout, _ := f.replay(command.OK, nil, "--dead", "-o", "jsonl")
	if got := hook.taken(); len(got) != 2 || !strings.Contains(got[0], body(1)) || !strings.Contains(stdout, `"attempt":3`) {
		t.Errorf("%q, %s", got, stdout)
	}
	same(t, "none dead", f.dead(), nil)
}

// What was pruned is no failure of a replay of all: it is one line, and the rest is sent.
func TestReplayOfPrunedBytes(t *testing.T) {
	hook := newEndpoint(t)
	f := newFilled(t, inbox.Yes, inbox.Yes, inbox.Yes)
	prune := func(age time.Duration) {
		f.open(func(db *store.DB) {
			if _, err := db.Prune(t.Context(), time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		})
	}
	prune(90 * time.Second)
	_, stderr := f.replay(command.OK, nil, "--since", "1h", "--to", hook.URL)
	same(t, "those that are whole", hook.taken(), []string{as(3, 2)})
	if !strings.HasPrefix(stderr, "Skipped, pruned: 2 deliveries\n") || strings.Count(stderr, "pruned") != 1 {
		t.Errorf("stderr %q", stderr)
	}
	prune(0)
	for _, args := range [][]string{{"--since", "1h", "--to", hook.URL}, {"1", "--to", hook.URL}} {
		if _, stderr := f.replay(command.NotFound, nil, args...); !strings.Contains(stderr, "its bytes were pruned\nhint: ") {
			t.Errorf("stderr %q", stderr)
		}
	}
}

func TestReplaySaysHowToRepeatIt(t *testing.T) {
	f := newFilled(t, inbox.Yes, inbox.Yes, inbox.Yes, inbox.Yes)
	_, stderr := f.replay(command.Unreachable, nil, "--since", "1h", "--to", "http://127.0.0.1:1/hook", "--reorder", "--seed", "5", "-o", "json")
	var last struct{ Code, NextCommand string }
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"waybill events replay ", "--reorder", "--seed 5", "--store ", "--since 1h"} {
		if last.Code != "unreachable" || !strings.Contains(last.NextCommand, part) {
			t.Errorf("%+v lacks %s", last, part)
		}
	}
}

func TestReplayStopsInTime(t *testing.T) {
	t.Parallel()
	hook := newEndpoint(t)
	f := newFilled(t, inbox.Yes, inbox.Yes)
	_, stderr := f.replay(command.Pending, nil, "1", "2", "--to", hook.URL, "--rate", "0.001", "--timeout", "2s")
	if !strings.Contains(stderr, "next: waybill events replay 1 2 --to") || !strings.Contains(stderr, "1 left") {
		t.Errorf("stderr %q", stderr)
	}
	same(t, "one", hook.taken(), []string{as(1, 2)})
}

func TestReplayRefusesWrongLines(t *testing.T) {
	f := newFilled(t, inbox.Yes)
	for _, args := range [][]string{
		{},
		{"1", "--dead"},
		{"1", "--since", "1h"},
		{"--dead", "--filter", "number=1"},
		{"--since", "noon"},
		{"--filter", "x=y"},
		{"1", "--to", "ftp://x"},
		{"1", "--to", "http://u:secret@x"},
		{"1", "--duplicate", "-1"},
		{"1", "--duplicate", "1001"},
		{"1", "--rate", "-1"},
		{"1", "--rate", "NaN"},
		{"1", "--expect-status", "ok"},
		{"1", "--scheme", "hmac-body-hex"},
		{"1", "--resign"},
		{"1", "--corrupt-signature"},
		{"1", "--resign", "--scheme", "nosuch"},
		{"1", "--seed", "-1"},
		{"1", "--to", "http://169.254.169.254/"},
	} {
		stdout, stderr := f.replay(command.Usage, nil, args...)
		if strings.Contains(stderr, "secret@") || !strings.Contains(stderr, "hint: ") || (stdout != "" && !strings.Contains(stdout, "not sent")) {
			t.Errorf("%v: stdout %q, stderr %q", args, stdout, stderr)
		}
	}
}
