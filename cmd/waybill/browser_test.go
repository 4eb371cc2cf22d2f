//go:build browser

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestBrowser runs the tests of the inspector's page and of the report in one
// Chromium, each in a tab with cookies of its own: first the tests that need the machine
// alone, one after another, then the others side by side. `make test-browser` runs it.
func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	if b == nil {
		return // Chromium is missing, and the log says so
	}
	for _, test := range browserTests {
		t.Run(test.name, func(t *testing.T) {
			if !test.alone {
				t.Parallel()
			}
			began := time.Now()
			test.run(t, b)
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// browserTests are the tests of TestBrowser. The longest stand first.
var browserTests = []struct {
	name  string
	run   func(*testing.T, *browser)
	alone bool // it measures times, or cuts connections at certain moments
}{
	{name: "arrival", run: testArrival, alone: true},
	{name: "load", run: testLoad, alone: true},
	{name: "resume", run: testResume, alone: true},
	{name: "hostile", run: testHostile},
	{name: "report", run: testReport},
	{name: "many deliveries", run: testManyDeliveries},
	{name: "report for everybody", run: testReportForEverybody},
	{name: "many pages", run: testManyPages},
	{name: "looks", run: testLooks},
	{name: "foreign", run: testForeign},
	{name: "tracking", run: testTracking},
	{name: "delivery", run: testDelivery},
	{name: "list", run: testList},
	{name: "keyboard", run: testKeyboard},
	{name: "changes", run: testChanges},
	{name: "keeps place", run: testKeepsPlace},
	{name: "send moved", run: testSendMoved},
	{name: "address", run: testAddress},
	{name: "copy", run: testCopy},
	{name: "harness", run: testHarness},
}

// tabPatience is how long a tab may take for all of its test, stepPatience how
// long it may take for what a test waits for. Both end what hangs: a busy machine
// must not exceed them.
const (
	tabPatience  = 8 * time.Minute // a test has up to 500 steps
	stepPatience = time.Minute
)

// browser is a running Chromium.
type browser struct{ ctx context.Context }

// openBrowser starts Chromium, which ends with the test. It returns nil if the
// system has none and the environment does not say CHROMIUM=required.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := findChromium()
	if err != nil {
		if os.Getenv("CHROMIUM") == "required" {
			t.Fatal(err)
		}
		t.Logf("NOT TESTED: %v", err)
		return nil
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800),
		chromedp.Flag("lang", "en-US"), chromedp.Flag("host-resolver-rules", "MAP rebound.test 127.0.0.1"),
		chromedp.Flag("hide-scrollbars", true), chromedp.Env("TZ=UTC", "LANG=C.UTF-8"))
	allocator, endBrowser := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(endBrowser) // waits until the processes have ended
	ctx, end := chromedp.NewContext(allocator)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	return &browser{ctx}
}

// findChromium returns the path of Chromium, or of its relatives.
func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium is installed, so nothing has opened the page of the inspector")
}

// tab is one tab, and what happened in it.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	exceptions []string // that no script caught, and dialogs
	requests   []string // URLs
	reports    []string // of the content security policy
	trace      [][]byte // records of what watchTasks began
	traceEnded chan struct{}
}

// watchPolicy reports what the content security policy blocks to the tab, and
// what axe or a test does in its own name not.
const watchPolicy = `addEventListener("securitypolicyviolation", e =>
	waybillPolicy(e.effectiveDirective + " blocks " + (e.blockedURI || e.sample) + " at " + e.sourceFile + ":" + e.lineNumber), true);`

// open opens a tab with cookies of its own. It fails the test at its end if a
// script failed in it, or the policy blocked something.
func (b *browser) open(t *testing.T, options ...chromedp.ContextOption) *tab {
	t.Helper()
	tb := b.openUnchecked(t, options...)
	t.Cleanup(func() {
		tb.mu.Lock()
		defer tb.mu.Unlock()
		for _, text := range tb.exceptions {
			t.Errorf("in the page: %s", text)
		}
		for _, text := range tb.reports {
			t.Errorf("content security policy: %s", text)
		}
	})
	return tb
}

