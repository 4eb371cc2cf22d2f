package main_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Deliveries come in while their target is down, then answers half of them
// with 500 and breaks off, and the listener is killed all along: every verified
// delivery arrives, byte for byte, and those that share a tracking number in
// the order in which they were received.
func TestTortureForward(t *testing.T) {
	t.Parallel()
	w := newHome(t)
	w.env = append(w.env, "WAYBILL_WEBHOOK_SECRET="+hookSecret, "WAYBILL_WEBHOOK_SCHEME=hmac-body-hex", "WAYBILL_WEBHOOK_VERIFY=observe")
	random := dice(t)
	target := newFlaky(t)
	l := &relay{w: w, args: []string{"listen", "--addr", "127.0.0.1:0", "-o", "jsonl", "--forward-to", target.url + "/in?k=v"}}
	l.start(t)

	numbers, each := either(8, 20), either(12, 500)
	down, half, kills := either(time.Second, time.Minute), either(time.Second, 30*time.Second), either(3, 20)
	ctx, cancel := context.WithTimeout(t.Context(), allowed())
	defer cancel()
	var sending sync.WaitGroup
	errs := make([]error, numbers)
	for n := range numbers {
		sending.Go(func() {
			errs[n] = sendHooks(ctx, func() string { return *l.url.Load() }, n, each, (down+half)/time.Duration(each))
		})
	}
	begin := time.Now()
	await := func(d time.Duration) { // until that much of the bad time is over
		select {
		case <-time.After(time.Until(begin.Add(d))):
		case <-ctx.Done():
		}
	}
	opened := false
	for i := range kills {
		at := time.Duration((float64(i) + random.Float64()) / float64(kills) * float64(down+half))
		if !opened && at > down {
			await(down)
			target.open(t)
			opened = true
		}
		await(at)
		l.kill(t)
		l.start(t)
	}
	if !opened {
		await(down)
		target.open(t)
	}
	await(down + half)
	target.wait(ctx, t, 5) // it has been met while it fails
	target.well.Store(true)
	sending.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	target.wait(ctx, t, numbers*each)
	l.stop(t)
	target.mu.Lock()
	defer target.mu.Unlock()
	for n := range numbers {
		for i := range each {
			if body := hookBody(n, i); target.taken[target.bodies[body]] != body {
				t.Errorf("%q did not arrive as it was", body)
			}
		}
	}
	if len(target.taken) != numbers*each || len(target.wrong) > 0 {
		t.Errorf("%d of %d arrived; wrong: %q", len(target.taken), numbers*each, target.wrong)
	}
	if target.repeats == 0 {
		t.Error("nothing arrived twice: the test proves too little")
	}
	t.Logf("%d deliveries, target down for %v and then failing for %v, %d kills: all arrived after %v in %d tries, %d of them repeats of what had been taken",
		numbers*each, down, half, kills, time.Since(begin).Round(time.Millisecond), target.tries, target.repeats)
}

const hookSecret = "of the hook"

// hookBody is the i-th delivery of sender n. Every fourth is about
// the number of its neighbour too. Re-encoding would change it.
func hookBody(n, i int) string {
	event := func(suffix string, number int) string {
		return fmt.Sprintf("{\"eventId\" : \"%d-%d%s\",\t\"event\":\"x\",\"data\":{\"trackingNumber\":\"N%d\",\"n\":1.0e0,\"bytes\":\"\\u00fc\"}}", n, i, suffix, number)
	}
	if i%4 == 0 {
		return fmt.Sprintf("[ %s , %s]\n", event("", n), event("b", n^1))
	}
	return fmt.Sprintf("[ %s]\n", event("", n))
}

// hookHeader is the header of a delivery: repeated names, and a signature.
func hookHeader(body, secret string) (http.Header, error) {
	p, _ := webhook.PresetByName("hmac-body-hex")
	signed, err := webhook.Sign(p.Scheme, webhook.Secret{Name: "test", Value: []byte(secret)}, webhook.Request{Method: http.MethodPost, Path: "/", Body: []byte(body)}, time.Now())
	if err != nil {
		return nil, err
	}
	h := http.Header{"X-Repeated": {"one", "two", "one"}, "Content-Type": {"application/json; charset=x"}, "User-Agent": {"sender/1"}, "X-Empty": {""}}
	for _, f := range signed.Header {
		h.Add(f.Name, f.Value)
	}
	return h, nil
}

