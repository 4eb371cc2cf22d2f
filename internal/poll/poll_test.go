package poll_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/poll"
)

func TestAllAsksUntilDoneWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		left, err := poll.All(t.Context(), slices.Values([]string{"a"}), 4, pace.Backoff{First: time.Second, Max: 4 * time.Second},
			func(context.Context, string) (poll.Result, error) {
				at = append(at, time.Since(start))
				return poll.Result{Done: len(at) == 6}, nil
			}, poll.Wakeup[string]{})
		if err != nil || len(left) != 0 {
			t.Fatalf("left %v, err %v; want none", left, err)
		}
		want := []time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second}
		if len(at) != 6 || at[0] != 0 {
			t.Fatalf("asked at %v; want six times, the first at once", at)
		}
		for i, w := range want {
			if got := at[i+1] - at[i]; got > w || got < w*3/4 {
				t.Errorf("pause %d was %v; want between %v and %v", i+1, got, w*3/4, w)
			}
		}
	})
}

func TestAllGivesUpWithTheContextAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		left, err := poll.All(ctx, slices.Values([]int{1, 2, 3}), 2, pace.Backoff{First: time.Second, Max: 30 * time.Second},
			func(_ context.Context, k int) (poll.Result, error) { return poll.Result{Done: k == 2}, nil }, poll.Wakeup[int]{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v; want it to match context.DeadlineExceeded", err)
		}
		slices.Sort(left)
		if !slices.Equal(left, []int{1, 3}) {
			t.Errorf("left = %v; want [1 3]", left)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("waited %v; want 1m", d)
		}
	})
}

func TestAllEndsOnAnErrorAndWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var under atomic.Int32
		left, err := poll.All(t.Context(), slices.Values([]int{1, 2, 3, 4}), 3, pace.Backoff{First: time.Second, Max: time.Second},
			func(ctx context.Context, k int) (poll.Result, error) {
				under.Add(1)
				defer under.Add(-1)
				if k == 1 {
					return poll.Result{}, boom
				}
				<-ctx.Done()
				return poll.Result{}, nil
			}, poll.Wakeup[int]{})
		if !errors.Is(err, boom) {
			t.Errorf("err = %v; want boom", err)
		}
		slices.Sort(left)
		if !slices.Equal(left, []int{1, 2, 3, 4}) {
			t.Errorf("left = %v; want all four", left)
		}
		if n := under.Load(); n != 0 {
			t.Errorf("%d questions still under way", n)
		}
	})
}

func TestAllBoundsQuestionsUnderWayAndAsksEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, workers = 25_000, 8
		var mu sync.Mutex
		under, most := 0, 0
		asked := make(map[int]int)
		seq := func(yield func(int) bool) {
			for i := range keys {
				if !yield(i) {
					return
				}
			}
		}
		left, err := poll.All(t.Context(), seq, workers, pace.Backoff{First: time.Second, Max: time.Second},
			func(_ context.Context, k int) (poll.Result, error) {
				mu.Lock()
				under++
				most = max(most, under)
				asked[k]++
				n := asked[k]
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				under--
				mu.Unlock()
				return poll.Result{Done: n == 2}, nil
			}, poll.Wakeup[int]{})
		if err != nil || len(left) != 0 {
			t.Fatalf("left %d, err %v; want none", len(left), err)
		}
		if most > workers {
			t.Errorf("%d questions at once; want at most %d", most, workers)
		}
		for k := range keys {
			if asked[k] != 2 {
				t.Fatalf("key %d asked %d times; want 2", k, asked[k])
			}
		}
	})
}

func TestAllHonoursALongerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := 0
		_, err := poll.All(t.Context(), slices.Values([]int{1}), 1, pace.Backoff{First: time.Second, Max: time.Second},
			func(context.Context, int) (poll.Result, error) {
				n++
				return poll.Result{Done: n == 2, NotBefore: time.Minute}, nil
			}, poll.Wakeup[int]{})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("waited %v; want 1m", d)
		}
	})
}

// News ends the asking early, also about what is being asked just then, and
// about what is not asked yet.
func TestNewsEndsTheAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		known := map[int]bool{}
		woken := make(chan struct{}, 1)
		tell := func(after time.Duration, k int) {
			go func() {
				time.Sleep(after)
				mu.Lock()
				known[k] = true
				mu.Unlock()
				woken <- struct{}{}
			}()
		}
		tell(5*time.Second, 1)
		tell(10*time.Second, 2) // being asked about since 0 s, for 20 s
		asked := 0
		left, err := poll.All(t.Context(), slices.Values([]int{1, 2, 3}), 3, pace.Backoff{First: time.Minute, Max: time.Hour},
			func(_ context.Context, k int) (poll.Result, error) {
				mu.Lock()
				asked++
				mu.Unlock()
				if k == 2 {
					time.Sleep(20 * time.Second)
				}
				return poll.Result{Done: k == 3}, nil
			}, poll.Wakeup[int]{Signal: woken, Done: func(k int) bool {
				mu.Lock()
				defer mu.Unlock()
				return known[k]
			}})
		if err != nil || len(left) != 0 || asked != 3 {
			t.Errorf("left %v, err %v, asked %d times; want none, and one question each", left, err, asked)
		}
		if d := time.Since(start); d != 20*time.Second {
			t.Errorf("took %v; want 20s", d)
		}
	})
}
