package poll_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/poll"
)

// asker is Steps by a function that asks, and one that says what is known.
type asker[K comparable] struct {
	ask   func(context.Context, K) (poll.Verdict, error)
	known func(K) poll.Verdict // nil for nothing

	mu       sync.Mutex
	left     []K
	recorded [][]K // keys of each batch
}

func (a *asker[K]) Load(_ context.Context, keys []K) ([]poll.Verdict, error) {
	all := make([]poll.Verdict, len(keys))
	for i, k := range keys {
		if a.known != nil {
			all[i] = a.known(k)
		}
	}
	return all, nil
}

func (a *asker[K]) Ask(ctx context.Context, k K) (poll.Verdict, error) { return a.ask(ctx, k) }

func (a *asker[K]) Record(_ context.Context, answers []poll.Answer[K, poll.Verdict]) ([]poll.Verdict, error) {
	var all []poll.Verdict
	var keys []K
	for _, x := range answers {
		all, keys = append(all, x.Result), append(keys, x.Key)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recorded = append(a.recorded, keys)
	return all, nil
}

func (a *asker[K]) Leave(_ context.Context, keys []K) error {
	a.left = append(a.left, keys...)
	return nil
}

// run asks about keys until ask says done, and returns those that it was not.
func run[K comparable](ctx context.Context, keys iter.Seq[K], o poll.Options, ask func(context.Context, K) (poll.Verdict, error)) ([]K, error) {
	a := &asker[K]{ask: ask}
	err := poll.Run(ctx, without(keys), poll.Steps[K, poll.Verdict](a), o)
	return a.left, err
}

// without returns keys that come without an error.
func without[K any](keys iter.Seq[K]) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		for k := range keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestRunAsksUntilDoneWithGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		left, err := run(t.Context(), slices.Values([]string{"a"}), poll.Options{Workers: 4, Pauses: pace.Backoff{First: time.Second, Max: 4 * time.Second}},
			func(context.Context, string) (poll.Verdict, error) {
				at = append(at, time.Since(start))
				return poll.Verdict{Done: len(at) == 6}, nil
			})
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

func TestRunGivesUpWithTheContextAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		left, err := run(ctx, slices.Values([]int{1, 2, 3}), poll.Options{Workers: 2, Pauses: pace.Backoff{First: time.Second, Max: 30 * time.Second}},
			func(_ context.Context, k int) (poll.Verdict, error) { return poll.Verdict{Done: k == 2}, nil })
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

func TestRunEndsOnAnErrorAndWaitsForWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		var under atomic.Int32
		left, err := run(t.Context(), slices.Values([]int{1, 2, 3, 4}), poll.Options{Workers: 3, Pauses: pace.Backoff{First: time.Second, Max: time.Second}},
			func(ctx context.Context, k int) (poll.Verdict, error) {
				under.Add(1)
				defer under.Add(-1)
				if k == 1 {
					return poll.Verdict{}, boom
				}
				<-ctx.Done()
				return poll.Verdict{}, nil
			})
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

func TestRunBoundsQuestionsUnderWayAndAsksEveryKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, workers = 25_000, 8
		var mu sync.Mutex
		under, most := 0, 0
		asked := make(map[int]int)
		left, err := run(t.Context(), count(keys), poll.Options{Workers: workers, Pauses: pace.Backoff{First: time.Second, Max: time.Second}},
			func(_ context.Context, k int) (poll.Verdict, error) {
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
				return poll.Verdict{Done: n == 2}, nil
			})
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

func TestRunHonoursALongerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := 0
		_, err := run(t.Context(), slices.Values([]int{1}), poll.Options{Workers: 1, Pauses: pace.Backoff{First: time.Second, Max: time.Second}},
			func(context.Context, int) (poll.Verdict, error) {
				n++
				return poll.Verdict{Done: n == 2, NotBefore: time.Minute}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Errorf("waited %v; want 1m", d)
		}
	})
}

// A wake-up ends the asking early, also about what is being asked just then.
func TestWakeUpsEndTheAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		known := map[int]bool{}
		woken := make(chan struct{}, 1)
		wake := func(after time.Duration, k int) {
			go func() {
				time.Sleep(after)
				mu.Lock()
				known[k] = true
				mu.Unlock()
				woken <- struct{}{}
			}()
		}
		wake(5*time.Second, 1)
		wake(10*time.Second, 2) // being asked about since 0 s, for 20 s
		asked := 0
		a := &asker[int]{
			ask: func(_ context.Context, k int) (poll.Verdict, error) {
				mu.Lock()
				asked++
				mu.Unlock()
				if k == 2 {
					time.Sleep(20 * time.Second)
				}
				return poll.Verdict{Done: k == 3}, nil
			},
			known: func(k int) poll.Verdict {
				mu.Lock()
				defer mu.Unlock()
				return poll.Verdict{Done: known[k]}
			},
		}
		err := poll.Run(t.Context(), without(slices.Values([]int{1, 2, 3})), poll.Steps[int, poll.Verdict](a),
			poll.Options{Workers: 3, Pauses: pace.Backoff{First: time.Minute, Max: time.Hour}, Wake: woken})
		if err != nil || len(a.left) != 0 || asked != 3 {
			t.Errorf("left %v, err %v, asked %d times; want none, and one question each", a.left, err, asked)
		}
		if d := time.Since(start); d != 20*time.Second {
			t.Errorf("took %v; want 20s", d)
		}
	})
}

