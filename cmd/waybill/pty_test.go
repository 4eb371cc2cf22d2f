//go:build unix

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/term"

	visible "github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/term/termtest"
)

// on runs a command on a terminal of so many columns that changes no byte,
// with more environment, and returns its exit status and all that came.
// Streams that are set already stay what they are.
func (w *world) on(columns uint16, cmd *exec.Cmd, env ...string) (code int, raw string) {
	w.tb.Helper()
	ptmx, tty, err := pty.Open()
	if err != nil {
		w.tb.Fatal(err)
	}
	defer ptmx.Close()
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
		w.tb.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		w.tb.Fatal(err)
	}
	cmd.Env = append(slices.Clone(cmd.Env), env...)
	if cmd.Stdin, cmd.Stderr = tty, tty; cmd.Stdout == nil {
		cmd.Stdout = tty
	}
	if err := cmd.Start(); err != nil {
		w.tb.Fatal(err)
	}
	tty.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(termtest.Output(ptmx)); err != nil {
		w.tb.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		w.tb.Fatal(err)
	}
	return code, b.String()
}

// terminal runs a command with all streams on a terminal that knows colours.
func (w *world) terminal(columns uint16, args ...string) (code int, raw string) {
	w.tb.Helper()
	cmd := w.command(args...)
	cmd.Stdout = nil
	return w.on(columns, cmd, "TERM=xterm-256color")
}

// colours are the sequences that may stand in any output on a terminal.
var colours = regexp.MustCompile("\x1b\\[(0|1|2|31|32|33|36)m")

// drawn returns the lines that a terminal shows after raw, and the column of
// its cursor. Any sequence but the program's own fails the test.
func drawn(tb testing.TB, raw string) (lines []string, column int) {
	tb.Helper()
	lines = []string{""}
	for rest := colours.ReplaceAllString(raw, ""); rest != ""; {
		last := len(lines) - 1
		line := []rune(lines[last])
		if after, ok := strings.CutPrefix(rest, "\x1b[K"); ok {
			lines[last], rest = string(line[:min(column, len(line))]), after
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		switch {
		case r == '\r':
			column = 0
		case r == '\n':
			lines, column = append(lines, ""), 0
		case steers(r) || r == '\t':
			tb.Fatalf("%U reached the terminal: %q", r, raw)
		default:
			if column == len(line) {
				line = append(line, ' ')
			}
			line[column] = r
			lines[last] = string(line)
			column++
		}
	}
	return lines, column
}

// steers reports whether a character could steer a terminal, or change or hide
// what stands beside it.
func steers(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\n' && r != '\t'
}

// harmless checks that nothing in s steers a terminal, once the sequences that
// own matches are taken out.
func harmless(tb testing.TB, what, s string, own *regexp.Regexp) {
	tb.Helper()
	if own != nil {
		s = own.ReplaceAllString(s, "")
	}
	for i, r := range s {
		if bad := r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd"); bad || steers(r) {
			tb.Errorf("%s: %U at byte %d of %q", what, r, i, s)
			return
		}
	}
}

func TestSpinnerLeavesNothingBehind(t *testing.T) {
	w := newWorld(t, "--latency", "1s")
	file := orders(t, w.home, 500, ascending)
	code, raw := w.terminal(100, "create", file)
	if code != 0 || !colours.MatchString(raw) {
		t.Fatalf("exit status %d, or no colour: %q", code, raw)
	}
	frame := regexp.MustCompile(`\r[-|/\\] Creating: \d+ of 500 `)
	if n := len(frame.FindAllString(raw, -1)); n < 3 {
		t.Errorf("%d frames of a spinner in %q", n, raw)
	}
	lines, column := drawn(t, raw)
	shown := strings.Join(lines, "\n")
	if column != 0 || lines[len(lines)-1] != "" {
		t.Errorf("the cursor is left in column %d of line %q", column, lines[len(lines)-1])
	}
	if strings.Contains(shown, "Creating") {
		t.Errorf("something of the spinner is left:\n%s", shown)
	}
	if !regexp.MustCompile(`(?m)^Run 1: 500 rows: 500 accepted\n`).MatchString(shown) {
		t.Errorf("no result on the terminal:\n%s", shown)
	}
	if strings.Contains(raw, "\x1b[?25l") {
		t.Error("the cursor is hidden: it stays so after a kill")
	}
}

