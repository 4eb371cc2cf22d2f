//go:build !windows

package term

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"
	"golang.org/x/term"

	"github.com/waybill-cli/waybill/internal/term/termtest"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// display is a terminal and the program's streams on it. All bytes that come
// are kept, and drawn.
type display struct {
	*IO
	tty  *os.File
	done chan struct{}

	mu   sync.Mutex
	cond *sync.Cond
	raw  bytes.Buffer
}

// open returns a terminal of so many columns that is all three streams.
func open(t *testing.T, columns int, env map[string]string) *display {
	t.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil { // no newline becomes two characters
		t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	d := &display{tty: tty, done: make(chan struct{})}
	d.cond = sync.NewCond(&d.mu)
	d.IO = New(tty, tty, tty, Facts{InTerminal: true, OutTerminal: true, ErrTerminal: true, Env: env})
	go func() {
		defer close(d.done)
		defer ptmx.Close()
		buf, out := make([]byte, 4096), termtest.Output(ptmx)
		for {
			n, err := out.Read(buf)
			d.mu.Lock()
			d.raw.Write(buf[:n])
			d.cond.Broadcast()
			d.mu.Unlock()
			if err != nil {
				if err != io.EOF {
					t.Errorf("read terminal: %v", err)
				}
				return
			}
		}
	}()
	return d
}

// await waits until ok says so of the bytes that came.
func (d *display) await(t *testing.T, what string, ok func(raw string) bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		late = true
		d.cond.Broadcast()
	})
	defer timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	for !ok(d.raw.String()) {
		if late {
			t.Fatalf("%s did not come; got %q", what, d.raw.String())
		}
		d.cond.Wait()
	}
}

// end closes the program's side and returns all bytes that came.
func (d *display) end(t *testing.T) string {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	d.tty.Close()
	<-d.done
	return d.raw.String()
}

// drawn returns the lines that a terminal shows after raw. It knows the few
// sequences that may come and complains about any other.
func drawn(t *testing.T, raw string, columns int) []string {
	t.Helper()
	lines, col := []string{""}, 0
	for raw != "" {
		last := len(lines) - 1
		switch {
		case strings.HasPrefix(raw, "\x1b[K"):
			lines[last] = lines[last][:min(col, len(lines[last]))]
			raw = raw[3:]
			continue
		case ownSequence([]byte(raw)) != nil:
			raw = raw[len(ownSequence([]byte(raw))):]
			continue
		case raw[0] == '\r':
			col = 0
		case raw[0] == '\n':
			lines, col = append(lines, ""), 0
		case raw[0] < ' ' || raw[0] > '~':
			t.Fatalf("unexpected %q in %q", raw[0], raw)
		default:
			if col >= columns {
				t.Errorf("more than %d columns: %q", columns, lines[last])
			}
			line := []byte(lines[last])
			if col == len(line) {
				line = append(line, ' ')
			}
			line[col] = raw[0]
			lines[last] = string(line)
			col++
		}
		raw = raw[1:]
	}
	return lines
}

func frames(n int, text string) func(string) bool {
	return func(raw string) bool { return strings.Count(raw, text) >= n }
}

func TestSpinner(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := open(t, 60, nil)
	p := d.Progress("sending")
	p.Set("1 of 3", nil)
	d.await(t, "spinner", frames(3, " sending: 1 of 3"))
	d.Note("a note")
	d.await(t, "spinner after a note", frames(5, " sending: 1 of 3"))
	p.Set("2 of 3", nil)
	d.await(t, "news", frames(1, " sending: 2 of 3"))
	if err := d.Out.Printf("a row\n"); err != nil {
		t.Fatal(err)
	}
	d.await(t, "spinner after a row", func(raw string) bool {
		_, after, ok := strings.Cut(raw, "a row\n")
		return ok && strings.Contains(after, "2 of 3")
	})
	p.Stop()
	p.Stop()
	d.Warning("the end")
	raw := d.end(t)
	if got, want := strings.Join(drawn(t, raw, 60), "\n"), "a note\na row\nwarning: the end\n"; got != want {
		t.Errorf("screen shows %q; want %q", got, want)
	}
}

func TestSpinnerLeavesUnfinishedLinesAlone(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := open(t, 60, map[string]string{"NO_COLOR": "1"})
	p := d.Progress("waiting")
	d.await(t, "spinner", frames(2, "waiting"))
	write(t, d.Out, "half a line")
	// While the line is unfinished a second progress can't show either; what
	// is written next follows right after it.
	q := d.Progress("more")
	q.Stop()
	write(t, d.Out, ", the rest\n")
	d.await(t, "spinner after the line", func(raw string) bool {
		_, after, ok := strings.Cut(raw, "the rest\n")
		return ok && strings.Contains(after, "waiting")
	})
	p.Stop()
	raw := d.end(t)
	if !strings.Contains(raw, "half a line, the rest\n") {
		t.Errorf("something came between: %q", raw)
	}
	if got := strings.Join(drawn(t, raw, 60), "\n"); got != "half a line, the rest\n" {
		t.Errorf("screen shows %q", got)
	}
}

