//go:build browser

package main_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cdptarget "github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// rowsJS is what tests ask the list of deliveries.
const rowsJS = `(globalThis.rows = {
	grid: () => document.querySelector(".grid"),
	nodes: () => [...document.querySelectorAll(".rows > .row")],
	numbers: () => rows.nodes().filter(n => !n.classList.contains("missing")).map(n => Number(n.id.slice(4))),
	frame: () => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0))),
	seen: {},
	// watch notes when each row came into the page.
	watch() {
		const look = () => { for (const n of rows.numbers()) rows.seen[n] ??= performance.timeOrigin + performance.now(); };
		new MutationObserver(look).observe(document.querySelector(".rows"), {childList: true});
		look();
	},
	// loaded waits until all rows that are in the page are filled.
	async loaded() {
		for (let end = Date.now() + 60000; Date.now() < end; await rows.frame())
			if (rows.nodes().length && rows.numbers().length === rows.nodes().length) return true;
		return false;
	},
	// scroll goes through the list from end to end in so many steps, and returns
	// the numbers that it met in their order and the most rows that were in the page.
	async scroll(steps) {
		const grid = rows.grid(), met = [];
		let most = 0;
		grid.scrollTop = 0;
		for (let step = 0; ; step++) {
			await rows.frame();
			if (!await rows.loaded()) throw new Error("rows are not loaded at " + grid.scrollTop + ": " + rows.nodes().filter(n => n.classList.contains("missing")).map(n => n.innerText.replaceAll("\n", " ")).join("; "));
			most = Math.max(most, rows.nodes().length);
			met.push(...rows.numbers());
			const left = grid.scrollHeight - grid.clientHeight - grid.scrollTop;
			if (left < 1) break;
			grid.scrollTop += steps ? Math.max(1, (grid.scrollHeight - grid.clientHeight) / steps) : grid.clientHeight / 2;
		}
		return {most, numbers: [...new Set(met)]};
	},
}, true)`

// list opens the list of deliveries and waits until it is live.
func (i *inspector) list(tb *tab, hash string) {
	tb.t.Helper()
	i.show(tb, hash)
	tb.wait(`document.querySelector(".grid") && document.getElementById("connection").dataset.state == "live"`)
	eval[bool](tb, rowsJS)
}

func (tb *tab) waitRows(numbers ...int) {
	tb.t.Helper()
	want := strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ","), "[]")
	tb.wait(`rows.numbers().sort((a, b) => b - a).join() == "` + want + `"`)
}

// testArrival measures how long a delivery takes from its answer to its row.
func testArrival(t *testing.T, b *browser) {
	i := newHome(t).inspects()
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	eval[any](tb, "rows.watch()")
	const deliveries = 20
	var took []time.Duration
	for n := range deliveries {
		i.post("[" + event(1, n) + "]")
		answered := time.Now()
		tb.wait(fmt.Sprintf("rows.seen[%d]", n+1))
		ms := eval[float64](tb, fmt.Sprintf("rows.seen[%d]", n+1))
		took = append(took, time.UnixMicro(int64(ms*1000)).Sub(answered))
	}
	slices.Sort(took)
	t.Logf("from the answer to the row: median %d ms, longest %d ms", took[deliveries/2].Milliseconds(), took[deliveries-1].Milliseconds())
	row := eval[string](tb, `document.querySelector("#row-1").innerText`)
	for _, want := range []string{"router.delivered", "DELIVERED", "yes"} {
		if !strings.Contains(row, want) {
			t.Errorf("the row lacks %q: %q", want, row)
		}
	}
	if foreign := tb.foreign(i.origin); len(foreign) > 0 {
		t.Errorf("requests to elsewhere: %q", foreign)
	}
	tb.axe("deliveries")
	tb.media("prefers-color-scheme", "dark")
	tb.axe("deliveries, dark")
}

// cutter is a proxy between the browser and the page whose connections can be cut.
type cutter struct {
	net.Listener

	mu    sync.Mutex
	conns map[*cutConn]bool
	down  bool
}

// cutConn is a connection from the browser. It ends after so many more bytes to
// the browser, if that is not negative.
type cutConn struct {
	net.Conn

	of   *cutter
	left int
}

