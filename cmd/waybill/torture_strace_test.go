package main_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// writes are the calls that put something on the disk, or tell somebody.
const writes = "write,pwrite64,writev,pwritev,fsync,fdatasync,sync_file_range,ftruncate,sendto,sendmsg"

// straced is a command that strace looks at, or spoils calls of.
func (w *world) straced(options, args []string) *exec.Cmd {
	w.tb.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		w.tb.Fatalf("%v: the full form of this test needs it", err)
	}
	cmd := w.command(args...)
	cmd.Args = append(append([]string{strace, "-f", "-y"}, options...), cmd.Args...)
	cmd.Path = strace
	return cmd
}

// createBegins is how strace shows the beginning of a create.
const createBegins = `"POST /api/`

// calls finds what matters in a line of strace: the thread, the call or the
// one that is resumed, and what it is about.
var calls = regexp.MustCompile(`^(\d+) +(?:(\w+)\(|<\.\.\. (\w+) resumed>)(.*)$`)

// misorders reads a log of strace and returns what left, or was printed, while
// something written to the log of the store was not yet synced; and how many
// messages with that beginning left, and how often stdout was written to.
func misorders(log, begins string) (wrong []string, left, prints int) {
	written, synced := 0, 0
	syncing := map[string]int{} // what was written when a thread's sync began
	for line := range strings.Lines(log) {
		m := calls.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		thread, call, resumed, rest := m[1], m[2], m[3], m[4]
		syncs := strings.Contains(call+resumed, "sync")
		about, _, _ := strings.Cut(rest, ">")
		ours := strings.HasSuffix(about, "-wal")
		ended := strings.HasSuffix(rest, "= 0") && !strings.Contains(rest, "unfinished")
		switch {
		case syncs && (ours || resumed != ""):
			if resumed == "" {
				syncing[thread] = written
			}
			if at, ok := syncing[thread]; ok && ended {
				synced = max(synced, at)
				delete(syncing, thread)
			}
		case strings.Contains(call, "write") && ours:
			written++
		case strings.Contains(rest, begins):
			left++
			if synced < written {
				wrong = append(wrong, line)
			}
		case call == "write" && strings.HasPrefix(rest, "1<"):
			prints++
			if synced < written {
				wrong = append(wrong, line)
			}
		}
	}
	return wrong, left, prints
}

// What the test below sees is seen.
func TestMisorders(t *testing.T) {
	const wal, post, out = `10 pwrite64(9</s.db-wal>, "x", 24, 0) = 24`, `11 write(7<socket:[5]>, "POST /api/v2/"..., 900) = 900`, `12 write(1<pipe:[3]>, "{\n", 2) = 2`
	const sync, begun, done = `10 fdatasync(9</s.db-wal>) = 0`, `10 fsync(9</s.db-wal> <unfinished ...>`, `10 <... fsync resumed>) = 0`
	for _, c := range []struct {
		name  string
		lines []string
		want  int
	}{
		{"in order", []string{wal, sync, post, wal, sync, out}, 0},
		{"sent before the sync", []string{wal, post, sync, out}, 1},
		{"printed before the sync", []string{wal, sync, post, wal, out, sync}, 1},
		{"sent within the sync", []string{wal, begun, post, done, out}, 1},
		{"sent after the sync's end", []string{wal, begun, done, post, out}, 0},
		{"written within the sync", []string{wal, begun, wal, done, post, out}, 2},
		{"the sync failed", []string{wal, `10 fsync(9</s.db-wal>) = -1 EIO (Input/output error)`, post, sync, out}, 1},
		{"another file's sync", []string{wal, `10 fsync(4</s.db>) = 0`, post, sync, out}, 1},
	} {
		wrong, creates, prints := misorders(strings.Join(c.lines, "\n")+"\n", createBegins)
		if len(wrong) != c.want || creates != 1 || prints != 1 {
			t.Errorf("%s: %d creates, %d prints, wrong: %q; want %d wrong", c.name, creates, prints, wrong, c.want)
		}
	}
}
