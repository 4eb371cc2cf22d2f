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

var growing = pace.Backoff{First: time.Second, Max: 30 * time.Second}

// verdicts says what becomes of a key that is asked about so long after the start.
type verdicts func(key int, after time.Duration) poll.Verdict

// asked runs a poll of n keys, each alike until it is ready, for as long as limit, and
// returns when each was asked about.
func asked(t *testing.T, n int, limit time.Duration, verdict verdicts) (times [][]time.Duration) {
	t.Helper()
	return askedSlowly(t, 10*time.Millisecond, n, limit, verdict)
}

func askedSlowly(t *testing.T, answer time.Duration, n int, limit time.Duration, verdict verdicts) [][]time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	start := time.Now()
	var mu sync.Mutex
	times, o := make([][]time.Duration, n), poll.Options{Workers: 4, Pauses: growing}
	_, err := run(ctx, count(n), o, func(_ context.Context, k int) (poll.Verdict, error) {
		time.Sleep(answer)
		mu.Lock()
		defer mu.Unlock()
		after := time.Since(start)
		times[k] = append(times[k], after)
		return verdict(k, after), nil
	})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return times
}

func alikeUntil(ready time.Duration) verdicts {
	return func(_ int, after time.Duration) poll.Verdict {
		return poll.Verdict{Done: after >= ready, Alike: after < ready}
	}
}

// longest returns the longest pause between two questions.
func longest(at []time.Duration) (pause time.Duration) {
	for i := range at[1:] {
		pause = max(pause, at[i+1]-at[i])
	}
	return pause
}

func total(times [][]time.Duration) (n int, last time.Duration) {
	for _, at := range times {
		n, last = n+len(at), max(last, at[len(at)-1])
	}
	return n, last
}

// Of 300 keys that are ready after 90 seconds, few are asked about meanwhile, and all are done as soon as without that.
func TestFewOfTheAlikeAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, last := total(asked(t, 300, time.Hour, alikeUntil(90*time.Second)))
		if n > 700 || n < 600 || last > 125*time.Second {
			t.Errorf("%d questions, the last after %v", n, last)
		}
	})
}

// Keys that are never ready hide none that is for longer than the longest pause.
func TestAlikeKeysThatAreNeverReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := asked(t, 100, 20*time.Minute, func(k int, after time.Duration) poll.Verdict {
			done := k >= 90 && after >= 20*time.Second
			return poll.Verdict{Done: done, Alike: !done}
		})
		for k, at := range times {
			if k >= 90 && at[len(at)-1] > 130*time.Second {
				t.Errorf("key %d was ready after 20 s, and done after %v", k, at[len(at)-1])
			}
			if pause := longest(at); pause > 125*time.Second {
				t.Errorf("key %d was not asked about for %v", k, pause)
			}
		}
	})
}

// Ten keys that are ready one after the other are each found within their longest pause.
func TestTheAlikeThatAreReadyOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := asked(t, 10, time.Hour, func(k int, after time.Duration) poll.Verdict {
			done := after >= time.Duration(k)*20*time.Second
			return poll.Verdict{Done: done, Alike: !done}
		})
		for k, at := range times {
			if late := at[len(at)-1] - time.Duration(k)*20*time.Second; late > 62*time.Second {
				t.Errorf("key %d was found %v late", k, late)
			}
		}
	})
}

// Other keys are asked about as if there were no alike ones.
func TestOthersBesideTheAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := asked(t, 200, 10*time.Minute, func(k int, _ time.Duration) poll.Verdict {
			return poll.Verdict{Alike: k > 0}
		})
		if len(times[0]) < 20 {
			t.Errorf("asked %d times in ten minutes, at %v", len(times[0]), times[0])
		}
	})
}

// Others that are always due, since their answers take long, keep no alike key waiting.
func TestTheAlikeBesideABusyService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		times, o := make([]int, 60), poll.Options{Workers: 1, Pauses: growing}
		_, err := run(ctx, count(len(times)), o, func(_ context.Context, k int) (poll.Verdict, error) {
			time.Sleep(time.Second)
			times[k]++
			return poll.Verdict{Alike: k < 10}, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || slices.Min(times) < 4 {
			t.Errorf("%v: asked %v", err, times)
		}
	})
}