// What was never asked about comes first, then what was asked about least
// recently; what is done already is not asked about.
func TestRunAsksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := time.Now().Add(-time.Hour)
		before := map[int]time.Duration{0: 3 * time.Minute, 2: time.Minute, 5: 2 * time.Minute}
		var order []int
		a := &asker[int]{
			ask: func(_ context.Context, k int) (poll.Verdict, error) {
				order = append(order, k)
				return poll.Verdict{Done: len(order) > 7}, nil
			},
			known: func(k int) poll.Verdict {
				if asked, ok := before[k]; ok {
					return poll.Verdict{Asked: base.Add(asked)}
				}
				return poll.Verdict{Done: k == 4}
			},
		}
		if err := poll.Run(t.Context(), without(count(7)), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 1, Pauses: pace.Backoff{First: time.Second, Max: time.Second}}); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 3, 6, 2, 5, 0}; !slices.Equal(order[:6], want) {
			t.Errorf("asked in the order %v; want %v first", order, want)
		}
	})
}

// More keys than are held at once, none of them ready: each is asked again before
// any is a third time.
func TestRunStarvesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20_000
		var mu sync.Mutex
		asked := make([]int, keys)
		ctx, cancel := context.WithCancel(t.Context())
		a := &asker[int]{ask: func(_ context.Context, k int) (poll.Verdict, error) {
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if asked[k]++; k == 0 && asked[k] == 4 {
				cancel()
			}
			return poll.Verdict{}, nil
		}}
		err := poll.Run(ctx, without(count(keys)), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 64, Pauses: pace.Backoff{First: time.Second, Max: 2 * time.Second}})
		if !errors.Is(err, context.Canceled) || len(a.left) != keys {
			t.Errorf("%v, %d left; want all", err, len(a.left))
		}
		if most, least := slices.Max(asked), slices.Min(asked); most > least+1 {
			t.Errorf("one is asked about %d times, another %d times", most, least)
		}
		slices.Sort(a.left)
		if n := len(slices.Compact(a.left)); n != keys {
			t.Errorf("%d keys are left, %d of them different", keys, n)
		}
	})
}

// Answers are recorded many at once, at the latest after half a second, and when
// nothing else is going on.
func TestRunRecordsManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := &asker[int]{ask: func(context.Context, int) (poll.Verdict, error) {
			time.Sleep(50 * time.Millisecond)
			return poll.Verdict{Done: true}, nil
		}}
		if err := poll.Run(t.Context(), without(count(1000)), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 10}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 5*time.Second || len(a.recorded) > 11 || len(a.recorded) < 5 {
			t.Errorf("1000 keys in %v, recorded in %d batches", d, len(a.recorded))
		}
	})
}

// When the command is stopped, questions under way are answered and recorded.
func TestRunRecordsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		a := &asker[int]{ask: func(ctx context.Context, k int) (poll.Verdict, error) {
			if k == 0 {
				cancel(enough)
			}
			time.Sleep(time.Second)
			return poll.Verdict{Done: true}, ctx.Err()
		}}
		err := poll.Run(ctx, without(count(10)), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 3, Hard: t.Context()})
		if !errors.Is(err, enough) || len(a.recorded) != 1 || len(a.left) != 10-len(a.recorded[0]) || len(a.left) == 10 {
			t.Errorf("%v: recorded %v, left %v; want what was under way recorded, and the rest left", err, a.recorded, a.left)
		}
	})
}

// An end that comes while answers are recorded leaves every other key all the same.
func TestRunLeavesTheRestWhateverEndedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough := errors.New("enough")
		var recorded int
		a := &asker[int]{ask: func(context.Context, int) (poll.Verdict, error) {
			time.Sleep(time.Second)
			return poll.Verdict{Done: true}, nil
		}}
		err := poll.Run(t.Context(), without(count(100)), poll.Steps[int, poll.Verdict](&endingAsker{a, enough, &recorded}), poll.Options{Workers: 3, Hard: t.Context()})
		if !errors.Is(err, enough) || len(a.left)+recorded != 100 || len(a.left) == 0 {
			t.Errorf("%v: %d recorded, %d left; want 100 in all", err, recorded, len(a.left))
		}
	})
}