// sendHooks sends the deliveries of one sender, each until it is answered with
// 2xx. Some of them once more, and some forged ones between.
func sendHooks(ctx context.Context, url func() string, n, count int, pause time.Duration) error {
	client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	for i := range count {
		for {
			status, err := sendSigned(ctx, client, url(), hookBody(n, i), hookSecret)
			if err == nil && status == http.StatusOK {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("delivery %d of %d was never taken: %d, %w", i, n, status, err)
			case <-time.After(5 * time.Millisecond):
			}
		}
		if i%7 == 0 { // no matter what comes of these
			_, _ = sendSigned(ctx, client, url(), hookBody(n, i), hookSecret)
			_, _ = sendSigned(ctx, client, url(), hookBody(n, count+i), "forged")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

func sendSigned(ctx context.Context, client *http.Client, url, body, secret string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if req.Header, err = hookHeader(body, secret); err != nil {
		return 0, err
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// relay is a listener in a process of its own, killed and begun again.
type relay struct {
	w    *world
	args []string
	url  atomic.Pointer[string]
	cmd  *exec.Cmd
}

func (l *relay) start(t *testing.T) {
	t.Helper()
	ready := filepath.Join(l.w.home, "listen.url")
	_ = os.Remove(ready)
	l.cmd = l.w.command(append(l.args, "--ready-file", ready)...)
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(ready); err == nil {
			url := strings.TrimSpace(string(b))
			l.url.Store(&url)
			return
		}
	}
	_ = l.cmd.Process.Kill()
	_, _ = ended(l.cmd, patience)
	t.Fatalf("the listener was not ready in time: %s", l.cmd.Stderr)
}

func (l *relay) kill(t *testing.T) {
	t.Helper()
	_ = l.cmd.Process.Kill()
	if code, err := ended(l.cmd, patience); code != -1 {
		t.Fatalf("the listener had ended by itself with %d: %v: %s", code, err, l.cmd.Stderr)
	}
}

func (l *relay) stop(t *testing.T) {
	t.Helper()
	_ = l.cmd.Process.Signal(os.Interrupt)
	if code, err := ended(l.cmd, patience); code != 0 || err != nil {
		t.Errorf("the listener ended with %d: %v: %s", code, err, l.cmd.Stderr)
	}
}

// flaky is a target that is down, then fails every other time, then is well.
type flaky struct {
	url  string
	well atomic.Bool

	mu             sync.Mutex
	last           map[string]int // by tracking number: the delivery that arrived last
	taken          map[int]string // by delivery: the body that was answered with 2xx
	attempts       map[int]int    // by delivery: of its last try
	bodies         map[string]int // the delivery with that body
	tries, repeats int
	wrong          []string
}

func newFlaky(t *testing.T) *flaky {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // nobody is there yet, but the address is known
	return &flaky{
		url:  "http://" + l.Addr().String(),
		last: map[string]int{}, taken: map[int]string{}, attempts: map[int]int{}, bodies: map[string]int{},
	}
}

// open lets the target come up.
func (f *flaky) open(t *testing.T) {
	t.Helper()
	listenAt(t, strings.TrimPrefix(f.url, "http://"), f)
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // cut: it comes again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	seq := f.check(r, string(body))
	if !f.well.Load() && f.tries%2 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, again := f.taken[seq]
	if again {
		f.repeats++
	}
	f.taken[seq] = string(body)
	if !f.well.Load() && !again && len(f.taken)%3 == 1 {
		panic(http.ErrAbortHandler) // taken, and nobody will know
	}
}

// check notes what is wrong with a request and returns the delivery's number.
func (f *flaky) check(r *http.Request, body string) int {
	amiss := func(format string, args ...any) {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...)+fmt.Sprintf(": %s %s %v %q", r.Method, r.RequestURI, r.Header, body))
	}
	seq, err := strconv.Atoi(strings.Join(r.Header["Waybill-Delivery-Seq"], "+"))
	if err != nil {
		amiss("no number of the delivery")
	}
	attempt, err := strconv.Atoi(strings.Join(r.Header["Waybill-Attempt"], "+"))
	if err != nil || attempt < max(f.attempts[seq], 1) {
		amiss("attempt %d after %d", attempt, f.attempts[seq])
	}
	f.attempts[seq] = attempt
	if first, known := f.bodies[body]; known && first != seq {
		amiss("delivery %d again as %d", first, seq)
	}
	f.bodies[body] = seq
	want, err := hookHeader(body, hookSecret)
	for name := range want {
		if err != nil || !slices.Equal(r.Header[name], want[name]) {
			amiss("header %s is %q (%v)", name, r.Header[name], err)
		}
	}
	if r.RequestURI != "/in?k=v" || r.Method != http.MethodPost {
		amiss("another request line")
	}
	for _, part := range strings.Split(body, `"trackingNumber":"`)[1:] {
		number, _, _ := strings.Cut(part, `"`)
		before := f.last[number]
		if _, taken := f.taken[before]; before > seq || before > 0 && before < seq && !taken {
			amiss("%s: delivery %d came after %d, taken: %v", number, seq, before, taken)
		}
		f.last[number] = seq
	}
	return seq
}

// wait waits until so many deliveries were taken.
func (f *flaky) wait(ctx context.Context, t *testing.T, count int) {
	t.Helper()
	for whole := false; !whole; {
		f.mu.Lock()
		whole = len(f.taken) >= count
		arrived, wrong := len(f.taken), f.wrong
		f.mu.Unlock()
		if len(wrong) > 0 {
			t.Fatalf("%d are wrong: %s", len(wrong), wrong[0])
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d arrived", arrived, count)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