// What is ready is found before the time is up, however many others are not.
func TestFewAlikeKeysAreReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := 0
		times := asked(t, 1000, 2*time.Minute, func(k int, after time.Duration) poll.Verdict {
			done := k >= 900 && k < 950 && after > 5*time.Second
			if done {
				ready++
			}
			return poll.Verdict{Done: done, Alike: !done}
		})
		for k, at := range times {
			if last := at[len(at)-1]; last < 85*time.Second && (k < 900 || k >= 950) {
				t.Errorf("key %d was asked about last at %v of two minutes", k, last)
			}
		}
		if ready != 50 {
			t.Errorf("%d found, want 50", ready)
		}
	})
}

// Failures are no sign that what all wait for has come: they cause no more questions.
func TestFailuresReleaseNoAlikeKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := 0
		n, _ := total(asked(t, 300, 10*time.Minute, func(int, time.Duration) poll.Verdict {
			i++
			return poll.Verdict{Alike: i%10 > 0}
		}))
		if n > 4000 { // 8,200 if none were alike
			t.Errorf("%d questions", n)
		}
	})
}

// More keys than have room in memory, from a service that is too slow for all of them, are asked about in turn.
func TestMoreAlikeKeysThanAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for k, at := range askedSlowly(t, 200*time.Millisecond, 3000, 20*time.Minute, alikeUntil(time.Hour)) {
			if len(at) < 3 {
				t.Errorf("key %d was asked about at %v only", k, at)
			}
		}
	})
}

// Wake-ups, while what is known is loaded slowly, let no alike key wait longer.
func TestTheAlikeBesideWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		wake := make(chan struct{}, 1)
		go func() {
			for ctx.Err() == nil {
				time.Sleep(time.Second)
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}()
		var mu sync.Mutex
		start, times := time.Now(), make([][]time.Duration, 300)
		a := &slowLoad{asker[int]{ask: func(_ context.Context, k int) (poll.Verdict, error) {
			mu.Lock()
			times[k] = append(times[k], time.Since(start))
			mu.Unlock()
			time.Sleep(300 * time.Millisecond)
			return poll.Verdict{Alike: true}, nil
		}}}
		o := poll.Options{Workers: 4, Pauses: growing, Wake: wake}
		err := poll.Run(ctx, without(count(len(times))), poll.Steps[int, poll.Verdict](a), o)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		for k, at := range times {
			if len(at) < 14 || longest(at) > 150*time.Second {
				t.Errorf("key %d: %d questions, the longest pause is %v", k, len(at), longest(at))
			}
		}
		time.Sleep(time.Second) // the goroutine above ends
	})
}

// slowLoad takes its time to look up what is known.
type slowLoad struct{ asker[int] }

func (s *slowLoad) Load(ctx context.Context, keys []int) ([]poll.Verdict, error) {
	time.Sleep(100 * time.Millisecond)
	return s.asker.Load(ctx, keys)
}

// What a wake-up says of the alike ends the questions about them.
func TestWakeUpsEndTheAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		var mu sync.Mutex
		questions, ready := 0, false
		a := &asker[int]{
			ask: func(context.Context, int) (poll.Verdict, error) {
				mu.Lock()
				defer mu.Unlock()
				questions++
				return poll.Verdict{Alike: true}, nil
			},
			known: func(int) poll.Verdict {
				mu.Lock()
				defer mu.Unlock()
				return poll.Verdict{Done: ready}
			},
		}
		time.AfterFunc(40*time.Second, func() {
			mu.Lock()
			defer mu.Unlock()
			ready = true
			wake <- struct{}{}
		})
		began := time.Now()
		keys := slices.Values(slices.Collect(count(50)))
		o := poll.Options{Workers: 4, Pauses: growing, Wake: wake}
		if err := poll.Run(t.Context(), without(keys), poll.Steps[int, poll.Verdict](a), o); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 41*time.Second || questions > 50+6*8+8 || len(a.left) > 0 {
			t.Errorf("%d questions in %v, %d left", questions, took, len(a.left))
		}
	})
}

// With a clock that goes on while entries are taken, all alike keys are asked about again.
func TestTheAlikeByTheClock(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var questions atomic.Int64
	o := poll.Options{Workers: 4, Pauses: pace.Backoff{First: time.Millisecond, Max: 4 * time.Millisecond}}
	left, err := run(ctx, count(30), o, func(context.Context, int) (poll.Verdict, error) {
		done := questions.Add(1) > 100
		return poll.Verdict{Done: done, Alike: !done}, nil
	})
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %d left after %d questions", err, len(left), questions.Load())
	}
}
