//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// Secrets of these tests. None may ever show on a terminal.
const (
	wrongKey      = "s3cret-wrong-key"
	rightKey      = "s3cret-right-key"
	webhookSecret = "s3cret-webhook"
)

// atDesk is a home with nothing in it, and a sandbox that takes the right key only.
func atDesk(t *testing.T) *world {
	t.Helper()
	keyFile := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(keyFile, []byte(rightKey), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "--processing", "0s", "--key-file", keyFile)
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "TERM=xterm", "NO_COLOR=1"}
	return w
}

// dialog types answers on a terminal, and counts what was typed.
type dialog struct {
	*session
	typed int
}

// asked types an answer once a question is the last that came.
func (p *dialog) asked(question, answer string) {
	p.tb.Helper()
	p.await(question + `[^\n]*: $`)
	p.types(answer)
}

func (p *dialog) types(text string) {
	p.tb.Helper()
	if _, err := p.keys.WriteString(text + "\r"); err != nil {
		p.tb.Fatal(err)
	}
	p.typed += len(text) + 1
}

func (w *world) dialog(columns uint16, args ...string) *dialog {
	w.tb.Helper()
	s, _ := w.beginIn(false, pty.Winsize{Rows: 24, Cols: columns}, w.command(args...))
	return &dialog{session: s}
}

func noSecrets(t *testing.T, shown string) {
	t.Helper()
	if strings.Contains(shown, "s3cret") {
		t.Errorf("a secret shows:\n%s", shown)
	}
}

// From nothing to the first tracking: every wrong answer is named and asked for
// again, no secret shows, and it takes less than a minute to type.
func TestInitOnATerminal(t *testing.T) {
	t.Parallel()
	w := atDesk(t)
	p := w.dialog(80, "init")
	p.asked("Base URL of the service", "shop")
	p.await(`warning: base_url: not a URL with https://`)
	p.asked("Base URL of the service", "http://shop.example")
	p.await(`warning: base_url: http would send the API key unencrypted`)
	p.asked("Base URL of the service", w.url)
	p.asked("API key", "")
	p.await(`warning: it can't be empty`)
	p.asked("API key", " "+rightKey)
	p.await(`warning: .*has space at its start or end`)
	p.asked("API key", wrongKey)
	p.await(`warning: the key was refused: the service answered 401`)
	p.asked("API key", rightKey)
	p.asked("Webhook secret", webhookSecret)
	code, shown := p.end()
	if code != 0 || !strings.Contains(shown, "not refused") || !strings.Contains(shown, "next: waybill create orders.csv") {
		t.Fatalf("init: %d\n%s", code, shown)
	}
	noSecrets(t, shown)
	path := filepath.Join(w.home, ".config", "waybill", "config.yaml")
	data, err := os.ReadFile(path)
	if want := fmt.Sprintf("base_url: %s\nwebhook:\n  secret: %s\napi_key: %s\n", w.url, webhookSecret, rightKey); string(data) != want || err != nil {
		t.Errorf("the file is\n%s, %v\nwant\n%s", data, err, want)
	}

	doctor := w.dialog(80, "doctor")
	code, shown = doctor.end()
	if code != 0 || !strings.Contains(shown, "ok           access") || strings.Contains(shown, "problem") {
		t.Errorf("doctor: %d\n%s", code, shown)
	}
	noSecrets(t, shown)

	create := w.dialog(80, "create", "--refer-id", "ORD-1", "--tracking-number", "1Z999AA10123456784")
	code, shown = create.end()
	if code != 0 || !strings.Contains(shown, "1 accepted") {
		t.Errorf("create: %d\n%s", code, shown)
	}
	const perMinute = 200 // characters: a person who types slowly
	typed := p.typed + len("waybill init\rwaybill doctor\r") + len("waybill create --refer-id ORD-1 --tracking-number 1Z999AA10123456784\r")
	if typed > perMinute+len(w.url+wrongKey+rightKey+rightKey+webhookSecret) { // those are pasted
		t.Errorf("%d characters were typed", typed)
	}
}

