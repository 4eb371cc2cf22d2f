//go:build unix

package main_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/waybill-cli/waybill/internal/term/termtest"
)

var updateReadme = flag.Bool("update", false, "write the output of the README's commands into it")

// sessionPages have console blocks that are typed.
var sessionPages = []string{"README.md", "docs/trackings.md", "docs/recipes.md", "docs/webhooks.md"}

// readmeColumns is the width of the terminal that the README shows.
const readmeColumns = 100

// readmeNow is the time that the README shows as now when it is written.
var readmeNow = time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)

// TestReadmeSessions types what console blocks of the README and of some pages show
// after `$`, each path from an empty folder, on a terminal, and compares what comes. A
// path begins with a comment <!-- path --> and ends at the next heading; blocks in
// comments are typed too. Times, ports and the folder are those of the README. With
// -update the output replaces the page's.
func TestReadmeSessions(t *testing.T) {
	t.Parallel()
	for _, page := range sessionPages {
		if commands := typePage(t, "../../"+page); commands < 5 {
			t.Errorf("%s: %d commands were typed; want a path", page, commands)
		}
	}
}

// typePage types the console blocks of a page and says how many commands those have.
func typePage(t *testing.T, page string) int {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var s *readmeSession
	var out strings.Builder
	commands := 0
	for _, part := range consoleParts(string(text)) {
		switch {
		case strings.Contains(part.text, "<!-- path -->"):
			if s != nil {
				s.end()
			}
			s = newReadmeSession(t)
			out.WriteString(part.text)
		case !part.console || s == nil:
			if s != nil && strings.Contains("\n"+part.text, "\n## ") {
				s.end()
				s = nil
			}
			out.WriteString(part.text)
		default:
			for _, step := range consoleSteps(part.text) {
				commands++
				if step.command != "" {
					out.WriteString("$ " + step.command + "\n")
				}
				for _, line := range s.step(step) {
					out.WriteString(line + "\n")
				}
			}
		}
	}
	if s != nil {
		s.end()
	}
	if *updateReadme && !t.Failed() {
		if err := os.WriteFile(page, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return commands
}

// consolePart is a piece of a page: the inside of a console block, or what stands
// around them.
type consolePart struct {
	console bool
	text    string
}

var consoleFence = regexp.MustCompile("(?m)^(?:```console|<!-- console|```|-->)\n")

// consoleParts cuts a page at its console blocks and path comments.
func consoleParts(text string) []consolePart {
	var parts []consolePart
	inside := false
	add := func(piece string) {
		for {
			before, after, found := strings.Cut(piece, "<!-- path -->")
			if inside || !found {
				parts = append(parts, consolePart{inside, piece})
				return
			}
			parts = append(parts, consolePart{false, before}, consolePart{false, "<!-- path -->"})
			piece = after
		}
	}
	from := 0
	for _, at := range consoleFence.FindAllStringIndex(text, -1) {
		opens := strings.Contains(text[at[0]:at[1]], "console")
		switch {
		case opens && !inside:
			add(text[from:at[1]])
			from, inside = at[1], true
		case !opens && inside:
			add(text[from:at[0]])
			from, inside = at[0], false
		}
	}
	add(text[from:])
	return parts
}

// consoleStep is a command of a console block and the lines shown after it. Without a
// command they are what listen prints after what was shown of it.
type consoleStep struct {
	command string
	shown   []string
}

// consoleSteps reads the inside of a console block. A here-document belongs to its
// command.
func consoleSteps(text string) []consoleStep {
	var steps []consoleStep
	until := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		last := len(steps) - 1
		switch {
		case until != "":
			steps[last].command += "\n" + line
			if line == until {
				until = ""
			}
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, consoleStep{command: line[2:]})
			if _, mark, found := strings.Cut(line, "<<"); found {
				until = strings.Trim(mark, "'")
			}
		case last < 0:
			steps = append(steps, consoleStep{shown: []string{line}})
		default:
			steps[last].shown = append(steps[last].shown, line)
		}
	}
	return steps
}

// readmeSession is somebody who follows a path of the README at a terminal.
type readmeSession struct {
	t         *testing.T
	home      string
	exports   string
	code      int // exit status of the last command
	addresses map[string]string
	servers   []*readmeServer
}

// readmeServer is a command that runs in the background.
type readmeServer struct {
	name  string // of the command
	cmd   *exec.Cmd
	out   *os.File
	shown int // lines that were compared
}

