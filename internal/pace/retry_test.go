package pace_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
)

func TestBackoffGrowsAndDiffers(t *testing.T) {
	b := pace.Backoff{First: time.Second, Max: 4 * time.Second}
	seen := map[time.Duration]bool{}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second} {
		got := b.Next()
		if got > want || got < want*3/4 {
			t.Errorf("a pause of %v; want between %v and %v", got, want*3/4, want)
		}
		seen[got] = true
	}
	if len(seen) < 4 {
		t.Errorf("pauses %v do not differ", seen)
	}
	var none pace.Backoff
	if got := none.Next(); got != 0 {
		t.Errorf("no pause is %v", got)
	}
}

func TestRetryEndsWithPatience(t *testing.T) {
	for name, tt := range map[string]struct {
		retryAfter  time.Duration
		least, most int // tries
	}{
		"growing pauses":        {0, 7, 9}, // .25 .5 1 2 4 4
		"as the service asks":   {7 * time.Second, 3, 3},
		"longer than patience":  {time.Minute, 1, 1},
		"exactly what patience": {15 * time.Second, 2, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, tries := time.Now(), 1
			for r := pace.NewRetry(15 * time.Second); r.Wait(t.Context(), tt.retryAfter); {
				tries++
			}
			if d := time.Since(start); d > 15*time.Second || tries < tt.least || tries > tt.most {
				t.Errorf("%s: %d tries in %v; want %d to %d in 15s", name, tries, d, tt.least, tt.most)
			}
		})
	}
}

func TestRetryBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := pace.NewRetry(time.Second)
		time.Sleep(time.Hour)
		if r.Wait(t.Context(), 0) {
			t.Error("it goes on past its patience")
		}
		if r.Restart(); !r.Wait(t.Context(), 0) {
			t.Error("it does not begin anew")
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if pace.NewRetry(time.Hour).Wait(ctx, time.Minute) {
		t.Error("Wait goes on")
	}
	if err := pace.Sleep(ctx, time.Minute); !errors.Is(err, enough) {
		t.Errorf("Sleep: %v; want the cause", err)
	}
}