// A file that exists is shown with what would change, and is asked about.
func TestInitAsksBeforeItOverwrites(t *testing.T) {
	t.Parallel()
	w := atDesk(t)
	path := filepath.Join(w.home, ".config", "waybill", "config.yaml")
	before := "# mine\nbase_url: https://old.example # until May\napi_key: s3cret-old\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(before), 0o600)); err != nil {
		t.Fatal(err)
	}
	answers := func(confirm string) (int, string) {
		p := w.dialog(80, "init")
		p.asked(`Base URL of the service \[https://old.example\]`, w.url)
		p.asked("API key .not shown.", rightKey)
		p.asked("Webhook secret", "")
		p.await(`base_url: https://old.example -> ` + w.url)
		p.await(`api_key: \*\*\* -> \*\*\* .new.`)
		p.await(`Write these changes\? \[y/N\] $`)
		p.types(confirm)
		return p.end()
	}
	code, shown := answers("")
	if data, _ := os.ReadFile(path); code != 2 || string(data) != before || !strings.Contains(shown, "hint: --profile NAME adds a profile") {
		t.Errorf("no: %d, the file is\n%s\n%s", code, data, shown)
	}
	noSecrets(t, shown)
	code, shown = answers("y")
	if data, _ := os.ReadFile(path); code != 0 || string(data) != "# mine\nbase_url: "+w.url+" # until May\napi_key: "+rightKey+"\n" {
		t.Errorf("yes: %d, the file is\n%s\n%s", code, data, shown)
	}
	noSecrets(t, shown)

	p := w.dialog(80, "init") // Enter keeps what there is
	p.asked("Base URL", "")
	p.asked("Enter keeps api_key of .*config.yaml", "")
	p.asked("Webhook secret", "")
	if code, shown := p.end(); code != 0 || !strings.Contains(shown, "(unchanged)") {
		t.Errorf("kept: %d\n%s", code, shown)
	}
}

// Ctrl-C and the end of input at any question write nothing, and leave the terminal
// as it was: its modes are checked at the end of the test.
func TestInitInterrupted(t *testing.T) {
	t.Parallel()
	w := atDesk(t)
	for _, question := range []string{"Base URL", "API key", "Webhook secret"} {
		for _, how := range []string{"Ctrl-C", "Ctrl-D"} {
			p := w.dialog(80, "init")
			for _, a := range [][2]string{{"Base URL", w.url}, {"API key", rightKey}, {"Webhook secret", ""}} {
				if a[0] == question {
					break
				}
				p.asked(a[0], a[1])
			}
			p.await(question + `[^\n]*: $`)
			want := 130
			if how == "Ctrl-C" {
				if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			} else {
				want = 2
				if _, err := p.keys.WriteString("\x04"); err != nil {
					t.Fatal(err)
				}
			}
			code, shown := p.end()
			if code != want || !strings.Contains(shown, "\nwaybill: ") {
				t.Errorf("%s at %s: %d; want %d\n%s", how, question, code, want, shown)
			}
			noSecrets(t, shown)
			if _, err := os.Stat(filepath.Join(w.home, ".config")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s at %s wrote something: %v", how, question, err)
			}
		}
	}
}

// Where the service can't be reached, init asks; nothing is written without a yes.
func TestInitUnreachable(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.env = []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "TZ=UTC", "TERM=dumb"}
	path := filepath.Join(w.home, ".config", "waybill", "config.yaml")
	for answer, want := range map[string]int{"": 11, "y": 0} {
		p := w.dialog(24, "init", "--base-url", "http://127.0.0.1:1") // a narrow terminal
		p.asked("API key", rightKey)
		p.await(`warning: the key could not be checked: cannot connect`)
		p.await(`It is not known whether the key is right\. Continue\? \[y/N\] $`)
		p.types(answer)
		if want == 0 {
			p.asked("Webhook secret", "")
		}
		code, shown := p.end()
		if _, err := os.Stat(path); code != want || (err == nil) != (want == 0) {
			t.Errorf("answer %q: %d, %v; want %d\n%s", answer, code, err, want, shown)
		}
		noSecrets(t, shown)
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
	}
}

// A secret of the configuration is typed without echo too, and so is a key alone.
func TestSecretsAtPrompts(t *testing.T) {
	t.Parallel()
	w := atDesk(t)
	p := w.dialog(80, "config", "set", "webhook.secret")
	p.asked("webhook.secret", webhookSecret)
	code, shown := p.end()
	if code != 0 {
		t.Errorf("config set: %d\n%s", code, shown)
	}
	noSecrets(t, shown)
	p = w.dialog(80, "auth", "login", "--base-url", w.url)
	p.asked("API key", rightKey)
	code, shown = p.end()
	if code != 0 || !strings.Contains(shown, "Stored the API key in ") {
		t.Errorf("auth login: %d\n%s", code, shown)
	}
	noSecrets(t, shown)
}