// The path of its home is short, since lines wrap before it is written as /home/you.
func newReadmeSession(t *testing.T) *readmeSession {
	t.Helper()
	home, err := os.MkdirTemp("", "") //nolint:usetesting // t.TempDir has the name of the test in its path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return &readmeSession{t: t, home: home, addresses: map[string]string{}}
}

// step does one step and returns the lines that the README shows after it.
func (s *readmeSession) step(step consoleStep) []string {
	s.t.Helper()
	command := step.command
	for documented, actual := range s.addresses {
		command = strings.ReplaceAll(command, documented, actual)
	}
	var got []string
	switch {
	case strings.HasPrefix(command, "waybill sandbox"), strings.HasPrefix(command, "waybill listen"):
		return s.compareServer(step, s.serve(strings.TrimSuffix(command, " &")))
	case command == "":
		listener := slices.IndexFunc(s.servers, func(server *readmeServer) bool { return server.name == "listen" })
		return s.compareServer(step, s.servers[listener])
	case strings.HasPrefix(command, "export "):
		s.exports += command + "\n"
	case strings.HasPrefix(command, "curl "):
		s.post(command)
	case command == "echo $?":
		got = []string{strconv.Itoa(s.code)}
	default:
		got = s.typed(command)
	}
	return s.compare(step, false, func() []string { return got })
}

// compareServer compares what a server has printed since the last time.
func (s *readmeSession) compareServer(step consoleStep, server *readmeServer) []string {
	s.t.Helper()
	lines := s.compare(step, true, func() []string {
		lines := s.lines(server)
		return lines[min(server.shown, len(lines)):]
	})
	server.shown += len(lines)
	return lines
}

// shell is a command line in the session's folder.
func (s *readmeSession) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", s.exports+command)
	cmd.Dir = s.home
	cmd.Env = []string{"HOME=" + s.home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "TERM=dumb", "LANG=C.UTF-8", raceSettings()}
	return cmd
}

// typed runs a command on a terminal and returns the lines on it.
func (s *readmeSession) typed(command string) []string {
	s.t.Helper()
	w := &world{tb: s.t}
	var raw string
	s.code, raw = w.on(readmeColumns, s.shell(command))
	lines, _ := drawn(s.t, raw)
	return s.documented(slices.DeleteFunc(lines, readmeProgress.MatchString))
}

// readmeProgress is a line of progress, which comes only when the computer is slow.
var readmeProgress = regexp.MustCompile(`^(Creating|Waiting|Checking|Sending): \d+ of `)

// documented returns lines with the README's addresses and folder in place of those
// of this run, without the empty ones at the end.
func (s *readmeSession) documented(lines []string) []string {
	lines = slices.Clone(lines)
	for i, line := range lines {
		for documented, actual := range s.addresses {
			line = strings.ReplaceAll(line, actual, documented)
		}
		lines[i] = strings.TrimRight(strings.ReplaceAll(line, s.home, "/home/you"), " ")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// defaultAddresses are where the servers listen by default.
var defaultAddresses = map[string]string{"sandbox": "127.0.0.1:8640", "listen": "127.0.0.1:8377"}

// serve starts a command in the background, on a free port, and waits until it is
// ready.
func (s *readmeSession) serve(command string) *readmeServer {
	s.t.Helper()
	name := strings.Fields(command)[1]
	ready := filepath.Join(s.home, ".ready-"+strconv.Itoa(len(s.servers)))
	ptmx, tty, err := pty.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := term.MakeRaw(int(tty.Fd())); err != nil {
		s.t.Fatal(err)
	}
	if err := pty.Setsize(ptmx, &pty.Winsize{Rows: 24, Cols: readmeColumns}); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.shell("exec " + command + " --addr 127.0.0.1:0 --ready-file " + ready)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	_ = tty.Close() // the command has its own
	out, err := os.Create(ready + ".out")
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_, _ = out.ReadFrom(termtest.Output(ptmx)) // until the command has ended
		_ = ptmx.Close()
	}()
	server := &readmeServer{name: name, cmd: cmd, out: out}
	s.servers = append(s.servers, server)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			s.addresses[defaultAddresses[name]] = strings.TrimPrefix(strings.TrimSpace(string(b)), "http://")
			return server
		}
		if time.Now().After(end) {
			s.t.Fatalf("$ %s: not ready in time", command)
		}
	}
}