func TestCreateWithoutTerminal(t *testing.T) {
	w := newWorld(t, "--latency", "300ms")
	file := orders(t, w.home, 500, ascending)
	code, stdout, stderr := w.run("create", file)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	for name, b := range map[string][]byte{"stdout": stdout, "stderr": stderr} {
		if bytes.ContainsAny(b, "\x1b\r\b") {
			t.Errorf("%s moves a cursor: %q", name, b)
		}
	}
	lines := strings.Split(string(stdout), "\n")
	if want := "RUN\tREAD\tNEW\t"; !strings.HasPrefix(lines[0], want) {
		t.Errorf("first line %q; want %q at its start", lines[0], want)
	}
	if want := "1\t500\t500\t0\t0\t0\t500\t"; len(lines) != 3 || !strings.HasPrefix(lines[1], want) || lines[2] != "" {
		t.Errorf("lines %q; want one after the header, with %q at its start", lines, want)
	}
}

// A workbook is no text for a terminal.
func TestWorkbookNeedsFile(t *testing.T) {
	w := newHome(t)
	for _, args := range [][]string{{"list", "-o", "xlsx"}, {"runs", "list", "-o", "xlsx", "--out", "-"}} {
		if code, raw := w.terminal(100, args...); code != 2 || !strings.Contains(raw, "add --out FILE") || strings.Contains(raw, "PK") {
			t.Errorf("%q: exit status %d: %s", args, code, raw)
		}
	}
}

func TestPipeBesideTerminal(t *testing.T) {
	w := newWorld(t, "--latency", "500ms")
	cmd := w.command("create", orders(t, w.home, 500, ascending))
	stdout := cmd.Stdout.(*bytes.Buffer)
	code, raw := w.on(100, cmd, "TERM=xterm")
	if code != 0 {
		t.Fatalf("exit status %d: %q", code, raw)
	}
	harmless(t, "stdout", stdout.String(), nil)
	if want := "\n1\t500\t500\t"; !strings.Contains(stdout.String(), want) {
		t.Errorf("stdout %q; want %q in it", stdout, want)
	}
	if lines, column := drawn(t, raw); column != 0 || strings.Contains(strings.Join(lines, ""), "Creating") {
		t.Errorf("the terminal shows %q, cursor in column %d", lines, column)
	}
}

func TestTerminalsThatOnlyPrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--latency", "300ms", "--processing", "0s")
	file := orders(t, w.home, 500, ascending)
	commands := [][]string{
		{"create", file},
		{"show", ascending(1)},
		{"show", ascending(1), "NONE"},
		{"wait", ascending(2)},
		{"list", "--limit", "5"},
		{"runs", "list"},
		{"runs", "show", "1"},
		{"--help"},
		{"nonsense"},
	}
	for _, env := range []struct {
		set  string
		none *regexp.Regexp
	}{
		{"TERM=dumb", regexp.MustCompile(`[\x1b\r\x08]`)},
		{"NO_COLOR=1", regexp.MustCompile(`\x1b\[[0-9;:]*m`)},
	} {
		for _, args := range commands {
			cmd := w.command(args...)
			cmd.Stdout = nil
			_, raw := w.on(100, cmd, "TERM=xterm-256color", env.set)
			if raw == "" {
				t.Errorf("%s %q: nothing came", env.set, args)
			}
			if at := env.none.FindStringIndex(raw); at != nil {
				t.Errorf("%s %q: %q in %q", env.set, args, raw[at[0]:at[1]], raw)
			}
		}
	}
}

// narrow is how many columns a small terminal has.
const narrow = 60

