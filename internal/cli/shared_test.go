//go:build !windows

package cli_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/term"
)

// shownText is what a command has printed so far.
type shownText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shownText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shownText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// process is a command that runs, with a home of its own.
type process struct {
	*testing.T
	out, errs shownText
	stop      func() command.Code // ends it as SIGTERM does, and waits
	ended     chan struct{}
}

func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	home := t.TempDir()
	p := &process{T: t, ended: make(chan struct{})}
	a := &app.App{
		IO:     term.New(strings.NewReader(""), &p.out, &p.errs, term.Facts{}),
		Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: env, WorkDir: home, Home: home}
		},
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	var code command.Code
	go func() {
		defer close(p.ended)
		code = cli.Run(ctx, a, args)
	}()
	p.stop = func() command.Code {
		cancel(&command.SignalError{Signal: syscall.SIGTERM})
		<-p.ended
		return code
	}
	t.Cleanup(func() { p.stop() })
	return p
}

// await waits until ok.
func (p *process) await(what string, ok func() bool) {
	p.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > time.Minute {
			p.Fatalf("no %s in a minute: %s%s", what, p.out.String(), p.errs.String())
		}
		<-time.After(2 * time.Millisecond)
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// listener is a process that takes deliveries at a URL.
type listener struct {
	*process
	url string
}

func startListener(t *testing.T, env []string, args ...string) listener {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "url")
	l := listener{process: start(t, env, append([]string{"listen", "--addr", "127.0.0.1:0", "--ready-file", ready, "-o", "jsonl"}, args...)...)}
	l.await("listener", func() bool {
		text, err := os.ReadFile(ready)
		l.url = strings.TrimSpace(string(text))
		return err == nil && l.url != ""
	})
	return l
}

// answered is the answer of a listener.
type answered struct {
	status           int
	retryAfter, text string
}

// deliver sends a signed event about a number.
func (l listener) deliver(id int, number string) answered {
	l.Helper()
	body := fmt.Sprintf(`[{"eventId":"9f2d4c1e-8b3a-4f6d-9e7c-%012x","event":"router.delivered","data":{"trackingNumber":%q,"status":1,"statusTrack":"delivered"}}]`, id, number)
	mac := hmac.New(sha256.New, []byte("hush"))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(l.Context(), http.MethodPost, l.url, strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	return l.do(req)
}

// get asks whether it is ready.
func (l listener) get() answered {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), http.MethodGet, l.url, nil)
	if err != nil {
		l.Fatal(err)
	}
	return l.do(req)
}

func (l listener) do(req *http.Request) answered {
	l.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		l.Error(err)
	}
	return answered{res.StatusCode, res.Header.Get("Retry-After"), string(text)}
}

// sharedEnv is the environment of a computer that shares a store with others.
func sharedEnv(service, place string) []string {
	return []string{
		"WAYBILL_BASE_URL=" + service, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + place,
		"WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_WEBHOOK_SECRET=hush", "WAYBILL_WEBHOOK_VERIFY=enforce",
	}
}

// A delivery that one computer takes ends a wait on a second, which asks the service no
// second time, and is printed by a listener on a third.
func TestADeliveryReachesTheOtherComputers(t *testing.T) {
	t.Parallel()
	place, ok := pgtest.URL(t)
	if !ok {
		return
	}
	var asked atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte(`{"message":"Processing"}`))
	}))
	defer service.Close()
	env := sharedEnv(service.URL, place)
	takes, prints := startListener(t, env), startListener(t, env)
	least := int64(math.MaxInt64) // queries of a wait
	for i := range 5 {
		number := fmt.Sprintf("1Z999AA1012345678%d", i)
		before := asked.Load()
		wait := start(t, env, "wait", number, "--by", "tracking-number", "--for", "event=router.delivered", "--timeout", "2m")
		wait.await("question", func() bool { return asked.Load() > before })
		if res := takes.deliver(i, number); res.status != http.StatusOK {
			t.Fatalf("answered %+v", res)
		}
		wait.await("end", wait.hasEnded)
		least = min(least, asked.Load()-before)
		if code := wait.stop(); code != command.OK {
			t.Errorf("the wait ended with %d: %s%s", code, wait.out.String(), wait.errs.String())
		}
		prints.await("event", func() bool { return strings.Contains(prints.out.String(), number) })
	}
	if least != 1 {
		t.Errorf("each wait queried %d times or more, so none was ended by its event", least)
	}
	for l, counts := range map[listener]string{takes: `"received":5}`, prints: `"received":0}`} {
		if l.stop(); !strings.Contains(l.out.String(), `{"type":"summary","deliveries":5,"events":5,`) || !strings.Contains(l.out.String(), counts) {
			t.Errorf("no summary with %s in %s", counts, l.out.String())
		}
	}
}

