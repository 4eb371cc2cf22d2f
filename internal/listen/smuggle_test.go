package listen_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/listen"
)

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