func TestNarrowTerminal(t *testing.T) {
	w := newWorld(t, "--processing", "0s")
	file := filepath.Base(orders(t, w.home, 20, ascending))
	for _, tt := range []struct {
		code int
		args []string
		want []string // whole in what is shown
	}{
		{0, []string{"create", file, "-q"}, []string{"Run 1: 20 rows: 20 accepted"}},
		{0, []string{"create", file, "--dry-run", "-q"}, []string{"sent before"}},
		{0, []string{"list"}, []string{ascending(19), parcelNumber(19)}},
		{0, []string{"show", ascending(1)}, []string{ascending(1), parcelNumber(1), "LOCAL TIME"}},
		{6, []string{"show", ascending(1), ascending(2), "NONE", "-q"}, []string{ascending(2), parcelNumber(2), "NONE"}},
		{0, []string{"show", ascending(1), ascending(2), "--timeline"}, []string{ascending(2), parcelNumber(2)}},
		{0, []string{"wait", "--run", "1", "--rows", "-q"}, []string{ascending(19), parcelNumber(19)}},
		{0, []string{"list"}, []string{ascending(19), parcelNumber(19), "SANDBOX_"}},
		{0, []string{"runs", "list"}, []string{"ACCEPTED", "PENDING"}},
		{0, []string{"runs", "show", "1"}, []string{"BATCH", "accepted"}},
		{0, []string{"--help"}, []string{"waybill demo"}},
	} {
		code, raw := w.terminal(narrow, tt.args...)
		if code != tt.code {
			t.Errorf("%q: exit status %d; want %d: %q", tt.args, code, tt.code, raw)
		}
		lines, _ := drawn(t, raw)
		for _, l := range lines {
			if n := visible.DisplayWidth(l); n > narrow && !aboutIt(l) {
				t.Errorf("%q: %d columns: %s", tt.args, n, l)
			}
		}
		for _, want := range tt.want {
			if !strings.Contains(strings.Join(lines, "\n"), want) {
				t.Errorf("%q: no %q in\n%s", tt.args, want, strings.Join(lines, "\n"))
			}
		}
	}
}

