package listen_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/listen"
)

func TestUnverifiedAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &memory{}
		var kept int64
		var broken error
		var log bytes.Buffer
		h := receiver(t, listen.Options{
			Store: box, Verify: signing(t), Log: slog.New(slog.NewTextHandler(&log, nil)),
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
		kept = 79_000
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
