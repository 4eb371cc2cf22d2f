package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// What the page's reader would paste, in the order of the files.
const (
	portalSecret = "a secret from the portal"
	nextSecret   = "the secret after that"
)

// TestWebhooksPage does what docs/webhooks.md tells its reader to type, in
// order, with a sender that signs as the page says it found out. Every line of
// output that the page shows must come: its words, in this order, whatever the
// digits and whatever stands where the page has an ellipsis.
func TestWebhooksPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ := strings.Cut(string(page), "\n<!-- path -->") // what follows is typed by TestReadmeSessions
	r := newPageReader(t)
	for _, block := range strings.Split(own, "\n```")[1:] {
		language, text, _ := strings.Cut(block, "\n")
		switch language {
		case "console":
			for _, step := range strings.Split("\n"+text, "\n$ ")[1:] {
				command, shown, _ := strings.Cut(step, "\n")
				r.typed(command, strings.Split(strings.TrimSpace(shown), "\n"))
			}
		case "yaml":
			r.edited(text)
		}
	}
	r.stop()
	if r.commands < 12 || r.listens != 3 {
		t.Errorf("%d commands, %d of them listen; want the way from the first delivery to --forward-to", r.commands, r.listens)
	}
}

// pageReader is somebody who follows the page, and the service beside.
type pageReader struct {
	t      *testing.T
	home   string
	app    string // the URL of the reader's own application
	events int    // that the service has sent

	listener *exec.Cmd
	url, out string // of the listener: where it is, and the file with what it prints

	commands, listens int
}

func newPageReader(t *testing.T) *pageReader {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(app.Close)
	r := &pageReader{t: t, home: t.TempDir(), app: app.URL}
	t.Cleanup(r.stop)
	return r
}

// typed runs a command and compares what it prints.
func (r *pageReader) typed(command string, shown []string) {
	r.t.Helper()
	r.commands++
	if strings.HasPrefix(command, "waybill listen") {
		r.listen(command)
		r.expect(command, shown, func() string {
			b, err := os.ReadFile(r.out)
			if err != nil {
				r.t.Error(err)
			}
			return string(b)
		})
		return
	}
	cmd := r.shell(command)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Stdin = strings.NewReader(portalSecret + "\n")
	if strings.Contains(command, "new.secret") {
		cmd.Stdin = strings.NewReader(nextSecret + "\n")
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	code, err := ended(cmd, patience)
	if err != nil {
		r.t.Fatalf("$ %s: %v\n%s", command, err, &out)
	}
	if fails := strings.HasPrefix(shown[0], "waybill: "); fails != (code != 0) && !strings.Contains(command, "explain") {
		r.t.Errorf("$ %s: status %d\n%s", command, code, &out)
	}
	r.expect(command, shown, out.String)
}

// shell is a command in the reader's home.
func (r *pageReader) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = r.home
	cmd.Env = []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "WAYBILL_LISTEN_ADDR=127.0.0.1:0", raceSettings()}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// expect waits until output has every line that the page shows.
func (r *pageReader) expect(command string, shown []string, output func() string) {
	r.t.Helper()
	for _, line := range shown {
		for end := time.Now().Add(20 * time.Second); !hasLine(output(), line); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) || !strings.HasPrefix(command, "waybill listen") {
				r.t.Errorf("$ %s: does not print %q, but\n%s", command, line, output())
				break
			}
		}
	}
}

var (
	digits = regexp.MustCompile(`\d+`)
	gaps   = regexp.MustCompile(`[\s…]+`)
)

// hasLine reports whether a line of out has the words of another in order.
func hasLine(out, shown string) bool {
	var words []string
	for _, word := range gaps.Split(shown, -1) {
		words = append(words, digits.ReplaceAllString(regexp.QuoteMeta(word), `\d+`))
	}
	return regexp.MustCompile(`(?m)^.*` + strings.Join(words, `.*`) + `.*$`).MatchString(out)
}

// listen starts the receiver, in place of the one that runs, and lets the
// service and somebody else send what the page tells of.
func (r *pageReader) listen(command string) {
	r.t.Helper()
	r.stop()
	r.listens++
	ready := filepath.Join(r.home, fmt.Sprintf("listen%d.url", r.listens))
	r.out = filepath.Join(r.home, fmt.Sprintf("listen%d.out", r.listens))
	f, err := os.Create(r.out)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the listener has its own
	r.listener = r.shell("exec " + strings.ReplaceAll(command, "http://127.0.0.1:3000", r.app) + " --ready-file " + ready)
	r.listener.Stdout, r.listener.Stderr = f, f
	if err := r.listener.Start(); err != nil {
		r.t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			r.url = strings.TrimSpace(string(b))
			break
		}
		if time.Now().After(end) {
			r.t.Fatal("listen was not ready in time")
		}
	}
	switch r.listens {
	case 1:
		r.send(portalSecret, 3, http.StatusOK)
	case 2:
		r.send(portalSecret, 3, http.StatusOK)
		r.send("", 1, http.StatusOK)
		r.send(portalSecret, 3, http.StatusOK)
	case 3:
		r.send(portalSecret, 1, http.StatusOK)
		r.send("", 1, http.StatusUnauthorized)
		r.send(nextSecret, 1, http.StatusUnauthorized)
	}
}

// send sends so many events, signed unless secret is empty.
func (r *pageReader) send(secret string, n, want int) {
	r.t.Helper()
	scheme, ok := webhook.PresetByName("timestamped-kv")
	if !ok {
		r.t.Fatal("no preset timestamped-kv")
	}
	for range n {
		r.events++
		body := fmt.Sprintf(`[{"eventId":"e-%d","event":"router.delivered","data":{"trackingNumber":"1Z999AA10123456%d","status":1,"statusTrack":"delivered"}}]`, r.events, 783+r.events)
		req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+"/hooks", strings.NewReader(body))
		if err != nil {
			r.t.Fatal(err)
		}
		if secret != "" {
			signed, err := webhook.Sign(scheme.Scheme, webhook.Secret{Value: []byte(secret)}, webhook.Request{Method: req.Method, Path: req.URL.Path, Body: []byte(body)}, time.Now())
			if err != nil {
				r.t.Fatal(err)
			}
			for _, f := range signed.Header {
				req.Header.Set(f.Name, f.Value)
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			r.t.Errorf("event %d: answered %d; want %d", r.events, res.StatusCode, want)
		}
	}
}

// edited writes the page's secrets into the reader's configuration.
func (r *pageReader) edited(yaml string) {
	r.t.Helper()
	line := regexp.MustCompile(`(?m)^  secrets: .*$`)
	path := filepath.Join(r.home, ".config", "waybill", "config.yaml")
	b, err := os.ReadFile(path)
	if err != nil || !line.Match(b) || line.FindString(yaml) == "" {
		r.t.Fatalf("no secrets to change in %s (%v), or on the page: %s", b, err, yaml)
	}
	if err := os.WriteFile(path, line.ReplaceAllLiteral(b, []byte(line.FindString(yaml))), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// stop ends the receiver as Ctrl-C does.
func (r *pageReader) stop() {
	r.t.Helper()
	if r.listener == nil {
		return
	}
	_ = r.listener.Process.Signal(os.Interrupt)
	if code, err := ended(r.listener, patience); code != 0 || err != nil {
		r.t.Errorf("listen: ended with %d: %v", code, err)
	}
	r.listener = nil
}
