package forward_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

func client(t *testing.T, o forward.ClientOptions) *forward.Client {
	t.Helper()
	c := forward.NewClient(o)
	t.Cleanup(c.Close)
	return c
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := forward.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// raw is a server that gives connections to serve, one after the other.
func raw(t *testing.T, serve func(net.Conn)) *url.URL {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			serve(conn)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return parse(t, "http://"+l.Addr().String())
}

// received is a delivery with a header of all kinds.
func received(body string) inbox.Delivery {
	return inbox.Delivery{
		Seq: 7, Method: "POST", Path: "/hooks/%C3%A9", RawQuery: "a=1&b=%20", Body: []byte(body), Verified: inbox.Yes,
		Header: []webhook.Field{
			{Name: "Host", Value: "sender.test"},
			{Name: "x-lower", Value: "1"},
			{Name: "X-Twice", Value: "first"},
			{Name: "Connection", Value: "keep-alive, X-Hop"},
			{Name: "X-Hop", Value: "gone"},
			{Name: "Keep-Alive", Value: "gone"},
			{Name: "Transfer-Encoding", Value: "chunked"},
			{Name: "content-LENGTH", Value: "99"},
			{Name: "Authorization", Value: "Bearer gone"},
			{Name: "Cookie", Value: "gone"},
			{Name: "waybill-attempt", Value: "gone"},
			{Name: "Expect", Value: "gone"},
			{Name: "Content-Type", Value: "application/json"},
			{Name: "X-Twice", Value: "second"},
			{Name: "A-Last", Value: ""},
			{Name: "X-Bytes", Value: "gr\xfc\xdf"},
			{Name: "X-Secret", Value: "withheld"},
		},
	}
}

func withheld(f webhook.Field) bool { return strings.Contains(f.Value, "withheld") }

func TestRequestIsTheDelivery(t *testing.T) {
	got := make(chan string, 1)
	to := raw(t, func(conn net.Conn) {
		var b bytes.Buffer
		r := bufio.NewReader(io.TeeReader(conn, &b))
		for !strings.HasSuffix(b.String(), "{\x00\xff}") {
			if _, err := r.Peek(1); err != nil {
				break
			}
			_, _ = r.Discard(r.Buffered())
		}
		got <- b.String()
		_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\nok")
	})
	m, err := forward.BuildMessage(received("{\x00\xff}"), to, 3, withheld)
	if err != nil {
		t.Fatal(err)
	}
	a, err := client(t, forward.ClientOptions{}).Send(t.Context(), to, m)
	if err != nil || a.Status != 202 || string(a.Reply) != "ok" {
		t.Errorf("%+v, %v", a, err)
	}
	want := "POST /hooks/%C3%A9?a=1&b=%20 HTTP/1.1\r\nHost: " + to.Host + "\r\nx-lower: 1\r\nX-Twice: first\r\nContent-Type: application/json\r\n" +
		"X-Twice: second\r\nA-Last: \r\nX-Bytes: gr\xfc\xdf\r\nWaybill-Delivery-Seq: 7\r\nWaybill-Attempt: 3\r\nContent-Length: 4\r\n\r\n{\x00\xff}"
	if s := <-got; s != want {
		t.Errorf("got  %q\nwant %q", s, want)
	}
}

func TestPathAndQueryOfTarget(t *testing.T) {
	for address, want := range map[string]string{
		"http://h":        "/hooks/%C3%A9?a=1&b=%20",
		"http://h/":       "/?a=1&b=%20",
		"http://h/in%2F":  "/in%2F?a=1&b=%20",
		"http://h/in?k=v": "/in?k=v&a=1&b=%20",
		"http://h?k=v":    "/hooks/%C3%A9?k=v&a=1&b=%20",
	} {
		m, err := forward.BuildMessage(received(""), parse(t, address), 1, nil)
		if got := m.Path + "?" + m.RawQuery; err != nil || got != want {
			t.Errorf("%s: %s (%v); want %s", address, got, err, want)
		}
	}
}

// A secret leaves no trace in the query, in whatever way it is escaped.
func TestSecretInQueryIsWithheld(t *testing.T) {
	secret := func(f webhook.Field) bool { return strings.Contains(f.Value, "s3cret/+ü") }
	for query, want := range map[string]string{
		"":                               "k=v",
		"a=1&b=%20&c":                    "k=v&a=1&b=%20&c",
		"token=s3cret%2F%2B%C3%BC":       "k=v",
		"a=1&token=s3cret/+%C3%BC&b=+":   "k=v&a=1&b=+",
		"a=1&t=x-%733cret%2F+%c3%bc-y":   "k=v&a=1",
		"s3cret%2f%2b%c3%bc&b":           "k=v&b",
		"a=1&a=s3cret%2F%2B%C3%BC&a=%zz": "k=v&a=1&a=%zz",
	} {
		d := received("")
		d.RawQuery = query
		m, err := forward.BuildMessage(d, parse(t, "http://h/in?k=v"), 1, secret)
		if err != nil || m.RawQuery != want {
			t.Errorf("%s: %s (%v); want %s", query, m.RawQuery, err, want)
		}
	}
}

func TestUnsendable(t *testing.T) {
	c := client(t, forward.ClientOptions{})
	to := parse(t, "http://127.0.0.1:1")
	for name, spoil := range map[string]func(*inbox.Delivery){
		"pruned":        func(d *inbox.Delivery) { d.Body = nil },
		"torn header":   func(d *inbox.Delivery) { d.Header = append(d.Header, webhook.Field{Name: "X", Value: "a\r\nEvil: b"}) },
		"torn name":     func(d *inbox.Delivery) { d.Header = append(d.Header, webhook.Field{Name: "X: a\r\nEvil", Value: "b"}) },
		"torn path":     func(d *inbox.Delivery) { d.Path = "/ HTTP/1.1\r\nEvil: b\r\n" },
		"torn query":    func(d *inbox.Delivery) { d.RawQuery = "a b" },
		"another path":  func(d *inbox.Delivery) { d.Path = "*" },
		"no method":     func(d *inbox.Delivery) { d.Method = "" },
		"method of two": func(d *inbox.Delivery) { d.Method = "POST /" },
	} {
		d := received("x")
		spoil(&d)
		m, err := forward.BuildMessage(d, to, 1, nil)
		if err == nil {
			_, err = c.Send(t.Context(), to, m)
		}
		if !errors.Is(err, forward.ErrUnsendable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func simple() webhook.Request { return webhook.Request{Method: "POST", Path: "/", Body: []byte("x")} }

func TestConnectionsAreKept(t *testing.T) {
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/close" {
			w.Header().Set("Connection", "close")
		}
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c := client(t, forward.ClientOptions{})
	to := parse(t, srv.URL)
	send := func(path string) {
		t.Helper()
		m := simple()
		m.Path = path
		if a, err := c.Send(t.Context(), to, m); err != nil || a.Status != 200 {
			t.Errorf("%+v, %v", a, err)
		}
	}
	for range 5 {
		send("/")
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	srv.CloseClientConnections() // the kept one is dead; the next request takes a new one at once
	send("/close")
	send("/")
	if n := conns.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestAnswersOfAllKinds(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		status int
		reply  string
		fails  bool
	}{
		"redirect":     {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n", 307, "", false},
		"until closed": {"HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it", false},
		"body cut":     {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", 200, "part", false},
		"long body":    {"HTTP/1.1 500 Oh\r\n\r\n" + strings.Repeat("y", 1<<20), 500, strings.Repeat("y", 1<<10), false},
		"no content":   {"HTTP/1.1 204 No Content\r\n\r\n", 204, "", false},
		"nothing":      {"", 0, "", true},
		"not HTTP":     {"SSH-2.0-x\r\n\r\n", 0, "", true},
		"half a line":  {"HTTP/1.1 2", 0, "", true},
		"long header":  {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1<<20), 0, "", true},
		"protocol":     {"HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := raw(t, func(conn net.Conn) {
				_, _ = bufio.NewReader(conn).ReadString('x')
				_, _ = io.WriteString(conn, c.answer)
			})
			a, err := client(t, forward.ClientOptions{}).Send(t.Context(), to, simple())
			if a.Status != c.status || string(a.Reply) != c.reply || (err != nil) != c.fails {
				t.Errorf("%d %.20q %v; want %d %.20q", a.Status, a.Reply, err, c.status, c.reply)
			}
			if errors.Is(err, forward.ErrUnreachable) {
				t.Errorf("%v says that nothing was sent", err)
			}
		})
	}
}

// What a target sends after its answer is not taken for its next one.
func TestAnswersAreNotMixedUp(t *testing.T) {
	to := raw(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			if _, err := r.ReadString('x'); err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	c := client(t, forward.ClientOptions{})
	for range 3 {
		if a, err := c.Send(t.Context(), to, simple()); err != nil || a.Status != 500 {
			t.Errorf("%+v, %v", a, err)
		}
	}
}

// A proxy of the environment would dial for us whatever it likes.
// A target that answers a byte at a time has no longer than any other.
func TestDrippingTarget(t *testing.T) {
	for name, answer := range map[string]string{"header": "HTTP/1.1 200 OK\r\nX: ", "only on the way": "HTTP/1.1 100 Continue\r\n\r\n"} {
		to := raw(t, func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, answer); err != nil {
					return
				}
				if name == "header" {
					answer = "y"
				}
				<-time.After(10 * time.Millisecond)
			}
		})
		if _, err := client(t, forward.ClientOptions{Timeout: 200 * time.Millisecond}).Send(t.Context(), to, simple()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "99999999999": time.Hour, "-1": 0, "x": 0, "": 0} {
		to := raw(t, func(conn net.Conn) {
			_, _ = bufio.NewReader(conn).ReadString('x')
			fmt.Fprintf(conn, "HTTP/1.1 503 Busy\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", value)
		})
		a, err := client(t, forward.ClientOptions{}).Send(t.Context(), to, simple())
		if value == "99999999999" && a.RetryAfter < want/2 || value != "99999999999" && a.RetryAfter != want || err != nil {
			t.Errorf("%q: %v (%v); want %v", value, a.RetryAfter, err, want)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	to := raw(t, func(net.Conn) {})
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := client(t, forward.ClientOptions{})
	_, err := c.Send(t.Context(), parse(t, gone.URL), simple())
	if !errors.Is(err, forward.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	_, err = c.Send(t.Context(), to, simple())
	if err == nil || errors.Is(err, forward.ErrUnreachable) {
		t.Errorf("closed at once: %v", err)
	}
	for name, c := range map[string]struct {
		m    webhook.Request
		end  func(*net.TCPConn) error
		want string
	}{
		"closed":                    {simple(), (*net.TCPConn).CloseRead, "no answer: the target closed the connection"},
		"reset":                     {simple(), func(c *net.TCPConn) error { return c.SetLinger(0) }, "no answer: connection reset by peer"},
		"reset while it is written": {webhook.Request{Method: "POST", Body: bytes.Repeat([]byte{'x'}, 32<<20)}, func(c *net.TCPConn) error { return c.SetLinger(0) }, "no answer: "},
	} {
		to := raw(t, func(conn net.Conn) {
			tcp, ok := conn.(*net.TCPConn)
			if _, err := conn.Read(make([]byte, 4<<10)); err != nil || !ok || c.end(tcp) != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		_, err := client(t, forward.ClientOptions{}).Send(t.Context(), to, c.m)
		if got := forward.Problem(forward.Answer{}, err); !strings.HasPrefix(got, c.want) || strings.ContainsAny(got, "\n>") {
			t.Errorf("%s: %q; want %q in one line, without addresses", name, got, c.want)
		}
	}
}

func TestSlowTarget(t *testing.T) {
	to := raw(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	c := client(t, forward.ClientOptions{Timeout: 50 * time.Millisecond})
	if _, err := c.Send(t.Context(), to, simple()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	c = client(t, forward.ClientOptions{})
	if _, err := c.Send(ctx, to, simple()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestGuardedByAddress(t *testing.T) {
	c := client(t, forward.ClientOptions{})
	for _, address := range []string{"http://169.254.169.254/latest", "http://[fe80::1]:80/", "http://[::ffff:169.254.169.254]/", "http://100.100.100.200"} {
		_, err := c.Send(t.Context(), parse(t, address), simple())
		if !errors.Is(err, forward.ErrForbidden) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestEncrypted(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto)
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	srv.StartTLS()
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	a, err := client(t, forward.ClientOptions{Roots: roots}).Send(t.Context(), parse(t, srv.URL), simple())
	if err != nil || a.Status != 200 || string(a.Reply) != "HTTP/1.1" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := client(t, forward.ClientOptions{}).Send(t.Context(), parse(t, srv.URL), simple()); !errors.Is(err, forward.ErrUnreachable) {
		t.Errorf("an unknown authority: %v", err)
	}
}

// The status counts, however the connection ends.
func TestEncryptedAnswerThenReset(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
		if secure, ok := conn.(*tls.Conn); ok {
			_ = secure.NetConn().(*net.TCPConn).SetLinger(0)
			_ = secure.NetConn().Close()
		}
	}))
	srv.StartTLS()
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	a, err := client(t, forward.ClientOptions{Roots: roots}).Send(t.Context(), parse(t, srv.URL), simple())
	if err != nil || a.Status != 200 || string(a.Reply) != "ok" {
		t.Errorf("%+v, %v", a, err)
	}
}
