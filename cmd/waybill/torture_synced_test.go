package main_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/ledger"
)

// How strace shows the beginning of a create, and of a 200.
const (
	createBegins = `"POST /api/`
	answerBegins = `"HTTP/1.1 200`
)

// moments are how much of the log of the store was surely on disk, in bytes
// from its beginning, when a message left and when something was printed.
type moments struct {
	messages, prints []int64
	problems         []string // why that can't be told
}

// placed finds how much a call wrote, and where.
var placed = regexp.MustCompile(`, (\d+), (\d+)\) += (\d+)$`)

// calls finds what matters in a line of strace: the thread, the call or the
// one that is resumed, and what it is about.
var calls = regexp.MustCompile(`^(\d+) +(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$`)

// synced reads the moments from a log of strace. Messages begin like that.
func synced(log, begins string) (m moments) {
	var written, kept int64           // ends of what was written, and synced
	syncing := map[string]int64{}     // what was written when a thread's sync began
	unfinished := map[string]string{} // what threads were interrupted in
	for line := range strings.Lines(log) {
		c := calls.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if c == nil {
			continue
		}
		thread, call, rest := c[1], cmp.Or(c[2], c[3]), c[4]
		if c[3] != "" {
			rest = unfinished[thread] + rest
			delete(unfinished, thread)
		}
		about, _, _ := strings.Cut(rest, ">")
		begun, interrupted := strings.CutSuffix(rest, " <unfinished ...>")
		if interrupted {
			unfinished[thread] = begun
		}
		switch ours := strings.HasSuffix(about, "-wal"); {
		case strings.Contains(call, "sync") && ours:
			if c[3] == "" {
				syncing[thread] = written
			}
			if strings.HasSuffix(rest, " = 0") {
				kept = max(kept, syncing[thread])
			}
		case strings.Contains(call, "write") && ours && !interrupted:
			at := placed.FindStringSubmatch(rest)
			if at == nil || at[1] != at[3] {
				m.problems = append(m.problems, "written how far? "+line)
				continue
			}
			long, _ := strconv.ParseInt(at[1], 10, 64)
			from, _ := strconv.ParseInt(at[2], 10, 64)
			if from < written {
				m.problems = append(m.problems, "the log was begun anew: "+line)
			}
			written = from + long
		case strings.HasSuffix(about, ".db") && len(m.messages) > 0 && strings.Contains(call, "write"):
			m.problems = append(m.problems, "the store itself was written: "+line)
		case c[3] == "" && strings.Contains(rest, begins):
			m.messages = append(m.messages, kept)
		case c[3] == "" && call == "write" && strings.HasPrefix(rest, "1<"):
			m.prints = append(m.prints, kept)
		}
	}
	return m
}

// What the test below takes for synced was.
func TestSynced(t *testing.T) {
	const wal, more = `10 pwrite64(9</s.db-wal>, "x"..., 24, 0) = 24`, `10 pwrite64(9</s.db-wal>, "x"..., 4096, 24) = 4096`
	const post, out = `11 write(7<socket:[5]>, "POST /api/v2/"..., 900) = 900`, `12 write(1<pipe:[3]>, "{\n", 2) = 2`
	const sync, begun, done = `10 fdatasync(9</s.db-wal>) = 0`, `10 fsync(9</s.db-wal> <unfinished ...>`, `10 <... fsync resumed>) = 0`
	for _, c := range []struct {
		name    string
		lines   []string
		creates []int64
		prints  []int64
		odd     bool
	}{
		{"in order", []string{wal, sync, post, more, sync, out}, []int64{24}, []int64{4120}, false},
		{"sent before the sync", []string{wal, post, sync, out}, []int64{0}, []int64{24}, false},
		{"sent within the sync", []string{wal, begun, post, done, out}, []int64{0}, []int64{24}, false},
		{"written within the sync", []string{wal, begun, more, done, post, out}, []int64{24}, []int64{24}, false},
		{"written in two goes", []string{`10 pwrite64(9</s.db-wal>, "x"..., 24, 0 <unfinished ...>`, `10 <... pwrite64 resumed>) = 24`, sync, post, out}, []int64{24}, []int64{24}, false},
		{"sent in two goes", []string{wal, `11 write(7<socket:[5]>, "POST /api/v2/"..., 900 <unfinished ...>`, sync, `11 <... write resumed>) = 900`, out}, []int64{0}, []int64{24}, false},
		{"the sync failed", []string{wal, `10 fsync(9</s.db-wal>) = -1 EIO (Input/output error)`, post, sync, out}, []int64{0}, []int64{24}, false},
		{"another file's sync", []string{wal, `10 fsync(4</s.db>) = 0`, post, sync, out}, []int64{0}, []int64{24}, false},
		{"begun anew", []string{wal, more, sync, wal, sync, post, out}, []int64{4120}, []int64{4120}, true},
		{"cut short", []string{`10 pwrite64(9</s.db-wal>, "x"..., 24, 0) = 12`, sync, post, out}, []int64{0}, []int64{0}, true},
		{"moved into the store", []string{wal, sync, post, `10 pwrite64(4</s.db>, "x"..., 4096, 0) = 4096`, out}, []int64{24}, []int64{24}, true},
	} {
		m := synced(strings.Join(c.lines, "\n")+"\n", createBegins)
		if !slices.Equal(m.messages, c.creates) || !slices.Equal(m.prints, c.prints) || len(m.problems) > 0 != c.odd {
			t.Errorf("%s: %+v; want creates at %v, prints at %v", c.name, m, c.creates, c.prints)
		}
	}
}

// survives opens the store as it would be if the power had failed when a
// create left, for each of them: its rows are sending. And as it would be if
// it had failed at the first print: all rows are accepted.
func survives(t *testing.T, log, path string, creates [][]pair) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	m := synced(string(text), createBegins)
	if len(m.problems) > 0 || len(m.messages) != len(creates) || len(m.prints) == 0 {
		t.Fatalf("%d creates left and %d arrived, %d prints; %q", len(m.messages), len(creates), len(m.prints), m.problems)
	}
	all := map[pair]bool{}
	for i, rows := range creates {
		states := afterPowerCut(t, path, m.messages[i])
		for _, p := range rows {
			all[p] = true
			if states[p] != ledger.Sending {
				t.Fatalf("create %d, %d bytes synced: %v would be %q", i, m.messages[i], p, states[p])
			}
		}
	}
	states := afterPowerCut(t, path, m.prints[0])
	for p := range maps.Keys(all) {
		if states[p] != ledger.Accepted {
			t.Fatalf("first print, %d bytes synced: %v would be %q", m.prints[0], p, states[p])
		}
	}
}

// powerCut returns the path of a copy of a store that has so many bytes of its
// log.
func powerCut(t *testing.T, path string, kept int64) string {
	t.Helper()
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if suffix != "" {
			b = b[:min(kept, int64(len(b)))]
		}
		if err := os.WriteFile(filepath.Join(dir, "s.db"+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "s.db")
}

// afterPowerCut returns the states of all rows in such a copy.
func afterPowerCut(t *testing.T, path string, kept int64) map[pair]ledger.State {
	t.Helper()
	w := witness{path: powerCut(t, path, kept)}
	states, err := w.states()
	if err != nil {
		t.Fatal(fmt.Errorf("%d bytes: %w", kept, err))
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return states
}
