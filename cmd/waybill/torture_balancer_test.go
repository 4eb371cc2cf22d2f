//go:build unix

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// HAProxy, as docs/deploy sets it up, spreads deliveries over three listeners. A
// restart of all listeners one by one, and the death of one, cost no sender an
// answer. Whatever dies, each delivery that got a 200 is in the store once, and
// reaches the target with the header that its sender wrote.
func TestTortureBalancer(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	target := newFlaky(t)
	target.well.Store(true)
	target.open(t)
	all := relays(t, 3, server.NewURL(t), target.url+"/in?k=v")
	for _, l := range all {
		l.args[2] = strings.TrimPrefix(*l.url.Load(), "http://") // it keeps its address
	}
	ctx, cancel := context.WithTimeout(t.Context(), allowed())
	defer cancel()
	h, ok := startBalancer(ctx, t, all)
	if !ok {
		return
	}
	s := startSenders(ctx, h.url, 6)
	restartAll := func() {
		for _, l := range all {
			l.stop(t)
			l.start(t)
		}
	}
	back := func(listeners ...int) func() {
		return func() {
			for _, i := range listeners {
				all[i].start(t)
			}
			for _, i := range listeners {
				h.awaitUp(ctx, t, i)
			}
		}
	}
	for _, phase := range []struct {
		name   string
		do     func()
		unseen bool // senders get no other answer than 200
		long   bool
	}{
		{"nothing happens", func() {}, true, false},
		{"restart one by one", restartAll, true, false},
		{"one is killed", func() { all[0].kill(t) }, true, false},
		{"it is back", back(0), true, false},
		{"two are killed", func() { all[1].kill(t); all[2].kill(t) }, false, false},
		{"they are back", back(1, 2), true, false},
		{"the server restarts", func() {
			if err := server.Restart(ctx, "immediate"); err != nil {
				t.Fatal(err)
			}
		}, false, false},
		{"one hangs", func() { _ = all[0].cmd.Process.Signal(syscall.SIGSTOP) }, true, true},
		{"it continues", func() { _ = all[0].cmd.Process.Signal(syscall.SIGCONT) }, true, true},
	} {
		if phase.long && !full() {
			continue
		}
		began := time.Now()
		phase.do()
		s.await(ctx, t, either(100, 1000))
		counts := s.take()
		t.Logf("%s: answers %v in %v", phase.name, counts, time.Since(began).Round(time.Millisecond))
		delete(counts, http.StatusOK)
		if phase.unseen && len(counts) > 0 {
			t.Errorf("%s: senders got %v", phase.name, counts)
		}
	}
	sent := s.stop(t)
	total := 0
	for _, n := range sent {
		total += n
	}
	target.wait(ctx, t, total)
	standing := all[0].w.standing()
	for n, count := range sent {
		for i := range count {
			if id := fmt.Sprintf("%d-%d", n, i); standing[id] != 1 {
				t.Errorf("event %s was answered with 200 and stands %d times", id, standing[id])
			}
		}
	}
	for _, l := range all {
		l.stop(t)
	}
	if len(target.wrong) > 0 {
		t.Errorf("%d are wrong at the target: %s", len(target.wrong), target.wrong[0])
	}
}

// haproxy is a HAProxy with the configuration of docs/deploy, but for addresses.
type haproxy struct {
	url string
	log lockedBuffer
}