func TestSpinnerFitsTheTerminal(t *testing.T) {
	for _, columns := range []int{60, 20, 5, 3, 1} {
		d := open(t, columns, nil)
		p := d.Progress("sending")
		p.Set(strings.Repeat("0123456789", 30), nil)
		d.await(t, "spinner", func(raw string) bool { return strings.Count(raw, "\r") >= 5 })
		p.Stop()
		raw := d.end(t)
		ascii := strings.ReplaceAll(raw, "…", "~")
		if got := drawn(t, ascii, max(columns-3, 1)); len(got) != 1 || got[0] != "" {
			t.Errorf("%d columns: screen shows %q", columns, got)
		}
	}
}

func TestSpinnerShowsForeignTextHarmlessly(t *testing.T) {
	d := open(t, 60, nil)
	p := d.Progress("reading")
	p.Set("a\x1b]0;owned\x07\n\u202eb", nil)
	d.await(t, "spinner", frames(2, "reading"))
	p.Stop()
	raw := d.end(t)
	if !strings.Contains(raw, `reading: a\u{1b}]0;owned\u{7}\n\u{202e}b`) {
		t.Errorf("terminal got %q", raw)
	}
	if got := drawn(t, raw, 60); len(got) != 1 || got[0] != "" {
		t.Errorf("screen shows %q", got)
	}
}

func TestNewestProgressIsShown(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := open(t, 60, nil)
	p := d.Progress("outer")
	d.await(t, "outer", frames(2, "outer"))
	q := d.Progress("inner")
	d.await(t, "inner", frames(3, "inner"))
	q.Stop()
	d.await(t, "outer again", func(raw string) bool {
		return strings.LastIndex(raw, "outer") > strings.LastIndex(raw, "inner")
	})
	p.Stop()
	raw := d.end(t)
	if got := drawn(t, raw, 60); len(got) != 1 || got[0] != "" {
		t.Errorf("screen shows %q", got)
	}
}

func TestSpinnerAmongManyWriters(t *testing.T) {
	defer goleak.VerifyNone(t)
	d := open(t, 60, map[string]string{"NO_COLOR": "1"})
	var wg sync.WaitGroup
	p := d.Progress("sending")
	for i := range 4 {
		wg.Go(func() {
			for n := range 50 {
				p.Set(fmt.Sprint(n), nil)
				d.Note("note %d", i)
				_ = d.Out.Printf("row %d\n", i)
				d.Progress("inner").Stop()
			}
		})
	}
	wg.Wait()
	p.Stop()
	lines := drawn(t, d.end(t), 60)
	if len(lines) != 401 || lines[400] != "" {
		t.Fatalf("%d lines, the last %q; want 400 and an empty one", len(lines), lines[len(lines)-1])
	}
	for _, l := range lines[:400] {
		if !strings.HasPrefix(l, "note ") && !strings.HasPrefix(l, "row ") {
			t.Errorf("line %q", l)
		}
	}
}

func TestTerminalTellsItsWidth(t *testing.T) {
	d := open(t, 60, map[string]string{"COLUMNS": "200"})
	if got := d.Out.Width(); got != 60 {
		t.Errorf("width %d; want 60", got)
	}
	if err := pty.Setsize(d.tty, &pty.Winsize{Rows: 24, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	if got := d.Err.Width(); got != 20 {
		t.Errorf("width after a change %d; want 20", got)
	}
	d.end(t)
}

func TestHostileBytesOnATerminal(t *testing.T) {
	d := open(t, 60, nil)
	hostile := "\x1b[2J\x1b]52;c;QQ==\x07\r\u202e\x00\x9b31m\u009b\x7f"
	write(t, d.Out, hostile)
	d.Note("%s", hostile)
	d.Fail(Failure{Message: hostile, Hint: hostile, Next: hostile})
	raw := strings.NewReplacer(Bad.sequence(), "", Accent.sequence(), "", resetSequence, "").Replace(d.end(t))
	if at := cleanPrefix(raw, severalLines); at != len(raw) {
		t.Errorf("byte %d of %q reached the terminal", at, raw)
	}
	if want := `\u{1b}[2J\u{1b}]52;c;QQ==\u{7}\u{d}\u{202e}\u{0}\x{9b}31m\u{9b}\u{7f}`; strings.Count(raw, want) != 5 {
		t.Errorf("terminal got %q; want %q five times", raw, want)
	}
}
