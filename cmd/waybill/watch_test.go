//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	visible "github.com/waybill-cli/waybill/internal/term"
)

// session is a command on a terminal, whose bytes are read as they come.
type session struct {
	tb   testing.TB
	cmd  *exec.Cmd
	keys *os.File      // the keyboard
	tty  *os.File      // what the command has for its streams
	read chan struct{} // closed when all was read

	mu   sync.Mutex
	raw  strings.Builder
	more chan struct{}
}

// begin starts a command on a terminal of that size that changes no byte. Its modes
// are checked to be the same at the end of the test.
func (w *world) begin(size pty.Winsize, cmd *exec.Cmd, env ...string) (*session, func(pty.Winsize)) {
	w.tb.Helper()
	return w.beginIn(true, size, cmd, env...)
}

// beginIn is begin on a terminal that changes no byte, or on one as a shell has it.
func (w *world) beginIn(raw bool, size pty.Winsize, cmd *exec.Cmd, env ...string) (*session, func(pty.Winsize)) {
	w.tb.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		w.tb.Fatal(err)
	}
	if raw {
		if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
			w.tb.Fatal(err)
		}
	}
	before, err := term.GetState(int(tty.Fd()))
	if err != nil {
		w.tb.Fatal(err)
	}
	resize := func(size pty.Winsize) {
		if err := pty.Setsize(ptmx, &size); err != nil {
			w.tb.Fatal(err)
		}
	}
	resize(size)
	cmd.Env = append(slices.Clone(cmd.Env), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	s := &session{tb: w.tb, cmd: cmd, keys: ptmx, tty: tty, read: make(chan struct{}), more: make(chan struct{}, 1)}
	if err := cmd.Start(); err != nil {
		w.tb.Fatal(err)
	}
	go func() {
		defer close(s.read)
		for buf := make([]byte, 4096); ; {
			n, err := ptmx.Read(buf)
			s.mu.Lock()
			s.raw.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	w.tb.Cleanup(func() {
		after, err := term.GetState(int(tty.Fd()))
		if err != nil || *after != *before {
			w.tb.Errorf("the modes of the terminal are %+v, %v; were %+v", after, err, before)
		}
		tty.Close()
		ptmx.Close()
		<-s.read
	})
	return s, resize
}

// await waits until what came matches.
func (s *session) await(pattern string) {
	s.tb.Helper()
	want := regexp.MustCompile(pattern)
	late := time.After(patience)
	for !want.MatchString(s.text()) {
		select {
		case <-s.more:
		case <-late:
			s.tb.Fatalf("%s did not come; got %q", pattern, s.text())
		}
	}
}

func (s *session) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw.String()
}

// end waits for the end of the command, and returns its status and all that came.
func (s *session) end() (int, string) {
	s.tb.Helper()
	code, err := ended(s.cmd, patience)
	if err != nil {
		s.tb.Error(err)
	}
	const mark = "\x00the end\x00" // a terminal keeps the order: nothing is on its way after it
	if _, err := s.tty.WriteString(mark); err != nil {
		s.tb.Fatal(err)
	}
	s.await(mark)
	return code, strings.TrimSuffix(s.text(), mark)
}

// Sequences of a page, see term.Page.
const (
	pageOn  = "\x1b[?1049h"
	pageOff = "\x1b[?1049l"
	home    = "\x1b[H"
)

// A watched wait draws one table in place, which fits the terminal as it is resized;
// Ctrl-C gives back what the terminal showed, with the end of the wait below it.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "1h")
	file := orders(t, w.home, 60, ascending)
	if code, _, stderr := w.run("create", file, "-q"); code != 0 {
		t.Fatalf("create: %s", stderr)
	}
	cmd := w.command("wait", "--run", "1", "--watch")
	s, resize := w.begin(pty.Winsize{Rows: 24, Cols: 100}, cmd, "TERM=xterm-256color")
	s.await(`Waiting: 0 of 60 processed, 60 left`)
	s.await(`60 trackings: 60 processing`)
	s.await(regexp.QuoteMeta(ascending(18)) + ` .*\r\n(\x1b\[2m)?… and 41 more`)
	resize(pty.Winsize{Rows: 12, Cols: 60})
	s.await(`\x1b\[2J\x1b\[H`)
	s.await(`… and 53 more`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, raw := s.end()
	if code != 130 {
		t.Errorf("exit status %d; want 130", code)
	}
	before, rest, _ := strings.Cut(raw, pageOn)
	pages, after, ok := strings.Cut(rest, pageOff)
	if !ok || strings.Contains(after, pageOn) || strings.Contains(raw, "\x1b[?25l") {
		t.Fatalf("the terminal is not as it was: %q", raw)
	}
	lines, column := drawn(t, before+after)
	shown := strings.Join(lines, "\n")
	if column != 0 || lines[len(lines)-1] != "" {
		t.Errorf("the cursor is left in column %d of %q", column, lines[len(lines)-1])
	}
	for _, want := range []string{"\n… and 40 more (--rows shows all)\n60 trackings: 60 processing\nwaybill: interrupted: 60 of 60 still processing\nnext: waybill wait --watch --run 1\n"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	if strings.Contains(before, "REFERENCE") || strings.Count(shown, "REFERENCE") != 1 {
		t.Errorf("not one table at the end:\n%s", shown)
	}
	frames := strings.Split(pages, home)[1:]
	for _, f := range frames {
		f = strings.NewReplacer("\x1b[K", "", "\x1b[J", "", "\x1b[2J", "").Replace(colours.ReplaceAllString(f, ""))
		harmless(t, "a page", strings.ReplaceAll(f, "\r\n", "\n"), nil)
		if n := strings.Count(f, "\r\n"); n > 23 {
			t.Errorf("a page of %d lines", n+1)
		}
	}
	for l := range strings.SplitSeq(colours.ReplaceAllString(frames[len(frames)-1], ""), "\x1b[K\r\n") {
		if n := visible.DisplayWidth(l); n > 60 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}

// A watched wait that ends by itself leaves the terminal alike. Without colours there is
// none in its pages, and a terminal that only prints gets lines of JSON.
func TestWatchEndsByItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "2s")
	file := orders(t, w.home, 5, ascending)
	if code, _, stderr := w.run("create", file, "-q"); code != 0 {
		t.Fatalf("create: %s", stderr)
	}
	s, _ := w.begin(pty.Winsize{Rows: 24, Cols: 100}, w.command("wait", "--run", "1", "--watch"), "TERM=xterm", "NO_COLOR=1")
	code, raw := s.end()
	before, rest, _ := strings.Cut(raw, pageOn)
	pages, after, ok := strings.Cut(rest, pageOff)
	if code != 0 || !ok || colours.MatchString(raw) {
		t.Fatalf("exit status %d: %q", code, raw)
	}
	if lines, column := drawn(t, before+after); column != 0 || !regexp.MustCompile(`^5 trackings: [^\n]*\n$`).MatchString(strings.Join(lines, "\n")) {
		t.Errorf("the terminal shows %q, cursor in column %d", lines, column)
	}
	if !strings.Contains(pages, "Waiting: ") {
		t.Errorf("no page: %q", pages)
	}
	s, _ = w.begin(pty.Winsize{Rows: 24, Cols: 100}, w.command("wait", "--run", "1", "--watch"), "TERM=dumb")
	if code, raw := s.end(); code != 0 || strings.Contains(raw, "\x1b") || !strings.HasPrefix(raw, `{"type":"summary","trackings":5,`) {
		t.Errorf("exit status %d: %q", code, raw)
	}
}

// A failure during a watched wait takes the page off before it is shown.
func TestWatchEndsWithAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--processing", "1h")
	file := orders(t, w.home, 3, ascending)
	if code, _, stderr := w.run("create", file, "-q"); code != 0 {
		t.Fatalf("create: %s", stderr)
	}
	s, _ := w.begin(pty.Winsize{Rows: 24, Cols: 100}, w.command("wait", "--run", "1", "--watch", "--timeout", "1s"), "TERM=xterm")
	code, raw := s.end()
	_, after, ok := strings.Cut(raw, pageOff)
	if code != 8 || !ok || !strings.Contains(colours.ReplaceAllString(after, ""), "\nTimed out: 3 of 3 still processing\nnext: waybill wait --watch --run 1 --timeout 1s\n") {
		t.Errorf("exit status %d: %q", code, raw)
	}
}
