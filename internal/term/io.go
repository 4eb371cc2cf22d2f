// Package term handles input and output: the program's three streams, the properties of their terminals, messages to
// the user, and progress.
//
// It is the only package that writes to a terminal. No byte from the service or from a file can control a terminal:
// all but printable text, newline and tab becomes a visible escape in the last step before the write, and human text
// is made visible before it is laid out, terminal or not.
package term

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/waybill-cli/waybill/internal/redact"
)

// IO is the program's three streams.
type IO struct {
	In  io.Reader
	Out *Writer // requested output only
	Err *Writer // messages and progress

	facts   Facts
	options Options

	mu   sync.Mutex
	live []*running // started and not stopped

	secrets  []string // see Hide
	redactor *redact.Redactor
}

// Facts are the known properties of streams and their terminals. The zero value means streams without a terminal.
type Facts struct {
	InTerminal  bool
	OutTerminal bool
	ErrTerminal bool

	// Env holds the variables NO_COLOR, CLICOLOR_FORCE, TERM, COLUMNS, LC_ALL, LC_CTYPE and LANG, if set.
	Env map[string]string

	fixed bool // the terminals do not support escape sequences
}

// Options are the settings of the streams. With the zero value, the terminal decides about colour.
type Options struct {
	Color   string // auto, always or never; empty for auto
	Quiet   bool   // no notes and no progress
	Verbose bool   // also details
	JSON    bool   // messages are JSON objects, one per line
}

// System returns the streams of the process. It reads the environment and opens nothing.
func System() *IO {
	f := Facts{
		InTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Env:         map[string]string{},
	}
	f.fixed = f.OutTerminal && !canMove(os.Stdout) || f.ErrTerminal && !canMove(os.Stderr)
	for _, name := range []string{"NO_COLOR", "CLICOLOR_FORCE", "TERM", "COLUMNS", "LC_ALL", "LC_CTYPE", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			f.Env[name] = v
		}
	}
	return New(os.Stdin, os.Stdout, os.Stderr, f)
}

// New returns streams with the properties f. If out and err are terminals, they must be the same one. A spinner needs
// err to be an *os.File. Configure need not be called.
func New(in io.Reader, out, err io.Writer, f Facts) *IO {
	shared := &screen{}
	width, _ := strconv.Atoi(f.Env["COLUMNS"]) // for terminals that do not report a width; 0 for none
	t := &IO{In: in, Out: Plain(out), Err: Plain(err), facts: f}
	if f.OutTerminal {
		t.Out.terminal, t.Out.width, t.Out.screen = true, width, shared
	}
	if f.ErrTerminal {
		t.Err.terminal, t.Err.width, t.Err.screen = true, width, shared
	}
	t.Configure(Options{})
	return t
}

// Hide redacts secrets in later messages.
func (t *IO) Hide(secrets ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range secrets {
		if !slices.Contains(t.secrets, s) {
			t.secrets = append(t.secrets, s)
			t.redactor = redact.New(t.secrets...)
		}
	}
}

func (t *IO) masker() *redact.Redactor {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.redactor
}

// Configure replaces the options with o. It must not be called during writes.
func (t *IO) Configure(o Options) {
	t.options = o
	for _, w := range []*Writer{t.Out, t.Err} {
		w.color = t.facts.color(o.Color, w)
		w.movable = w.terminal && !t.facts.dumb()
	}
}

func (f Facts) color(asked string, w *Writer) bool {
	switch {
	case asked == "always":
		return true
	case asked == "never", f.Env["NO_COLOR"] != "":
		return false
	case f.Env["CLICOLOR_FORCE"] != "" && f.Env["CLICOLOR_FORCE"] != "0":
		return true
	}
	return w.terminal && !f.dumb()
}

func (f Facts) dumb() bool { return f.fixed || f.Env["TERM"] == "dumb" }

// UTF8 reports whether terminals show more than ASCII, according to the locale; Windows without a locale does.
func (t *IO) UTF8() bool {
	e := t.facts.Env
	locale := strings.ToUpper(cmp.Or(e["LC_ALL"], e["LC_CTYPE"], e["LANG"]))
	named := strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
	return !t.facts.dumb() && (named || locale == "" && runtime.GOOS == "windows")
}

// InTerminal reports whether In is a terminal.
func (t *IO) InTerminal() bool { return t.facts.InTerminal }

// Close stops every progress and page, and writes the buffers of the streams. It closes no stream and may be called
// more than once. It returns the first write error.
func (t *IO) Close() error {
	t.stop()
	return cmp.Or(t.Out.Release(), t.Err.Release())
}

// running is the common part of [Progress] and [Page].
type running struct {
	io   *IO
	once sync.Once
	end  func() // ends the display; nil if nothing is shown
}

func (r *running) begin(end func()) {
	r.end = end
	r.io.mu.Lock()
	defer r.io.mu.Unlock()
	r.io.live = append(r.io.live, r)
}

// Stop ends the display: nothing more is written, and nothing stays on the terminal. It may be called repeatedly.
func (r *running) Stop() {
	r.once.Do(func() {
		if r.end == nil {
			return
		}
		r.end()
		r.io.mu.Lock()
		defer r.io.mu.Unlock()
		r.io.live = slices.DeleteFunc(r.io.live, func(other *running) bool { return other == r })
	})
}

// stop stops all displays, latest first: a page restores the terminal before the displays below it end.
func (t *IO) stop() {
	t.mu.Lock()
	live := slices.Clone(t.live)
	t.mu.Unlock()
	for _, r := range slices.Backward(live) {
		r.Stop()
	}
}