func (b *browser) openUnchecked(t *testing.T, options ...chromedp.ContextOption) *tab {
	t.Helper()
	limited, cancel := context.WithTimeout(b.ctx, tabPatience)
	t.Cleanup(cancel)
	tb := &tab{t: t}
	if len(options) == 0 {
		options = append(options, chromedp.WithNewBrowserContext())
	}
	ctx, end := chromedp.NewContext(limited, append(options, chromedp.WithListener(tb.observe))...)
	t.Cleanup(end)
	tb.ctx = ctx
	tb.do(
		bind("waybillPolicy"), bind("pwn"),
		chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
			_, err := cdp.Call(ctx, s, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy})
			return err
		}),
		chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
			_, err := cdp.Call(ctx, s, network.Enable, network.EnableParams{})
			return err
		}),
		chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
			// Only one window of a browser has the focus; each tab acts as if its window had it.
			_, err := cdp.Call(ctx, s, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
			return err
		}),
		chromedp.EmulateViewport(1280, 800),
	)
	return tb
}

// bind makes a function of the page that reports its calls.
func bind(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
		_, err := cdp.Call(ctx, s, runtime.AddBinding, runtime.AddBindingParams{Name: name})
		return err
	})
}

// observe notes an event. It runs in the loop that reads events.
func (tb *tab) observe(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil && x.Description != "" {
			text = x.Description
		}
		tb.exceptions = append(tb.exceptions, text)
	case *runtime.EventBindingCalled:
		switch e.Name {
		case "waybillPolicy":
			tb.reports = append(tb.reports, e.Payload)
		case "pwn":
			tb.exceptions = append(tb.exceptions, "a script from outside ran")
		}
	case *cdppage.EventJavascriptDialogOpening:
		tb.exceptions = append(tb.exceptions, "a dialog: "+e.Message)
	case *network.EventRequestWillBeSent:
		tb.requests = append(tb.requests, e.Request.URL)
	case *network.EventWebSocketCreated:
		tb.requests = append(tb.requests, e.URL)
	case *tracing.EventDataCollected:
		for _, record := range e.Value {
			tb.trace = append(tb.trace, record)
		}
	case *tracing.EventTracingComplete:
		close(tb.traceEnded)
	}
}

// do runs actions in the tab.
func (tb *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	if err := chromedp.Do(tb.ctx, actions...); err != nil {
		tb.t.Fatal(err)
	}
}

// visit opens a page and waits until its scripts have run.
func (tb *tab) visit(address string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(address))
}

// media sets what the reader prefers: prefers-color-scheme and dark, say.
func (tb *tab) media(feature, value string) {
	tb.t.Helper()
	if _, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	}); err != nil {
		tb.t.Fatal(err)
	}
}

// narrow makes the window as wide as a small telephone's.
func (tb *tab) narrow() {
	tb.t.Helper()
	tb.do(chromedp.EmulateViewport(360, 740))
}

// fits reports what is wider than the window, and not inside of what scrolls.
func (tb *tab) fits(what string) {
	tb.t.Helper()
	for _, wide := range eval[[]string](tb, `(() => {
		const wide = document.documentElement.clientWidth + 1, scrolls = n => n && (/auto|scroll|hidden|clip/.test(getComputedStyle(n).overflowX) || scrolls(n.parentElement));
		const out = document.scrollingElement.scrollWidth > wide ? ["the page: " + document.scrollingElement.scrollWidth] : [];
		for (const n of document.body.querySelectorAll("*"))
			if (n.getBoundingClientRect().right > wide && !scrolls(n.parentElement)) out.push(n.outerHTML.slice(0, 120));
		return out.slice(0, 5);
	})()`) {
		tb.t.Errorf("%s is too wide for %d px: %s", what, eval[int](tb, "innerWidth"), wide)
	}
}