// startBalancer starts HAProxy in front of listeners. The end of the test ends it.
// It returns false, with a line about it, where HAProxy is missing. The continuous
// integration sets HAPROXY=required, which makes that an error.
func startBalancer(ctx context.Context, t *testing.T, listeners []*relay) (*haproxy, bool) {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy" // which is not in every PATH
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv("HAPROXY") == "required" {
			t.Fatal(err)
		}
		t.Log("NOT TESTED: HAProxy is missing, so nothing has balanced listeners")
		return nil, false
	}
	address := freeAddress(ctx, t)
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(balancerConfig(t, address, listeners)), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(ctx, program, "-c", "-f", file).CombinedOutput(); err != nil || bytes.Contains(said, []byte("WARNING")) {
		t.Fatalf("haproxy -c: %v: %s", err, said)
	}
	h := &haproxy{url: "http://" + address}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &h.log, io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Logf("HAProxy: %s", h.log.String())
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for ctx.Err() == nil {
		if status, err := sendSigned(ctx, client, h.url, "[]", "forged"); err == nil && status != http.StatusServiceUnavailable {
			return h, true
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("HAProxy was not ready in time")
	return nil, false
}

// balancerConfig is docs/deploy/haproxy.cfg with other addresses.
func balancerConfig(t *testing.T, address string, listeners []*relay) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/deploy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	replace := func(from, to string) {
		if strings.Count(config, from) != 1 {
			t.Fatalf("haproxy.cfg does not have %q once", from)
		}
		config = strings.Replace(config, from, to, 1)
	}
	replace("bind :8080\n", "bind "+address+"\n")
	for i, l := range listeners {
		replace(fmt.Sprintf(" listen%d:8377", i+1), " "+strings.TrimPrefix(*l.url.Load(), "http://"))
	}
	return config
}

// freeAddress returns an address of this computer that was free just now.
func freeAddress(ctx context.Context, t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// awaitUp waits until HAProxy gives deliveries to that listener again, if it had
// stopped to. Listeners are counted from 0.
func (h *haproxy) awaitUp(ctx context.Context, t *testing.T, listener int) {
	t.Helper()
	change := fmt.Sprintf("Server listeners/listen%d is ", listener+1)
	for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		log := h.log.String()
		if at := strings.LastIndex(log, change); at < 0 || strings.HasPrefix(log[at+len(change):], "UP") {
			return
		}
	}
	t.Fatalf("HAProxy does not use listener %d again", listener+1)
}

// lockedBuffer is what a process wrote, read while it writes.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// senders send deliveries, each again until it gets a 200.
type senders struct {
	ending atomic.Bool
	ended  sync.WaitGroup
	sent   []int // by sender, once they ended
	errs   []error

	mu      sync.Mutex
	answers map[int]int // by status, since they were taken; 0: none came
}

func startSenders(ctx context.Context, url string, count int) *senders {
	s := &senders{sent: make([]int, count), errs: make([]error, count), answers: map[int]int{}}
	for n := range count {
		s.ended.Go(func() { s.sent[n], s.errs[n] = s.send(ctx, url, n) })
	}
	return s
}

// send sends deliveries of sender n until the senders end, and returns how many.
func (s *senders) send(ctx context.Context, url string, n int) (int, error) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	for i := 0; ; {
		status, err := sendSigned(ctx, client, url, hookBody(n, i), hookSecret)
		if ctx.Err() != nil {
			return i, fmt.Errorf("delivery %d of sender %d: %d, %w", i, n, status, errors.Join(ctx.Err(), err))
		}
		s.mu.Lock()
		s.answers[status]++
		s.mu.Unlock()
		if status == http.StatusOK {
			if i++; s.ending.Load() {
				return i, nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// await waits until so many more deliveries got a 200.
func (s *senders) await(ctx context.Context, t *testing.T, more int) {
	t.Helper()
	taken := func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answers[http.StatusOK]
	}
	for begin := taken(); taken() < begin+more; time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d more deliveries got a 200", taken()-begin, more)
		}
	}
}

// take returns the answers since it was last called.
func (s *senders) take() map[int]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := maps.Clone(s.answers)
	clear(s.answers)
	return counts
}

// stop ends the senders and returns how many deliveries each sent.
func (s *senders) stop(t *testing.T) []int {
	t.Helper()
	s.ending.Store(true)
	s.ended.Wait()
	if err := errors.Join(s.errs...); err != nil {
		t.Fatal(err)
	}
	return s.sent
}
