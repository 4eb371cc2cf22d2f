package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/waybill-cli/waybill/internal/cli"
)

// TestMain lets the test binary be waybill when a script runs it, and what
// waybill is measured against when a benchmark does.
func TestMain(m *testing.M) {
	commands := peers()
	commands["waybill"] = func() {
		moveStores()
		os.Exit(int(cli.Main()))
	}
	commands["unprivileged"] = unprivileged
	testscript.Main(m, commands)
}

// unprivileged is `unprivileged PROGRAM ARG...`: it becomes a program that the
// permissions of files bind, whoever runs the tests.
func unprivileged() {
	err := dropPrivileges()
	path := ""
	if err == nil {
		path, err = exec.LookPath(os.Args[1])
	}
	if err == nil {
		err = syscall.Exec(path, os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "unprivileged:", err)
	os.Exit(125)
}

// scripts is the folder of transcripts; every file in it is run.
const scripts = "../../testdata/script"

func TestScripts(t *testing.T) {
	files, err := filepath.Glob(scripts + "/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d scripts found (%v): the folder is not where it should be", len(files), err)
	}
	files = forSystem(t, files)
	if onServer() {
		if files = withoutFileScripts(t, files); files == nil {
			return
		}
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"workbook":   makeWorkbook,
			"sheets":     printWorkbook,
			"eventually": eventually,
			"completes":  completes,
			"ready":      ready,
			"jsonl":      jsonl,
			"jq":         jq,
			"members":    members,
			"contains":   contains,
			"mode":       mode,
			"plain":      plain,
			"absent":     absent,
			"send":       send,
			"page":       askPage,
			"posted":     posted,
			"unanswered": unanswered,
			"status":     status,

			"created": countCreated,
			"asked":   countAsked,

			"waitevents":  waitEvents,
			"waitrefused": waitRefused,
			"waittaken":   waitTaken,
			"waitasked":   waitAsked,
			"waitlisted":  waitListed,
			"waitqueued":  waitQueued,
			"waitposted":  waitPosted,
			"waitprinted": waitPrinted,
		},
	})
}

// reservedAddresses is how many addresses a script has, RESERVED1 and so on, for servers
// whose address must stay theirs once they have ended.
const reservedAddresses = 9

// setup gives every script a home of its own and the inputs of testdata.
func setup(e *testscript.Env) error {
	inputs, err := filepath.Abs("../../testdata/input")
	if err != nil {
		return err
	}
	home := filepath.Join(e.WorkDir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("USERPROFILE", home)
	e.Setenv("INPUT", inputs)
	e.Setenv("WAYBILL_API_KEY", "k1")
	e.Setenv("TZ", "UTC")
	e.Setenv("GORACE", os.Getenv("GORACE"))
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "NO_COLOR", "CLICOLOR_FORCE", "HTTPS_PROXY", "HTTP_PROXY"} {
		e.Setenv(name, "")
	}
	for i := range reservedAddresses {
		addr, err := reserve(e)
		if err != nil {
			return err
		}
		e.Setenv(fmt.Sprintf("RESERVED%d", i+1), addr)
	}
	if onServer() {
		return giveSchemas(e)
	}
	return nil
}

// exits CODE PROGRAM ARG... runs a program that must end with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	if got := exitStatus(ts, args[1:]); got != args[0] {
		ts.Fatalf("exit status %s; want %s", got, args[0])
	}
}

// exitStatus runs a program and returns its exit status.
func exitStatus(ts *testscript.TestScript, line []string) string {
	err := ts.Exec(line[0], line[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return strconv.Itoa(exit.ExitCode())
	}
	ts.Check(err)
	return "0"
}

// completes WORD... asks for what completes the last word until something is
// offered: where the store does not open in time, nothing is.
func completes(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: completes WORD...")
	}
	until(ts, "a completion", func() bool {
		ts.Check(ts.Exec("waybill", append([]string{"__complete"}, args...)...))
		return !strings.HasPrefix(ts.ReadFile("stdout"), ":")
	})
}

// ready FILE VARIABLE waits for a server's ready file and sets VARIABLE to the
// URL in it, and ADDR_VARIABLE to its address.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ready FILE VARIABLE")
	}
	path := ts.MkAbs(args[0])
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if !bytes.HasSuffix(b, []byte("\n")) || bytes.Count(b, []byte("\n")) != 1 {
			ts.Fatalf("ready file is not one line: %q", b)
		}
		url := strings.TrimSuffix(string(b), "\n")
		ts.Setenv(args[1], url)
		ts.Setenv("ADDR_"+args[1], strings.TrimPrefix(url, "http://"))
		return
	}
	ts.Fatalf("%s: not ready in time", args[0])
}