func (c *cutter) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		down, cc := c.down, &cutConn{conn, c, -1}
		if !down {
			c.conns[cc] = true
		}
		c.mu.Unlock()
		if !down {
			return cc, nil
		}
		_ = conn.Close()
	}
}

func (c *cutConn) Write(p []byte) (int, error) {
	c.of.mu.Lock()
	n := len(p)
	if c.left >= 0 {
		n = min(n, c.left)
		c.left -= n
	}
	end := c.left == 0
	c.of.mu.Unlock()
	n, err := c.Conn.Write(p[:n])
	if end {
		_ = c.Close()
		return n, io.ErrClosedPipe
	}
	return n, err
}

func (c *cutConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut lets each connection end after so many more bytes, 0 at once, and accepts
// none until it is called with down = false.
func (c *cutter) cut(after int, down bool) {
	c.mu.Lock()
	c.down = down
	var now []*cutConn
	for conn := range c.conns {
		conn.left = after
		if after == 0 {
			now = append(now, conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range now {
		_ = conn.Close()
	}
}

// cuts starts a proxy.
func cuts(t *testing.T) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{Listener: l, conns: map[*cutConn]bool{}}
	srv := &http.Server{ReadHeaderTimeout: patience, Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", r.In.Host, r.In.Host
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = srv.Serve(c) }()
	t.Cleanup(func() { _ = srv.Close() })
	return c
}

// testResume cuts the connections of the page while deliveries arrive, some in
// the middle of a message, and looks for each delivery once.
func testResume(t *testing.T, b *browser) {
	for _, view := range []string{"#/deliveries", "#/deliveries?search=event%3Drouter.delivered"} {
		i := newHome(t).inspects()
		c := cuts(t)
		tb := b.open(t, chromedp.WithNewBrowserContext(func(p *cdptarget.CreateBrowserContextParams) {
			p.ProxyServer, p.ProxyBypassList = "http://"+c.Addr().String(), "<-loopback>"
		}))
		i.list(tb, view)
		random := rand.New(rand.NewPCG(1, 2))
		const deliveries, each = 160, 20
		for n := range deliveries {
			i.post("[" + event(1, n) + "]")
			if n%each == each/2 {
				c.cut(random.IntN(1500), true) // what runs ends somewhere in a message
			}
			if n%each == each-2 {
				c.cut(0, false)
				tb.wait(`document.getElementById("connection").dataset.state == "live"`)
			}
		}
		c.cut(0, false)
		waitUntil(t, view+" counts them all", func() bool {
			status := eval[string](tb, `document.querySelector(".status-line").textContent`)
			return strings.HasPrefix(status, fmt.Sprint(deliveries, " "))
		})
		got := eval[struct{ Numbers []int }](tb, "rows.scroll()").Numbers
		slices.Sort(got)
		for n := range deliveries {
			if n >= len(got) || got[n] != n+1 {
				t.Fatalf("%s: the list has %d rows: %v", view, len(got), got)
			}
		}
	}
}

// testList filters, searches, pauses, and goes back to the newest.
func testList(t *testing.T, b *browser) {
	i := newHome(t).inspects()
	for n := range 4 {
		i.post("[" + strings.ReplaceAll(event(1, n), "router.delivered", []string{"router.delivered", "router.transit"}[n%2]) + "]")
	}
	if status := i.postAs("/hook", "["+event(2, 1)+"]", strings.Repeat("0", 64)); status != http.StatusUnauthorized && status != http.StatusOK {
		t.Fatalf("a delivery with a wrong signature was answered %d", status)
	}
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.wait("rows.numbers().includes(4)")

	tb.press("/")
	tb.wait(`document.activeElement.name == "search"`)
	tb.fill("[name=search]", "event=router.transit")
	tb.waitRows(4, 2)
	tb.fill("[name=search]", "number=940010000000000000002*")
	tb.wait("rows.numbers().join() == '3'")
	tb.fill("[name=search]", "event=a,colour=red")
	tb.wait(`document.querySelector("#search-problem").textContent.includes("colour")`)
	tb.axe("a filter that is wrong")
	tb.fill("[name=search]", "9400100000000000000017")
	tb.wait("rows.numbers().join() == '2'")
	tb.fill("[name=search]", "no such text")
	tb.wait(`document.querySelector(".list-message").innerText.includes("No delivery matches")`)
	tb.fill("[name=search]", "")
	tb.wait("rows.numbers().includes(4)")

	tb.click("button.pause")
	newest := eval[int](tb, "Math.max(...rows.numbers())")
	i.post("[" + event(1, 50) + "]")
	tb.wait(`document.querySelector("button.pause").textContent.includes("1 new")`)
	if eval[bool](tb, fmt.Sprintf("rows.numbers().includes(%d)", newest+1)) {
		t.Error("a row appeared while the list was paused")
	}
	tb.click("button.pause")
	tb.wait(fmt.Sprintf("rows.numbers().includes(%d)", newest+1))

	for n := range 60 {
		i.post("[" + event(3, n) + "]")
	}
	tb.wait(fmt.Sprintf("rows.numbers().includes(%d)", newest+61))
	eval[any](tb, "(rows.grid().scrollTop = 900, null)")
	tb.wait(`!document.querySelector("button.newest").disabled`)
	first := eval[int](tb, "Math.max(...rows.numbers())")
	i.post("[" + event(3, 100) + "]")
	tb.wait(`document.querySelector("button.newest").textContent.includes("1 new")`)
	if got := eval[int](tb, "Math.max(...rows.numbers())"); got != first {
		t.Errorf("the list moved while it was read: its first row was %d, and is %d", first, got)
	}
	tb.click("button.newest")
	tb.wait(fmt.Sprintf("rows.numbers().includes(%d) && rows.grid().scrollTop == 0", newest+62))
}

// testKeyboard does with keys alone what the list is for.
func testKeyboard(t *testing.T, b *browser) {
	i := newHome(t).inspects()
	for n := range 30 {
		i.post("[" + event(1, n) + "]")
	}
	tb := b.open(t)
	i.list(tb, "#/deliveries")
	tb.wait("rows.numbers().includes(30)")
	tb.press("j", "j", "j")
	tb.wait(`document.querySelector(".row.active")?.id == "row-28" || document.querySelector(".row.active")?.id == "row-27"`)
	at := eval[int](tb, `Number(document.querySelector(".row.active").id.slice(4))`)
	tb.press("k")
	tb.wait(fmt.Sprintf(`document.querySelector(".row.active").id == "row-%d"`, at+1))
	tb.press(kb.Enter)
	tb.wait(fmt.Sprintf(`!document.querySelector(".pane").hidden && document.querySelector(".pane").getAttribute("aria-label") == "Delivery %d"`, at+1))
	tb.press("j")
	tb.wait(fmt.Sprintf(`document.querySelector(".pane").getAttribute("aria-label") == "Delivery %d"`, at))
	tb.press(kb.Escape)
	tb.wait(`document.querySelector(".pane").hidden`)
	tb.press("?")
	tb.wait(`document.querySelector("dialog[open]")`)
	tb.axe("the help")
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog[open]")`)
	// Every control can be reached by Tab, and shows that it has the focus.
	names := map[string]bool{}
	for range 40 {
		tb.press(kb.Tab)
		at := eval[struct {
			Name    string
			Visible bool
		}](tb, `(() => {
			const n = document.activeElement, shows = document.getElementById(n.getAttribute("aria-activedescendant")) ?? n, s = getComputedStyle(shows), b = shows.getBoundingClientRect();
			return {name: n === document.body ? "" : n.getAttribute("aria-label") || n.textContent,
				visible: (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none") && b.width > 0};
		})()`)
		if at.Name == "" {
			continue // behind the last
		}
		names[at.Name] = true
		if !at.Visible {
			t.Errorf("%q has the focus and does not show it", at.Name)
		}
	}
	for _, want := range []string{"Search, or filter by KEY=VALUE", "Pause", "Deliveries, newest first"} {
		if !names[want] {
			t.Errorf("%q is not reached by Tab; reached: %v", want, names)
		}
	}
}