// aboutIt reports whether a line is a message, not part of the result: the
// terminal itself breaks it.
func aboutIt(line string) bool {
	for _, prefix := range []string{"waybill: ", "warning: ", "hint: ", "next: ", "orders-20.csv row "} { // the last one: a row that a warning names
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func TestIdentifiersAreNeverCut(t *testing.T) {
	w := newWorld(t, "--processing", "0s")
	refer := "REFERENCE-" + strings.Repeat("0123456789", 5)
	number := "NUMBER" + strings.Repeat("ABCDEFGHI7", 4)
	file := filepath.Join(w.home, "long.csv")
	if err := os.WriteFile(file, []byte("referId,rawTrackingNumber\n"+refer+","+number+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, raw := w.terminal(narrow, "create", file, "-q"); code != 0 {
		t.Fatalf("exit status %d: %q", code, raw)
	}
	for _, args := range [][]string{{"show", refer}, {"show", refer, refer + "-2"}, {"wait", "--run", "1", "--rows"}, {"list"}} {
		_, raw := w.terminal(narrow, append(args, "-q")...)
		lines, _ := drawn(t, raw)
		shown := strings.Join(lines, "\n")
		for _, id := range []string{refer, number} {
			if !strings.Contains(shown, id) {
				t.Errorf("%q: %s is not whole in\n%s", args, id, shown)
			}
		}
	}
}

// hostile is text that wants to steer a terminal, in every way there is.
const hostile = "\x1b[2J\x1b]52;c;cm0gLXJm\x07\r\u202e\x00\u009b31m\u200b\u2066\u2028\x7f\ufeff\u00adEND"

// foreign is hostile text as a terminal may show it.
var foreign = regexp.MustCompile(`\\(u\{1b\}|u001b|x1b)\[2J`)

// hostileTracking is an answer in which every text is hostile, but for those
// that are set.
func hostileTracking(refer, number string) map[string]any {
	point := map[string]any{
		"eventType": "t" + hostile, "eventCity": "c" + hostile, "eventState": "s" + hostile, "eventZIPCode": "z" + hostile,
		"eventTimestamp": "2026-01-01T00:00:00" + hostile, "GMTTimestamp": "2026-01-01T00:00:00Z" + hostile, "x" + hostile: hostile,
	}
	return map[string]any{"message": "m" + hostile, "data": map[string]any{
		"referId": refer, "carrierCode": "k" + hostile, "trackingNumber": number,
		"status": "n" + hostile, "statusTrack": "r" + hostile, "routerId": "i" + hostile, "error": "e" + hostile, hostile: hostile,
		"summary": map[string]any{
			"id": "i" + hostile, "trackingNumber": number, "status": "n" + hostile, "statusLabel": "l" + hostile,
			"latestEvent": "v" + hostile, "latestCheckpointTime": "p" + hostile, "transitTime": "d" + hostile,
			"created": "a" + hostile, "updated": "u" + hostile,
		},
		"detail": map[string]any{"trackingNumber": number, "statusSummary": "y" + hostile, "trackingEvents": []any{point, point}},
	}}
}

// answer writes a JSON answer that holds a broken byte and characters that
// JSON allows raw, and headers as bad as HTTP has them.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	b = bytes.ReplaceAll(b, []byte("END"), []byte("\x9b5m\u0085E"))
	w.Header().Set("X-Hostile", "\u202e\u009b2J\x9b31m\u200b")
	w.Header().Set("Location", "http://127.0.0.1/\u202e\u009b2J")
	w.Header().Set("Retry-After", "0")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// rawAnswer takes the connection and writes bytes to it.
func rawAnswer(w http.ResponseWriter, head, body string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "%s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", head, len(body), body)
}

// hostileAnswers are what the service answers, by name.
func hostileAnswers() map[string]http.HandlerFunc {
	message := map[string]any{"message": "no: " + hostile}
	return map[string]http.HandlerFunc{
		"REFUSED": func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusUnprocessableEntity, message) },
		"KEY":     func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusUnauthorized, message) },
		"GONE":    func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusGone, message) },
		"MOVED":   func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusFound, message) },
		"ENVELOPE": func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, map[string]any{"error": message})
		},
		"NONE": func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusNotFound, message) },
		"ITEMS": func(w http.ResponseWriter, _ *http.Request) {
			one := map[string]any{"referId": "R1", "trackingNumber": "N1", "success": false, "error": "e" + hostile, "message": "m" + hostile}
			answer(w, http.StatusOK, map[string]any{"success": true, "data": []any{one}})
		},
		"PAGE": func(w http.ResponseWriter, _ *http.Request) {
			rawAnswer(w, "HTTP/1.1 200 OK", "<html>"+hostile+"\x9b\xff")
		},
		"PHRASE": func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, "HTTP/1.1 422 "+hostile[:20], hostile) },
		"HEADER": func(w http.ResponseWriter, _ *http.Request) {
			rawAnswer(w, "HTTP/1.1 200 OK\r\nX-Hostile: a\x1b[2J\u202e\x07b", "{}")
		},
		"BROKEN": func(w http.ResponseWriter, _ *http.Request) { rawAnswer(w, "\x1b[2J\u202e\x9b HTTP", "{}") },
	}
}