// jsonl stdout|stderr|FILE checks that every line is a JSON object.
func jsonl(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonl FILE")
	}
	for i, line := range strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n") {
		var v map[string]any
		if line == "" && i == 0 {
			return
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("line %d is not a JSON object: %v: %s", i+1, err, line)
		}
	}
}

// jq FILE PATH VALUE compares a value inside a JSON file: PATH is a list of
// members and indexes joined by dots.
func jq(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] jq FILE PATH VALUE")
	}
	var v any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	dec.UseNumber()
	ts.Check(dec.Decode(&v))
	for part := range strings.SplitSeq(args[1], ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			if part == "length" {
				v = len(x)
				continue
			}
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				ts.Fatalf("%s: no element %q", args[1], part)
			}
			v = x[i]
		default:
			ts.Fatalf("%s: nothing inside %v", args[1], v)
		}
	}
	want := onStore(ts, args[2])
	if got := fmt.Sprint(v); (got == want) == neg {
		ts.Fatalf("%s is %q; want %q (negated: %v)", args[1], got, want, neg)
	}
}

// contains FILE TEXT checks that a file has a text in it.
func contains(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] contains FILE TEXT")
	}
	if want := onStore(ts, args[1]); strings.Contains(ts.ReadFile(args[0]), want) == neg {
		ts.Fatalf("%s: %q is not as it should be (negated: %v)", args[0], want, neg)
	}
}

// mode FILE PERM checks a file's permissions.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("%s has mode %s; want %s", args[0], got, args[1])
	}
}

// plain FILE checks that a file holds nothing that could steer a terminal.
func plain(ts *testscript.TestScript, _ bool, args []string) {
	for i, r := range ts.ReadFile(args[0]) {
		if (r < 0x20 && r != '\n' && r != '\t') || r == 0x7f || (r >= 0x80 && r <= 0x9f) || (r >= 0x202a && r <= 0x202e) || r == 0xfffd {
			ts.Fatalf("%s: character %U at byte %d", args[0], r, i)
		}
	}
}

// absent FILE checks that a file does not exist.
func absent(ts *testscript.TestScript, _ bool, args []string) {
	if _, err := os.Stat(ts.MkAbs(args[0])); !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("%s exists (%v)", args[0], err)
	}
}

// send URL BODY [HEADER VALUE]... posts a body, which must be taken.
func send(ts *testscript.TestScript, neg bool, args []string) {
	posted(ts, neg, append([]string{"200"}, args...))
}

// posted CODE URL BODY [HEADER VALUE]... posts a body, which must be answered so.
func posted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args)%2 == 0 {
		ts.Fatalf("usage: posted CODE URL BODY [HEADER VALUE]...")
	}
	if got := post(ts, args[1:]); fmt.Sprint(got) != args[0] {
		ts.Fatalf("%s answered %d; want %s", args[1], got, args[0])
	}
}

// unanswered CODE URL BODY [HEADER VALUE]... posts a body to a server that ends: the answer has
// the status, or none comes because the server has ended before.
func unanswered(ts *testscript.TestScript, _ bool, args []string) {
	if got, err := tryPost(ts, args[1:]); err == nil && fmt.Sprint(got) != args[0] {
		ts.Fatalf("%s answered %d; want %s or no answer", args[1], got, args[0])
	}
}

// post posts a body with those headers and returns the status of the answer.
func post(ts *testscript.TestScript, args []string) int {
	code, err := tryPost(ts, args)
	ts.Check(err)
	return code
}