// At each bound of what is held, every key is asked about until it is done, or is left once.
func TestRunLosesNoKeyAtItsBounds(t *testing.T) {
	for _, keys := range []int{255, 256, 257, 1023, 1024, 1025, 1281, 2500} {
		synctest.Test(t, func(t *testing.T) {
			asked := make([]int, keys)
			left, err := run(t.Context(), count(keys), poll.Options{Workers: 1, Pauses: pace.Backoff{First: time.Second, Max: time.Second}},
				func(_ context.Context, k int) (poll.Verdict, error) {
					asked[k]++
					return poll.Verdict{Done: asked[k] == 3, Retry: asked[k] == 1 && k%2 == 0}, nil
				})
			if err != nil || len(left) > 0 || slices.Min(asked) != 3 || slices.Max(asked) != 3 {
				t.Errorf("%d keys: %v, %d left, asked %d to %d times; want three times each", keys, err, len(left), slices.Min(asked), slices.Max(asked))
			}
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			left, err := run(ctx, count(keys), poll.Options{Workers: 1}, func(context.Context, int) (poll.Verdict, error) {
				cancel()
				return poll.Verdict{}, nil
			})
			slices.Sort(left)
			if !errors.Is(err, context.Canceled) || !slices.Equal(left, slices.Collect(count(keys))) {
				t.Errorf("%d keys: %v, %d left; want each once", keys, err, len(left))
			}
		})
	}
}

// What is answered while answers are recorded is bounded too, and waits without spinning.
func TestRunWaitsForASlowRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		a := &slowAsker{asker: &asker[int]{ask: func(context.Context, int) (poll.Verdict, error) {
			asked.Add(1)
			return poll.Verdict{Done: asked.Load() > 256, Retry: true}, nil
		}}, asked: &asked}
		err := poll.Run(t.Context(), without(count(2000)), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 1, Pauses: pace.Backoff{First: time.Second, Max: time.Second}})
		if want := []int32{256 + 512, 256 + 512 + 512}; err != nil || !slices.Equal(a.at[:2], want) {
			t.Errorf("%v: asked %v times when answers were recorded; want %v first", err, a.at, want)
		}
	})
}

// slowAsker records slowly.
type slowAsker struct {
	*asker[int]
	asked *atomic.Int32
	at    []int32 // how many were asked when each recording ended
}

func (a *slowAsker) Record(ctx context.Context, answers []poll.Answer[int, poll.Verdict]) ([]poll.Verdict, error) {
	time.Sleep(10 * time.Second)
	a.at = append(a.at, a.asked.Load())
	return a.asker.Record(ctx, answers)
}

// No more keys are read while many wait to be asked again.
func TestRunReadsNoMoreThanItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read, held atomic.Int32
		keys := func(yield func(int) bool) {
			for k := range 5000 {
				if read.Add(1); !yield(k) {
					return
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := &asker[int]{ask: func(context.Context, int) (poll.Verdict, error) {
			return poll.Verdict{Retry: true, NotBefore: time.Hour}, nil
		}}
		time.AfterFunc(50*time.Second, func() { held.Store(read.Load()) })
		err := poll.Run(ctx, without(keys), poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 1})
		const most = 1024 + 256 + 256 + 512 // what waits, is fresh, is loaded, and is to be recorded
		if !errors.Is(err, context.DeadlineExceeded) || held.Load() < 1024 || held.Load() > most || len(a.left) != 5000 {
			t.Errorf("%v: %d keys read, %d left; want 1024 to %d, and all", err, held.Load(), len(a.left), most)
		}
	})
}

// An error of the keys ends it, also after its end came.
func TestRunSaysThatKeysFailed(t *testing.T) {
	for _, at := range []int{0, 3, 3000} {
		synctest.Test(t, func(t *testing.T) {
			boom, enough := errors.New("boom"), errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			a := &asker[int]{ask: func(context.Context, int) (poll.Verdict, error) {
				cancel(enough)
				return poll.Verdict{}, nil
			}}
			err := poll.Run(ctx, func(yield func(int, error) bool) {
				for k := range at {
					if !yield(k, nil) {
						return
					}
				}
				yield(0, boom)
			}, poll.Steps[int, poll.Verdict](a), poll.Options{Workers: 1})
			if !errors.Is(err, boom) || errors.Is(err, enough) != (at == 3000) {
				t.Errorf("after %d keys: %v", at, err)
			}
		})
	}
}

// endingAsker ends everything with each answer that it records.
type endingAsker struct {
	*asker[int]
	err      error
	recorded *int
}

func (a *endingAsker) Ask(_ context.Context, k int) (poll.Verdict, error) {
	return a.asker.Ask(context.Background(), k) // an answer that has come is not lost
}

func (a *endingAsker) Record(_ context.Context, answers []poll.Answer[int, poll.Verdict]) ([]poll.Verdict, error) {
	*a.recorded += len(answers)
	done := make([]poll.Verdict, len(answers))
	for i := range done {
		done[i].Done = true
	}
	return done, a.err
}
