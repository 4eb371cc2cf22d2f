package inspect_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/inspect"
)

// pipes is a listener without a network, so that its time can be faked.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.ended:
	default:
		close(p.ended)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }

// openPipes starts a server in a bubble, and returns what connects to it, and the
// header that has the token.
func openPipes(t *testing.T, stream inspect.Stream) (dial func() net.Conn, token string) {
	dial, token, _ = servePipes(t, stream)
	return dial, token
}

// servePipes is openPipes with what ends the server, and waits until it has ended.
func servePipes(t *testing.T, stream inspect.Stream) (dial func() net.Conn, token string, end func()) {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s, err := inspect.New(p, inspect.Options{
		Session: func(context.Context, string) (any, error) { return nil, nil }, //nolint:nilnil // nobody reads it
		Stream:  stream,
		Routes: []inspect.Route{{Method: "GET", Pattern: "/large", Serve: func(*http.Request) (any, error) {
			return inspect.File{Name: "large", Body: make([]byte, 1<<20)}, nil
		}}},
		Explain: func(err error) *inspect.Error { return &inspect.Error{Status: 500, Message: err.Error()} },
		Hide:    func(b []byte) []byte { return b },
		Log:     func(string) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	dial = func() net.Conn {
		here, there := net.Pipe()
		p.conns <- there
		t.Cleanup(func() { _ = here.Close() })
		return here
	}
	_, token, _ = strings.Cut(s.SecretURL(), "#token=")
	return dial, "Waybill-Token: " + token + "\r\n", end
}

// Who sends slowly is cut off: a header after five seconds, a body after fifteen.
func TestSlowRequestsAreCutOff(t *testing.T) {
	for begin, want := range map[string]time.Duration{
		"GET / HTTP/1.1\r\nHost: 127.0.0.1:9\r\n":                                                   5 * time.Second,
		"GET /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1:9\r\nContent-Length: 10\r\nTOKEN\r\n\r\n1": 15 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			dial, token := openPipes(t, nil)
			conn, began := dial(), time.Now()
			go func() {
				_, _ = io.WriteString(conn, strings.ReplaceAll(begin, "TOKEN\r\n", token))
			}()
			if _, err := io.ReadAll(conn); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("%.20s: cut off after %s; want %s", begin, took, want)
			}
		})
	}
}

// A stream ends when its reader does not read for ten seconds.
func TestSlowReaderOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		dial, token := openPipes(t, func(_ context.Context, _ *http.Request, _ int64, send func(int64, string, any) error) error {
			defer func() { ended <- time.Now() }()
			for n := int64(1); ; n++ {
				if err := send(n, "", "x"); err != nil {
					return err
				}
			}
		})
		conn, began := dial(), time.Now()
		go func() {
			_, _ = io.WriteString(conn, "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"+token+"\r\n")
		}()
		if took := (<-ended).Sub(began); took != 10*time.Second {
			t.Errorf("the stream ended after %s", took)
		}
	})
}

// A stream with nothing to say shows every ten seconds that it is alive.
func TestStreamShowsThatItIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, token := openPipes(t, func(ctx context.Context, _ *http.Request, _ int64, send func(int64, string, any) error) error {
			err := send(0, "", "begun")
			<-ctx.Done()
			return err
		})
		conn, began := dial(), time.Now()
		go func() {
			_, _ = io.WriteString(conn, "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"+token+"\r\n")
		}()
		lines := bufio.NewScanner(conn)
		for beats := 0; beats < 3; {
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			if lines.Text() == ":" {
				beats++
			}
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("three signs of life in %s", took)
		}
	})
}

// A reader may take its time for a large answer as long as it goes on reading.
func TestSlowReaderOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, token := openPipes(t, nil)
		conn := dial()
		go func() {
			_, _ = io.WriteString(conn, "GET /api/v1/large HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"+token+"\r\n")
		}()
		resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 16<<10), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		began, read := time.Now(), 0
		for part := make([]byte, 16<<10); ; {
			n, err := io.ReadFull(resp.Body, part)
			if read += n; err != nil {
				break
			}
			time.Sleep(2 * time.Second) // of fake time: each 64 KiB takes eight
		}
		if took := time.Since(began); read != 1<<20 || took < 100*time.Second {
			t.Errorf("%d bytes in %s", read, took)
		}
	})
}

// A slow reader of an answer does not keep the server from ending.
func TestSlowReaderAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, token, end := servePipes(t, nil)
		conn := dial()
		go func() {
			_, _ = io.WriteString(conn, "GET /api/v1/large HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"+token+"\r\n")
		}()
		if _, err := io.ReadFull(conn, make([]byte, 100<<10)); err != nil {
			t.Fatal(err)
		}
		var reading sync.WaitGroup
		defer reading.Wait()
		reading.Go(func() {
			for part := make([]byte, 16<<10); ; time.Sleep(2 * time.Second) {
				if _, err := io.ReadFull(conn, part); err != nil {
					return
				}
			}
		})
		began := time.Now()
		end()
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("the server ended after %s", took)
		}
	})
}

// Nor does a connection on which nothing is ever sent.
func TestSilentConnectionAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, _, end := servePipes(t, nil)
		dial()
		synctest.Wait()
		began := time.Now()
		end()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the server ended after %s", took)
		}
	})
}