// eval returns the value of a JavaScript expression, a promise's too.
func eval[T any](tb *tab, expression string) T {
	tb.t.Helper()
	v, err := tryEval[T](tb, expression)
	if err != nil {
		tb.t.Fatalf("%s: %v", short(expression), err)
	}
	return v
}

func tryEval[T any](tb *tab, expression string) (T, error) {
	var v T
	raw, err := chromedp.Run(tb.ctx, chromedp.Evaluate[[]byte](
		"(async () => JSON.stringify(await ("+expression+")) ?? 'null')()", chromedp.EvalAwaitPromise))
	if err != nil {
		return v, err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return v, fmt.Errorf("%s: %w", raw, err)
	}
	err = json.Unmarshal([]byte(text), &v)
	return v, err
}

// wait waits until a JavaScript expression is true. What it refers to may be
// missing until then, and the page may be left meanwhile.
func (tb *tab) wait(condition string) {
	tb.t.Helper()
	const poll = `new Promise(done => {
		const until = Date.now() + 1000;
		const check = () => {
			let met = false;
			try { met = !!(%s); } catch (e) { if (!(e instanceof TypeError)) throw e; }
			met || Date.now() > until ? done(met) : setTimeout(check, 10);
		};
		check();
	})`
	for end := time.Now().Add(stepPatience); ; {
		met, err := tryEval[bool](tb, fmt.Sprintf(poll, condition))
		if met {
			return
		}
		if thrown, ok := errors.AsType[*chromedp.ExceptionError](err); ok {
			tb.t.Fatalf("%s: %v", short(condition), thrown)
		}
		if time.Now().After(end) || tb.ctx.Err() != nil {
			tb.t.Fatalf("not within %v: %s (%v)\nthe page:\n%s", stepPatience, short(condition), err, tb.text())
		}
	}
}

// text is the visible text of the page, its first 600 characters.
func (tb *tab) text() string {
	text, err := tryEval[string](tb, "document.body.innerText.slice(0, 600)")
	if err != nil {
		return err.Error()
	}
	return text
}

// press types keys, such as "j" and kb.Enter, into what has the focus.
func (tb *tab) press(keys ...string) {
	tb.t.Helper()
	for _, key := range keys {
		tb.do(chromedp.KeyEvent(key))
	}
}

// click clicks the first element of a CSS selector where it is.
func (tb *tab) click(selector string) {
	tb.t.Helper()
	tb.wait("document.querySelector(" + quoteJS(selector) + ")")
	tb.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fill replaces what stands in a field by typing.
func (tb *tab) fill(selector, text string) {
	tb.t.Helper()
	tb.wait("document.querySelector(" + quoteJS(selector) + ")")
	tb.do(chromedp.Focus(chromedp.CSS(selector)),
		chromedp.Func(func(ctx context.Context, s *chromedp.Target) error {
			_, err := chromedp.Evaluate[bool]("(document.activeElement.select(), true)")(ctx, s)
			return err
		}))
	if text == "" {
		tb.press(kb.Backspace)
		return
	}
	tb.do(chromedp.KeyEvent(text))
}

// foreign returns the requests to anywhere but an origin.
func (tb *tab) foreign(origin string) []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var out []string
	for _, request := range tb.requests {
		if !strings.HasPrefix(request, origin+"/") && !strings.HasPrefix(request, "data:") && !strings.HasPrefix(request, "blob:"+origin) && request != "about:blank" {
			out = append(out, request)
		}
	}
	return out
}

// originOf is the origin of a URL.
func originOf(tb testing.TB, address string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// quoteJS is a string as JavaScript writes it.
func quoteJS(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// short is the beginning of a text.
func short(text string) string {
	if len(text) > 200 {
		return text[:200] + "…"
	}
	return text
}
