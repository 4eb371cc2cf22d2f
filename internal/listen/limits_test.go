package listen_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
)

// gone reports whether the other side has closed the connection.
func gone(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond)) // of fake time
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

func TestTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box, MaxConns: 3}))
		storing, stored := s.dial(post(delivered))
		defer storing.Close()
		synctest.Wait()
		open := func(raw string) net.Conn {
			c, remote := net.Pipe()
			s.pipes.conns <- remote
			t.Cleanup(func() { _ = c.Close() })
			if raw != "" {
				go func() { _, _ = io.WriteString(c, raw) }()
			}
			synctest.Wait()
			time.Sleep(time.Millisecond)
			return c
		}
		const slowly = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n["
		slow := open(slowly)
		idle := open("")
		idle2 := open("")
		if !gone(idle) || gone(slow) || gone(idle2) {
			t.Error("of an idle, a slow and a storing connection, the idle one was not the one that had to go")
		}
		slow2 := open(slowly)
		if !gone(idle2) || gone(slow) {
			t.Error("the second idle connection did not go before the slow one")
		}
		honest, answered := s.dial(post(delivered))
		defer honest.Close()
		synctest.Wait()
		if !gone(slow) || gone(slow2) {
			t.Error("of two slow connections the one that began first did not go")
		}
		close(release)
		for name, replies := range map[string]<-chan reply{"storing": stored, "honest": answered} {
			if got := <-replies; got.status != http.StatusOK {
				t.Errorf("%s connection: answer %+v; want 200", name, got)
			}
		}
		s.end()
	})
}

func TestAllConnectionsWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box, MaxConns: 2}))
		var all []<-chan reply
		for range 3 {
			c, replies := s.dial(post(delivered))
			t.Cleanup(func() { _ = c.Close() })
			all = append(all, replies)
			synctest.Wait()
		}
		if got := <-all[2]; got.err == nil {
			t.Errorf("third connection: answer %+v; want it closed", got)
		}
		close(release)
		for _, replies := range all[:2] {
			if got := <-replies; got.status != http.StatusOK {
				t.Errorf("answer %+v; want 200", got)
			}
		}
		synctest.Wait() // until the two are idle
		again, replies := s.dial(post(delivered))
		defer again.Close()
		if got := <-replies; got.status != http.StatusOK {
			t.Errorf("afterwards: answer %+v; want 200", got)
		}
		s.end()
	})
}

// When as many deliveries wait for the store as may, the next is told to come
// again, and is taken when they are stored.
func TestTooManyWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 8192
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		h := receiver(t, listen.Options{Store: box}).Handler()
		var all sync.WaitGroup
		for range most {
			all.Go(func() {
				if rec := send(t, h, delivered, ""); rec.Code != http.StatusOK {
					t.Errorf("answer %d; want 200", rec.Code)
				}
			})
		}
		synctest.Wait()
		if rec := send(t, h, delivered, ""); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
			t.Errorf("with %d waiting: answer %d; want 503 with Retry-After", most, rec.Code)
		}
		close(release)
		all.Wait()
		if rec := send(t, h, delivered, ""); rec.Code != http.StatusOK {
			t.Errorf("afterwards: answer %d; want 200", rec.Code)
		}
	})
}

// Large bodies beyond what may be held at once are told to come again; small
// ones are still taken, and all is well when the others are stored.
func TestTooManyLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		large := fmt.Sprintf(`[{"eventId":"x","pad":%q}]`, strings.Repeat("x", 4<<20))
		var held []<-chan reply
		send := func(body string) <-chan reply {
			c, replies := s.dial(post(body))
			t.Cleanup(func() { _ = c.Close() })
			synctest.Wait()
			return replies
		}
		refused := 0
		for range 20 {
			replies := send(large)
			select {
			case got := <-replies:
				refused++
				if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
					t.Errorf("answer %+v; want 503 with Retry-After", got)
				}
			default:
				held = append(held, replies)
			}
		}
		if len(held) != 6 {
			t.Errorf("%d held and %d refused of 20 bodies of 4 MiB; want 24 MiB to be held", len(held), refused)
		}
		held = append(held, send(delivered))
		close(release)
		for _, replies := range held {
			if got := <-replies; got.status != http.StatusOK {
				t.Errorf("answer %+v; want 200", got)
			}
		}
		if got := <-send(large); got.status != http.StatusOK {
			t.Errorf("large body afterwards: %+v; want 200", got)
		}
		s.end()
	})
}

// Rows take memory too: a small body may have a hundred of them.
func TestTooManyRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		h := receiver(t, listen.Options{Store: box, Verify: signing(t)}).Handler()
		rows := func(n int) string { return "[" + strings.Repeat("{},", n-1) + "{}]" }
		var all sync.WaitGroup
		var stored, refused atomic.Int64
		post := func(body, signature string) {
			all.Go(func() {
				switch rec := send(t, h, body, signature); {
				case rec.Code == http.StatusOK:
					stored.Add(1)
				case rec.Code == http.StatusServiceUnavailable && rec.Header().Get("Retry-After") != "":
					refused.Add(1)
				default:
					t.Errorf("answer %d; want 200, or 503 with Retry-After", rec.Code)
				}
			})
		}
		for range 2000 {
			post(rows(100), "zz")
		}
		synctest.Wait()
		if n := refused.Load(); n < 1000 || n > 1900 {
			t.Errorf("%d of 2,000 bodies with 100 rows were refused; want most of them", n)
		}
		post(delivered, signature(delivered)) // a usual one is stored all the same
		close(release)
		all.Wait()
		if n := stored.Load() + refused.Load(); n != 2001 || stored.Load() < 101 {
			t.Errorf("%d stored of %d", stored.Load(), n)
		}
		stored.Store(0)
		post(rows(50_000), signature(rows(50_000))) // more than the budget, and alone
		all.Wait()
		if stored.Load() != 1 {
			t.Error("a verified delivery of 50,000 rows was not stored though nothing else waits")
		}
	})
}

