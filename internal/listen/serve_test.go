package listen_test

import (
	"bytes"
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

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
)

func TestAnswerWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		box := &memory{before: func(context.Context, string) error { <-release; return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		conn, replies := s.dial(post(delivered))
		defer conn.Close()
		synctest.Wait() // until nothing moves but for the store
		select {
		case got := <-replies:
			t.Fatalf("answered %+v before the delivery was stored", got)
		default:
		}
		close(release)
		if got := <-replies; got.status != http.StatusOK {
			t.Errorf("answer %+v; want 200", got)
		}
		if kept, _ := box.kept(); len(kept) != 1 {
			t.Errorf("%d deliveries stored; want 1", len(kept))
		}
		s.end()
	})
}

func TestTimeouts(t *testing.T) {
	// takes makes the store take that long.
	takes := func(d time.Duration) func(context.Context, string) error {
		return func(ctx context.Context, _ string) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	for _, tt := range []struct {
		name   string
		raw    string
		store  func(context.Context, string) error
		status int // 0: the connection is closed without an answer
		after  time.Duration
		stored int
	}{
		{"nothing sent", "", nil, 0, 5 * time.Second, 0},
		{"slow header", "POST / HTTP/1.1\r\nHost: h\r\n", nil, 0, 5 * time.Second, 0},
		{"slow body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n[", nil, 408, 15 * time.Second, 0},
		{"slow chunks", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", nil, 408, 15 * time.Second, 0},
		{"announced too long", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5242881\r\n\r\n[", nil, 413, 0, 0},
		{"header far too large", "POST / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 40<<10), nil, 431, 0, 0},
		{"slow store", post(delivered), takes(29 * time.Second), 200, 29 * time.Second, 1},
		{"store that hangs", post(delivered), takes(time.Hour), 503, 30 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := &memory{before: tt.store}
				s := serve(t, receiver(t, listen.Options{Store: box}))
				conn, replies := s.dial(tt.raw)
				defer conn.Close()
				got := <-replies
				if got.status != tt.status || got.after != tt.after {
					t.Errorf("answer %+v; want status %d after %v", got, tt.status, tt.after)
				}
				if kept, _ := box.kept(); len(kept) != tt.stored {
					t.Errorf("%d deliveries stored; want %d", len(kept), tt.stored)
				}
				s.end()
			})
		})
	}
}

// What package net/http answers by itself is reported like what a handler refuses.
func TestServerAnswersAreReported(t *testing.T) {
	for want, raw := range map[string]string{
		"answered 400 and not stored: bad request":                     "POST / HTTP/1.1\r\nno colon\r\n\r\n",
		"answered 431 and not stored: request header fields too large": "POST / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 40<<10) + "\r\n\r\n",
		"answered 413 and not stored: body too large":                  "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5242881\r\n\r\n[",
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := serve(t, receiver(t, listen.Options{Store: &memory{}, Report: reportTo(&log)}))
			conn, replies := s.dial(raw)
			defer conn.Close()
			<-replies
			s.end()
			if n := strings.Count(log.String(), "and not stored"); n != 1 || !strings.Contains(log.String(), want) {
				t.Errorf("%d reports; want one of %q:\n%s", n, want, log.String())
			}
		})
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, receiver(t, listen.Options{Store: &memory{}}))
		conn, replies := s.dial(post(delivered))
		defer conn.Close()
		if got := <-replies; got.status != http.StatusOK {
			t.Fatalf("answer %+v; want 200", got)
		}
		start := time.Now()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("read: %v; want the connection closed", err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("closed after %v; want 1m", got)
		}
		s.end()
	})
}

func TestCutBodyIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		conn, replies := s.dial("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n" + delivered)
		synctest.Wait()
		conn.Close()
		if got := <-replies; got.err == nil {
			t.Errorf("answer %+v on a closed connection", got)
		}
		s.end()
		if kept, _ := box.kept(); len(kept) != 0 {
			t.Errorf("stored %+v; want nothing of a body that was cut", kept)
		}
	})
}

// A sender that hangs up while its delivery is being stored does not stop that.
func TestSenderThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{before: func(ctx context.Context, _ string) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		conn, _ := s.dial(post(delivered))
		synctest.Wait()
		conn.Close()
		s.end()
		if kept, _ := box.kept(); len(kept) != 1 {
			t.Errorf("%d deliveries stored; want 1", len(kept))
		}
	})
}

func TestStopFinishesWhatIsBeingStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{before: func(context.Context, string) error { time.Sleep(20 * time.Second); return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		conn, replies := s.dial(post(delivered))
		defer conn.Close()
		synctest.Wait()
		if got := s.end(); got != 20*time.Second {
			t.Errorf("stopped after %v; want 20s, when the delivery was stored", got)
		}
		if kept, _ := box.kept(); len(kept) != 1 {
			t.Errorf("%d deliveries stored; want 1", len(kept))
		}
		if got := <-replies; got.status != http.StatusOK || got.after < 20*time.Second {
			t.Errorf("answer %+v; want 200 when the delivery was stored", got)
		}
	})
}

func TestStopAnswersWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{before: func(context.Context, string) error { time.Sleep(2 * time.Second); return nil }}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		conn, replies := s.dial(post(delivered))
		defer conn.Close()
		synctest.Wait()
		s.end()
		if got := <-replies; got.status != http.StatusOK || got.header.Get("Connection") != "close" && got.err != nil {
			t.Errorf("answer %+v; want 200", got)
		}
	})
}

func TestStopDoesNotWaitForTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, receiver(t, listen.Options{Store: &memory{}}))
		silent, _ := s.dial("")
		defer silent.Close()
		idle, replies := s.dial(post(delivered))
		defer idle.Close()
		<-replies
		if got := s.end(); got != 0 {
			t.Errorf("stopped after %v; want at once", got)
		}
	})
}

func TestStopCutsSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		s := serve(t, receiver(t, listen.Options{Store: box}))
		slow, _ := s.dial("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n[")
		defer slow.Close()
		synctest.Wait()
		if got := s.end(); got != 5*time.Second {
			t.Errorf("stopped after %v; want 5s", got)
		}
		if kept, _ := box.kept(); len(kept) != 0 {
			t.Errorf("stored %+v; want nothing", kept)
		}
	})
}

func TestNothingIsTakenAfterStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		r := receiver(t, listen.Options{Store: box})
		serve(t, r).end()
		if rec := send(t, r.Handler(), delivered, ""); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" {
			t.Errorf("answer %d; want 503 with Retry-After", rec.Code)
		}
		if kept, _ := box.kept(); len(kept) != 0 {
			t.Errorf("stored %+v after the end", kept)
		}
	})
}

func TestServeSaysWhyItEnded(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = receiver(t, listen.Options{Store: &memory{}}).Serve(t.Context(), l)
	if !errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("Serve on a closed listener: %v; want net.ErrClosed and the address", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	box := &memory{}
	r := receiver(t, listen.Options{Store: box, Verify: signing(t), Enforce: true})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, l) }()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 20 {
				body := fmt.Sprintf(`[{"eventId":"%d-%d"}]`, w, i)
				sig := signature(body)
				want := http.StatusOK
				if i%4 == 0 {
					sig, want = signature(body+"x"), http.StatusUnauthorized
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String(), strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Signature", sig)
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s: status %d; want %d", body, res.StatusCode, want)
				}
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	ids := map[string]bool{}
	for _, row := range box.rows {
		ids[row.EventID] = row.Mark == inbox.Current
	}
	if kept, refused := box.kept(); len(kept) != 240 || len(ids) != 240 || len(refused) != 80 {
		t.Errorf("%d deliveries of %d events stored, %d refused; want 240, 240, 80", len(kept), len(ids), len(refused))
	}
}

func TestEvidenceDoesNotHoldUpAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{before: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
		s := serve(t, receiver(t, listen.Options{Store: box, Verify: signing(t), Enforce: true}))
		var all []<-chan reply
		for range 20 {
			conn, replies := s.dial(post(delivered))
			t.Cleanup(func() { conn.Close() })
			all = append(all, replies)
		}
		for _, replies := range all {
			if got := <-replies; got.status != http.StatusUnauthorized || got.after > 2*time.Second {
				t.Errorf("answer %+v; want 401 within 2s", got)
			}
		}
		s.end()
	})
}

// Requests without a signature that wait for the store leave room for evidence
// of deliveries whose signature is well-formed.
func TestJunkDoesNotHoldUpEvidence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		storing := 0
		var mu sync.Mutex
		box := &memory{before: func(context.Context, string) error {
			mu.Lock()
			storing++
			mu.Unlock()
			<-release
			return nil
		}}
		h := receiver(t, listen.Options{Store: box, Verify: signing(t), Enforce: true}).Handler()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { send(t, h, delivered, "") })
		}
		synctest.Wait()
		before := storing
		all.Go(func() { send(t, h, delivered, signature("another secret")) })
		synctest.Wait()
		if storing != before+1 {
			t.Errorf("%d pieces of evidence are being stored, after %d; want one more", storing, before)
		}
		close(release)
		all.Wait()
	})
}
