package listen_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/listen"
)

func TestAnswerWithTheStatusOfAnother(t *testing.T) {
	store := &memory{}
	r := receiver(t, listen.Options{Store: store})
	said := 0
	r.AnswerWith(func(_ context.Context, delivery int64) int {
		if stored, _ := store.kept(); int64(len(stored)) != delivery {
			t.Errorf("asked about delivery %d of %d", delivery, len(stored))
		}
		return said
	})
	for status, want := range map[int]struct {
		status int
		body   string
	}{
		200: {200, "stored\n"}, 204: {204, ""}, 302: {302, "stored\n"}, 304: {304, ""}, 418: {418, "stored\n"}, 504: {504, "stored\n"},
		0: {502, "stored\n"}, 101: {502, "stored\n"}, 999: {502, "stored\n"},
	} {
		said = status
		w := send(t, r.Handler(), delivered, "")
		if w.Code != want.status || w.Body.String() != want.body {
			t.Errorf("told %d, answered %d %q; want %d %q", status, w.Code, w.Body, want.status, want.body)
		}
	}
}

// A slow body, a slow store and a slow target together still get an answer.
func TestAnswerAfterAllThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration) { time.Sleep(d) } // of fake time
		r := receiver(t, listen.Options{Store: &memory{before: func(context.Context, string) error { slow(29 * time.Second); return nil }}})
		r.AnswerWith(func(context.Context, int64) int { slow(24 * time.Second); return http.StatusAccepted })
		s := serve(t, r)
		head, body, _ := strings.Cut(post(delivered), "[")
		c, replies := s.dial(head)
		defer c.Close()
		slow(14 * time.Second)
		if _, err := io.WriteString(c, "["+body); err != nil {
			t.Fatal(err)
		}
		if got := <-replies; got.status != http.StatusAccepted || got.after != 67*time.Second {
			t.Errorf("answer %+v; want 202 after 67s", got)
		}
		s.end()
	})
}