// lines returns what a server has printed so far.
func (s *readmeSession) lines(server *readmeServer) []string {
	b, err := os.ReadFile(server.out.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	lines, _ := drawn(s.t, string(b))
	return s.documented(lines)
}

var postedBody = regexp.MustCompile(`^curl -X POST (\S+) -d '([^']*)'$`)

// post does what curl would, which is not needed for the tests.
func (s *readmeSession) post(command string) {
	s.t.Helper()
	m := postedBody.FindStringSubmatch(command)
	if m == nil {
		s.t.Fatalf("$ %s: want it as curl -X POST URL -d 'BODY'", command)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m[1], strings.NewReader(m[2]))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode/100 != 2 {
		s.t.Errorf("$ %s: answered %s", command, res.Status)
	}
}

// readmeVaries is what differs from run to run: times, ages, durations, sizes of keys.
var readmeVaries = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+Z?)?)?|\b\d\d:\d\d:\d\d\b|\bnow\b|\b\d+ (s|min|h|days?) ago\b|\b\d+(\.\d+)?(ms|s)\b|\b\d+(\.\d+)? s\b|127\.0\.0\.1:\d{5}|[0-9a-f]{8}-[0-9a-f-]{27}`)

// compare compares the lines that came with those that are shown, but for what
// varies, and returns those to be shown. A line `…` at the end stands for all
// further ones. Lines may be late.
func (s *readmeSession) compare(step consoleStep, late bool, got func() []string) []string {
	s.t.Helper()
	shown, rest := step.shown, false
	if n := len(shown); n > 0 && shown[n-1] == "…" {
		shown, rest = shown[:n-1], true
	}
	same := func(lines []string) bool {
		return slices.EqualFunc(lines, shown, func(a, b string) bool {
			return strings.Join(strings.Fields(readmeVaries.ReplaceAllString(a, "~")), " ") == strings.Join(strings.Fields(readmeVaries.ReplaceAllString(b, "~")), " ")
		})
	}
	var lines []string
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		lines = got()
		if rest && len(lines) > len(shown) {
			lines = lines[:len(shown)]
		}
		if !late || !*updateReadme && same(lines) || time.Now().After(end) {
			break
		}
	}
	if *updateReadme {
		lines = shiftTimes(lines)
		if rest {
			lines = append(lines, "…")
		}
		return lines
	}
	if !same(lines) {
		s.t.Errorf("$ %s: shows\n  %s\nthe page\n  %s\n(go test ./cmd/waybill -run TestReadmeSessions -update writes it)",
			step.command, strings.Join(lines, "\n  "), strings.Join(shown, "\n  "))
	}
	return step.shown
}

var shownTime = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`)

// shiftTimes moves times so that now is readmeNow.
func shiftTimes(lines []string) []string {
	by := readmeNow.Sub(time.Now().UTC().Truncate(time.Minute))
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = shownTime.ReplaceAllStringFunc(line, func(at string) string {
			const layout = "2006-01-02 15:04"
			parsed, err := time.Parse(layout, at)
			if err != nil {
				return at
			}
			return parsed.Add(by).Format(layout)
		})
	}
	return out
}

// end stops the servers, the last first, as Ctrl-C does.
func (s *readmeSession) end() {
	s.t.Helper()
	for _, server := range slices.Backward(s.servers) {
		_ = server.cmd.Process.Signal(os.Interrupt)
		if code, err := ended(server.cmd, patience); code != 0 || err != nil {
			s.t.Errorf("%q ended with %d: %v", server.cmd.Args, code, err)
		}
		_ = server.out.Close()
	}
	s.servers = nil
}

func TestConsoleParts(t *testing.T) {
	page := "a\n<!-- path -->\nb\n```console\n$ x <<END\n1\nEND\n2\n```\nc\n<!-- console\n$ y\n-->\nd\n"
	var all bytes.Buffer
	var steps []string
	for _, part := range consoleParts(page) {
		all.WriteString(part.text)
		if part.console {
			for _, step := range consoleSteps(part.text) {
				steps = append(steps, fmt.Sprintf("%q %q", step.command, step.shown))
			}
		}
	}
	want := []string{`"x <<END\n1\nEND" ["2"]`, `"y" []`}
	if all.String() != page || !slices.Equal(steps, want) {
		t.Errorf("parts %q, steps %v; want the page in parts, and %v", all.String(), steps, want)
	}
}