// A listener whose server has lost commits can't store any more: it ends, and another one goes on.
func TestAListenerEndsOnceCommitsAreLost(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	url := server.NewURL(t)
	env := sharedEnv("http://127.0.0.1:9", url)
	for _, meets := range []func(listener){
		func(l listener) { l.deliver(2, "N1") },
		func(l listener) {
			l.await("503", func() bool { return l.get().status == http.StatusServiceUnavailable })
		},
	} {
		l := startListener(t, env)
		if res := l.deliver(1, "N1"); res.status != http.StatusOK {
			t.Fatalf("answered %+v", res)
		}
		if _, err := pgtest.Connect(t, url).Exec(t.Context(), "UPDATE counters SET value = 0 WHERE name = 'commits'"); err != nil {
			t.Fatal(err)
		}
		meets(l)
		l.await("end", l.hasEnded)
		if code := l.stop(); code != command.Store || !strings.Contains(l.errs.String(), "server lost commits") {
			t.Errorf("it ended with %d: %s", code, l.errs.String())
		}
	}
}

// While the server is away a listener answers 503, says so briefly, and goes on by
// itself; other commands end with 10.
func TestAListenerOutlivesTheServer(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	var forwarded atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { forwarded.Add(1) }))
	defer target.Close()
	env := sharedEnv("http://127.0.0.1:9", server.NewURL(t))
	l := startListener(t, env, "--forward-to", target.URL)
	if res := l.deliver(1, "N1"); res.status != http.StatusOK {
		t.Fatalf("answered %+v", res)
	}
	l.await("forwarding", func() bool { return forwarded.Load() == 1 })
	if err := server.Stop(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	l.await("sign that it is not ready", func() bool { return strings.HasPrefix(l.get().text, "not ready") })
	if res := l.get(); res.status != http.StatusServiceUnavailable {
		t.Errorf("while the server is away, a health check gets %+v", res)
	}
	if res := l.deliver(2, "N1"); res.status != http.StatusServiceUnavailable || res.retryAfter == "" {
		t.Errorf("while it is away: %+v", res)
	}
	for _, args := range [][]string{{"list"}, {"show", "A1"}, {"create", "--refer-id", "A1", "--tracking-number", "N1"}} {
		code, _, stderr := run(t, env, args...)
		if code != command.Store || strings.Count(stderr, "server is unreachable") != 1 || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%s: status %d, %s", args[0], code, stderr)
		}
	}
	for i := range 20 {
		l.deliver(2+i, "N1")
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.await("200", func() bool { return l.deliver(2, "N1").status == http.StatusOK })
	l.await("forwarding", func() bool { return forwarded.Load() == 2 })
	l.await("sign that it is ready", func() bool { return strings.HasPrefix(l.get().text, "ready") })
	if code := l.stop(); code != command.OK {
		t.Errorf("it ended with %d", code)
	}
	if said := l.errs.String(); strings.Count(said, "server is unreachable") != 1 || strings.Contains(said, "err:") {
		t.Errorf("it named the cause often: %s", said)
	}
	if said := l.errs.String(); strings.Count(said, "\n") > 6 || !strings.Contains(said, "deliveries are stored again") {
		t.Errorf("it said much: %s", said)
	}
}
