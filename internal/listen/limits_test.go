package listen_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
		if len(held) < 8 || refused < 4 {
			t.Errorf("%d held and %d refused of 20 bodies of 4 MiB; want 64 MiB to be held", len(held), refused)
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