// newHostileWorld is a world whose service is hostile: to a query as the REF
// says, to a create as create says.
func newHostileWorld(tb testing.TB, create http.HandlerFunc) *world {
	tb.Helper()
	answers := hostileAnswers()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			create(w, r)
			return
		}
		refer := r.URL.Query().Get("referId")
		switch named := answers[refer]; {
		case named != nil:
			named(w, r)
		case refer == "OTHER":
			answer(w, http.StatusOK, hostileTracking("o"+hostile, "o"+hostile))
		case refer == "R1":
			answer(w, http.StatusOK, hostileTracking("R1", "N1"))
		default:
			answer(w, http.StatusOK, hostileTracking(refer, "h"+hostile))
		}
	}))
	tb.Cleanup(server.Close)
	w := &world{tb: tb, home: tb.TempDir(), url: server.URL}
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "WAYBILL_API_KEY=k1", "TZ=UTC", "WAYBILL_BASE_URL=" + w.url}
	if err := os.WriteFile(filepath.Join(w.home, "two.csv"), []byte("referId,rawTrackingNumber\nR1,N1\nR2,N2\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return w
}

// outputs are the ways to ask for a result. On a terminal that only prints,
// with --debug, nothing of our own is allowed either.
var outputs = []struct {
	name string
	args []string
	term string
	own  *regexp.Regexp
}{
	{"table", []string{"-q"}, "TERM=xterm", colours},
	{"json", []string{"-o", "json"}, "TERM=xterm", nil},
	{"jsonl", []string{"-o", "jsonl"}, "TERM=xterm", nil},
	{"jq", []string{"-o", "json", "--jq", ".. | strings"}, "TERM=xterm", nil},
	{"csv", []string{"-o", "csv", "-q"}, "TERM=xterm", colours},
	{"debug", []string{"--debug"}, "TERM=dumb", nil},
	{"debug json", []string{"--debug", "-o", "json"}, "TERM=xterm", nil},
}

// survive runs a command in every way on a terminal and checks that nothing
// foreign steers it. With shows, each way must show something foreign.
func survive(t *testing.T, w *world, shows bool, args ...string) {
	t.Helper()
	for _, o := range outputs {
		cmd := w.command(append(slices.Clone(args), o.args...)...)
		cmd.Stdout = nil
		_, raw := w.on(300, cmd, o.term) // so wide that nothing is cut
		what := fmt.Sprintf("%.60q, %s", args, o.name)
		harmless(t, what, raw, o.own)
		if shows && !foreign.MatchString(raw) {
			t.Errorf("%s: nothing foreign is shown, so nothing was tested: %q", what, raw)
		}
	}
}

func accept(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, map[string]any{}) }

func TestHostileFileName(t *testing.T) {
	w := newHostileWorld(t, accept)
	name := "\x1b[31mred\nwaybill: 100%d.csv"
	if err := os.WriteFile(filepath.Join(w.home, name), []byte("referId,rawTrackingNumber,other\nR1,N1,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	survive(t, w, false, "create", name, "--dry-run")
	_, raw := w.terminal(300, "create", name, "--dry-run")
	for _, bad := range []string{"\x1b[31mred", "\nwaybill: 100", "%!d"} {
		if strings.Contains(raw, bad) {
			t.Errorf("%q of the file's name is in %q", bad, raw)
		}
	}
}

func TestHostileAnswersToQueries(t *testing.T) {
	t.Parallel()
	w := newHostileWorld(t, accept)
	if code, stdout, stderr := w.run("create", "two.csv", "-o", "json", "--skip-proof"); code != 0 {
		t.Fatalf("exit status %d: %s%s", code, stdout, stderr)
	}
	survive(t, w, true, "show", "R1")
	survive(t, w, true, "show", "R1", "R2", "NONE", "--timeline")
	survive(t, w, true, "wait", "R1", "--timeout", "2s")
	survive(t, w, true, "wait", "R1", "R2", "--timeout", "2s")
	survive(t, w, true, "list")
	survive(t, w, false, "show", "OTHER", "--timeout", "1s")
	survive(t, w, false, "show", "a"+strings.ReplaceAll(hostile, "\x00", ""), "--timeout", "1s")
	for name := range hostileAnswers() {
		survive(t, w, false, "show", name, "--timeout", "1s")
	}
	survive(t, w, true, "show", "REFUSED", "--timeout", "1s")
}

func TestHostileAnswersToCreates(t *testing.T) {
	t.Parallel()
	shown := []string{"REFUSED", "KEY", "GONE", "ENVELOPE", "PAGE", "ITEMS"}
	for name, create := range hostileAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range outputs {
				w := newHostileWorld(t, create)
				cmd := w.command(append([]string{"create", "two.csv", "--skip-proof"}, o.args...)...)
				cmd.Stdout = nil
				code, raw := w.on(300, cmd, o.term)
				if code == 0 {
					t.Errorf("%s: exit status 0: %q", o.name, raw)
				}
				harmless(t, "create, "+o.name, raw, o.own)
				if slices.Contains(shown, name) && !foreign.MatchString(raw) {
					t.Errorf("create, %s: what the service said is not shown: %q", o.name, raw)
				}
			}
			w := newHostileWorld(t, create)
			w.run("create", "two.csv")
			survive(t, w, false, "list")
			survive(t, w, false, "runs", "list")
			survive(t, w, slices.Contains(shown[:3], name), "runs", "show", "1")
		})
	}
}