// Paths, queries and rows count as what is kept, not only headers and bodies.
func TestUnverifiedPathsAndRowsCount(t *testing.T) {
	for name, target := range map[string]string{"path": "/" + strings.Repeat("p", 9_000), "query": "/?" + strings.Repeat("q", 9_000), "rows": "/"} {
		t.Run(name, func(t *testing.T) {
			body := "[1]"
			if name == "rows" {
				body = "[" + strings.Repeat("{},", 20) + "{}]"
			}
			h := receiver(t, listen.Options{Store: &memory{}, Unverified: &listen.UnverifiedLimit{
				MaxBytes: 80_000, CountBytes: func(context.Context) (int64, error) { return 0, nil },
			}}).Handler()
			var codes []int
			for range 2 {
				req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, req)
				codes = append(codes, rec.Code)
			}
			if codes[0] != 200 || codes[1] != 503 {
				t.Errorf("answers %v; want 200 and, beyond the minute's share, 503", codes)
			}
		})
	}
}

func TestUnverifiedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		var kept int64
		var broken error
		var log bytes.Buffer
		h := receiver(t, listen.Options{
			Store: box, Verify: signing(t), Report: reportTo(&log),
			Unverified: &listen.UnverifiedLimit{MaxBytes: 80_000, CountBytes: func(context.Context) (int64, error) { return kept, broken }},
		}).Handler()
		body := func(n int) string { return fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", n-20)) }
		want := func(what string, n, status int) {
			t.Helper()
			rec := send(t, h, body(n), "zz")
			if rec.Code != status || (rec.Header().Get("Retry-After") != "") != (status == 503) {
				t.Errorf("%s: answer %d with Retry-After %q; want %d", what, rec.Code, rec.Header().Get("Retry-After"), status)
			}
			if rec := send(t, h, body(n), signature(body(n))); rec.Code != 200 {
				t.Errorf("%s, verified: answer %d; want 200", what, rec.Code)
			}
		}
		want("first", 6_000, 200)
		want("beyond the minute's share", 6_000, 503)
		want("within it", 2_000, 200)
		time.Sleep(time.Minute)
		want("one that is greater than a share", 20_000, 200)
		want("after it", 100, 503)
		time.Sleep(time.Minute)
		kept = 78_000
		want("beyond all that may be kept", 6_000, 503)
		want("the rest of it", 500, 200)
		time.Sleep(5 * time.Second)
		kept = 10_000 // something was pruned
		want("after a prune", 6_000, 200)
		broken = fmt.Errorf("count: %w", inbox.ErrLocked)
		time.Sleep(time.Minute)
		if rec := send(t, h, body(100), "zz"); rec.Code != 503 {
			t.Errorf("when it cannot be counted: answer %d; want 503", rec.Code)
		}
		broken = errors.New("broken")
		if rec := send(t, h, body(100), "zz"); rec.Code != 503 {
			t.Errorf("when it cannot be counted for good: answer %d; want 503", rec.Code)
		}
		if n := strings.Count(log.String(), "too many unverified deliveries"); n != 3 {
			t.Errorf("told %d times; want 3, once for each minute: %s", n, log.String())
		}
		verified := 0
		deliveries, _ := box.kept()
		for _, d := range deliveries {
			if d.Verified == inbox.Yes {
				verified++
			}
		}
		if verified != 8 || len(deliveries) != 8+5 {
			t.Errorf("%d of %d stored deliveries verified; want 8 of 13", verified, len(deliveries))
		}
	})
}

// A request whose end is in doubt is the last one of its connection: what
// follows is never taken for another request, which a proxy would not have seen.
func TestDoubtfulRequestIsTheLast(t *testing.T) {
	const second = "POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n[]"
	for name, first := range map[string]string{
		"length and chunked": "POST /first HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
		"chunked and length": "POST /first HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 12\r\n\r\n2\r\n[]\r\n0\r\n\r\n",
		"of HTTP/1.0":        "POST /first HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n[]",
		"without a body":     "GET /first HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			box := &memory{}
			c := raw(t, receiver(t, listen.Options{Store: box}))
			if _, err := io.WriteString(c, first+second); err != nil {
				t.Fatal(err)
			}
			answers, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(answers), "HTTP/1."); n != 1 || !strings.Contains(string(answers), "\r\nConnection: close\r\n") {
				t.Errorf("%d answers; want one that closes the connection:\n%s", n, answers)
			}
			kept, _ := box.kept()
			for _, d := range kept {
				if d.Path != "/first" {
					t.Errorf("stored a delivery at %s", d.Path)
				}
			}
		})
	}
}

// A connection is kept after requests whose end is clear.
func TestConnectionIsKept(t *testing.T) {
	c := raw(t, receiver(t, listen.Options{Store: &memory{}}))
	answers := bufio.NewReader(c)
	for range 3 {
		if _, err := io.WriteString(c, post(delivered)); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusOK || res.Close {
			t.Errorf("%s, closing %v, %v; want 200 on a kept connection", res.Status, res.Close, err)
		}
	}
}

// raw serves r on loopback and returns a connection to it.
func raw(t *testing.T, r *listen.Receiver) net.Conn {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}