// tryPost is post for a server that may have ended: the error says that no answer came.
func tryPost(ts *testscript.TestScript, args []string) (int, error) {
	req, err := http.NewRequest(http.MethodPost, args[0], strings.NewReader(args[1]))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	for i := 2; i < len(args); i += 2 {
		req.Header.Add(args[i], args[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// waittaken URL BODY [HEADER VALUE]... posts a body until it is taken.
func waitTaken(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "a delivery to be taken", func() bool { return post(ts, args) == http.StatusOK })
}

// status METHOD URL CODE checks the answer to a request without a body.
func status(ts *testscript.TestScript, _ bool, args []string) {
	req, err := http.NewRequest(args[0], args[1], nil)
	ts.Check(err)
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	if fmt.Sprint(res.StatusCode) != args[2] {
		ts.Fatalf("%s %s answered %s; want %s", args[0], args[1], res.Status, args[2])
	}
}

// created N DISTINCT checks how many trackings the service's sandbox created,
// repeated ones included, and how many of them are distinct.
func countCreated(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: created N DISTINCT")
	}
	if s := sandboxStats(ts); s.Created.String() != args[0] || s.Distinct.String() != args[1] {
		ts.Fatalf("%s created, %s distinct; want %s and %s", s.Created, s.Distinct, args[0], args[1])
	}
}

// asked [N] checks how many times the service's sandbox was asked about trackings
// since the last asked.
func countAsked(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) > 1 {
		ts.Fatalf("usage: [!] asked [N]")
	}
	all := sandboxStats(ts).Requests["detail"]
	before, _ := strconv.Atoi(ts.Getenv("ASKED")) // 0 at first
	ts.Setenv("ASKED", strconv.Itoa(all))
	if got := strconv.Itoa(all - before); len(args) == 1 && (got == args[0]) == neg {
		ts.Fatalf("asked %s times; want %s (negated: %v)", got, args[0], neg)
	}
}

// sandboxCounts are what the service's sandbox counts.
type sandboxCounts struct {
	Created, Distinct json.Number
	Requests          map[string]int
	Deliveries        struct{ Waiting int }
}

func sandboxStats(ts *testscript.TestScript) (s sandboxCounts) {
	res, err := http.Get(ts.Getenv("WAYBILL_BASE_URL") + "/_sandbox/stats?rows=0")
	ts.Check(err)
	defer res.Body.Close()
	ts.Check(json.NewDecoder(res.Body).Decode(&s))
	return s
}

// waitEvents KIND N waits until the inbox has N events of a kind.
func waitEvents(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "events of kind "+args[0], func() bool {
		ts.Check(ts.Exec("waybill", "events", "list", "--limit", "0", "--event", args[0], "-o", "jsonl"))
		return fmt.Sprint(strings.Count(ts.ReadFile("stdout"), "\n")) == args[1]
	})
}

// waitRefused waits until the service's sandbox met a refusal: the queue of
// deliveries is empty again.
func waitRefused(ts *testscript.TestScript, _ bool, _ []string) {
	until(ts, "the queue of deliveries to be empty", func() bool { return sandboxStats(ts).Deliveries.Waiting == 0 })
}

// waitasked waits until the service's sandbox was asked about a tracking.
func waitAsked(ts *testscript.TestScript, _ bool, _ []string) {
	asked := func() int { return sandboxStats(ts).Requests["detail"] }
	before := asked()
	until(ts, "a question about a tracking", func() bool { return asked() > before })
}

// waitlisted N FLAG... waits until a list with those flags has N trackings.
func waitListed(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "a list of "+args[0], func() bool {
		ts.Check(ts.Exec("waybill", append([]string{"list", "-o", "jsonl"}, args[1:]...)...))
		return fmt.Sprint(strings.Count(ts.ReadFile("stdout"), "\n")) == args[0]
	})
}

// waitposted STATUS URL BODY HEADER... posts until that is answered with the status.
func waitPosted(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, "an answer "+args[0], func() bool { return fmt.Sprint(post(ts, args[1:])) == args[0] })
}

// waitqueued N FLAG... waits until N deliveries have been tried and wait to be forwarded.
func waitQueued(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, args[0]+" in the outbox", func() bool {
		ts.Check(ts.Exec("waybill", append([]string{"events", "list", "--pending", "-o", "jsonl"}, args[1:]...)...))
		return fmt.Sprint(strings.Count(ts.ReadFile("stdout"), `"problem":`)) == args[0]
	})
}

// waitprinted TEXT PROGRAM ARG... runs a program until one of its outputs has a text in it.
func waitPrinted(ts *testscript.TestScript, _ bool, args []string) {
	until(ts, fmt.Sprintf("%q in what %s prints", args[0], args[1]), func() bool {
		exitStatus(ts, args[1:])
		return strings.Contains(ts.ReadFile("stdout"), args[0]) || strings.Contains(ts.ReadFile("stderr"), args[0])
	})
}

func until(ts *testscript.TestScript, what string, done func() bool) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	ts.Fatalf("waited in vain for %s", what)
}
