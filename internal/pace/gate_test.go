package pace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waybill-cli/waybill/internal/pace"
)

func enter(t *testing.T, g *pace.Gate) *pace.Pass {
	t.Helper()
	p, err := g.Enter(t.Context())
	if err != nil {
		t.Fatalf("Enter: %v", err)
	}
	return p
}

// grow answers well until n requests may be under way.
func grow(t *testing.T, g *pace.Gate, n int) {
	t.Helper()
	for i := 0; g.Window() < n; i++ {
		if i > n*n {
			t.Fatalf("window is %d after %d good answers; want %d", g.Window(), i, n)
		}
		enter(t, g).End(pace.Success, 0)
	}
}

// together enters n times, all under way at once.
func together(t *testing.T, g *pace.Gate, n int) []*pace.Pass {
	t.Helper()
	ps := make([]*pace.Pass, n)
	for i := range ps {
		ps[i] = enter(t, g)
	}
	return ps
}

func TestRateIsSpreadEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 10)
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 25 {
					p := enter(t, g)
					mu.Lock()
					at = append(at, time.Since(start))
					mu.Unlock()
					time.Sleep(rand.N(150 * time.Millisecond))
					p.End(pace.Success, 0)
				}
			})
		}
		wg.Wait()
		for i := 1; i < len(at); i++ {
			if gap := at[i] - at[i-1]; gap < 100*time.Millisecond {
				t.Fatalf("requests %d and %d are %v apart; want 100ms and more", i-1, i, gap)
			}
		}
		if want := 25 * time.Second; at[len(at)-1] > want {
			t.Errorf("200 requests at 10/s took %v; want about 20s", at[len(at)-1])
		}
	})
}

func TestRateGathersNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(4, 2)
		enter(t, g).End(pace.Success, 0)
		time.Sleep(time.Hour)
		start := time.Now()
		enter(t, g).End(pace.Success, 0)
		if d := time.Since(start); d != 0 {
			t.Errorf("the first after an hour waited %v; want no wait", d)
		}
		enter(t, g).End(pace.Success, 0)
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("the second after an hour came after %v; want 500ms", d)
		}
	})
}

func TestOddRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []float64{0, -1, 1e300} {
			g, start := pace.New(0, rate), time.Now()
			for range 1000 {
				enter(t, g).End(pace.Success, 0)
			}
			if d := time.Since(start); d != 0 || g.Window() != 1 {
				t.Errorf("rate %g: 1000 requests took %v with window %d; want no time and 1", rate, d, g.Window())
			}
		}
		g := pace.New(1, 1e-300)
		enter(t, g).End(pace.Success, 0)
		ctx, cancel := context.WithTimeout(t.Context(), 24*365*time.Hour)
		defer cancel()
		if _, err := g.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second request within a year at nearly no rate: %v", err)
		}
	})
}

func TestNumberOfTheUserIsUsedFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0).Begin(8)
		ps := together(t, g, 8)
		ps[0].End(pace.Throttled, time.Second)
		if w := g.Window(); w != 4 {
			t.Errorf("window after a pause is %d; want 4", w)
		}
		for _, p := range ps[1:] {
			p.Release()
		}
		enter(t, g).End(pace.Unconnected, 0)
		if w := g.Window(); w != 1 {
			t.Errorf("window without a connection is %d; want 1", w)
		}
	})
}

func TestWindowGrowsByOneARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(4, 0)
		var got []int
		for range 12 {
			got = append(got, g.Window())
			enter(t, g).End(pace.Success, 0)
		}
		want := []int{1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("windows %v; want %v", got, want)
			}
		}
	})
}

func TestWindowHoldsOthersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0)
		grow(t, g, 3)
		ps := together(t, g, 3)
		entered := false
		go func() {
			enter(t, g).Release()
			entered = true
		}()
		synctest.Wait()
		if entered {
			t.Fatal("a fourth is under way while the window is 3")
		}
		ps[1].Release()
		synctest.Wait()
		if !entered {
			t.Fatal("nobody took the free slot")
		}
	})
}

func TestTroubleHalvesOncePerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(16, 0)
		grow(t, g, 16)
		ps := together(t, g, 16)
		start := time.Now()
		for _, p := range ps {
			p.End(pace.Throttled, 3*time.Second)
			time.Sleep(10 * time.Millisecond)
		}
		if g.Window() != 8 {
			t.Errorf("window is %d after 16 answers to one burst; want 8", g.Window())
		}
		enter(t, g).End(pace.Throttled, 0)
		// The last of the sixteen came 150ms after the first, and its 3s reach
		// as much further.
		if d := time.Since(start); d != 3150*time.Millisecond {
			t.Errorf("the pause was %v; want 3.15s", d)
		}
		for _, want := range []int{4, 2, 1, 1} {
			if g.Window() != want {
				t.Errorf("window is %d; want %d", g.Window(), want)
			}
			enter(t, g).End(pace.Throttled, time.Second)
		}
	})
}

func TestPauseIsForEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0)
		grow(t, g, 8)
		ps := together(t, g, 8)
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				p := enter(t, g)
				if d := time.Since(start); d < 10*time.Second {
					t.Errorf("one entered after %v of a pause of 10s", d)
				}
				p.End(pace.Success, 0)
			})
		}
		ps[0].End(pace.Throttled, 10*time.Second)
		for i, p := range ps[1:] {
			time.Sleep(time.Second)
			p.End([]pace.Signal{pace.Success, pace.NoSignal, pace.Unconnected, pace.Throttled}[i%4], 0)
		}
		wg.Wait()
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("the last entered after %v; want 10s", d)
		}
	})
}

func TestAnswersFromBeforeAPauseDoNotLengthenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0)
		grow(t, g, 4)
		ps := together(t, g, 4)
		start := time.Now()
		ps[0].End(pace.Throttled, 5*time.Second)
		time.Sleep(4 * time.Second)
		ps[1].End(pace.Throttled, 0)
		ps[2].End(pace.Unconnected, 0)
		enter(t, g).Release()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("entered after %v; want 5s", d)
		}
		// Even when the pause is over.
		ps[3].End(pace.Throttled, 0)
		enter(t, g).Release()
		if d := time.Since(start); d != 5*time.Second || g.Window() != 2 {
			t.Errorf("entered after %v with window %d; want 5s and 2", d, g.Window())
		}
	})
}

func TestAnswersFromBeforeAPauseDoNotWidenTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0)
		grow(t, g, 4)
		ps := together(t, g, 4)
		ps[0].End(pace.Throttled, time.Second)
		for _, p := range ps[1:] {
			p.End(pace.Success, 0)
		}
		if g.Window() != 2 {
			t.Errorf("window is %d; want 2", g.Window())
		}
	})
}

func TestUnconnectedPausesGrow(t *testing.T) {
	most := []time.Duration{2 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second, 4 * time.Second}
	seen := map[time.Duration]bool{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			g := pace.New(8, 0)
			grow(t, g, 8)
			p := enter(t, g)
			for i, m := range most {
				start := time.Now()
				p.End(pace.Unconnected, 0)
				if g.Window() != 1 {
					t.Fatalf("window is %d; want 1", g.Window())
				}
				p = enter(t, g)
				d := time.Since(start)
				if d < time.Second || d > m {
					t.Errorf("pause %d was %v; want 1s to %v", i+1, d, m)
				}
				seen[d] = true
			}
			p.End(pace.Success, 0)
			start := time.Now()
			enter(t, g).End(pace.Unconnected, 0)
			enter(t, g).End(pace.Success, 0)
			if d := time.Since(start); d > most[0] {
				t.Errorf("the first pause after a good answer was %v; want up to %v", d, most[0])
			}
		})
	}
	if len(seen) < 300 {
		t.Errorf("%d lengths among 350 pauses; want them to differ by chance", len(seen))
	}
}

func TestTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(4, 0)
		want := func(at time.Time) {
			t.Helper()
			if got := g.FailingSince(); !got.Equal(at) {
				t.Errorf("trouble since %v; want %v", got, at)
			}
		}
		want(time.Time{})
		grow(t, g, 3)
		ps := together(t, g, 3)
		since := time.Now()
		ps[0].End(pace.Unconnected, 0)
		want(since)
		time.Sleep(time.Second)
		ps[1].End(pace.Throttled, 0)
		want(since)
		ps[2].End(pace.Success, 0) // it left before the pause, and yet it got through
		want(time.Time{})
		since = time.Now().Add(time.Hour)
		time.Sleep(time.Hour)
		enter(t, g).End(pace.Throttled, 0)
		enter(t, g).Release()
		want(since)
		enter(t, g).End(pace.Success, 0)
		want(time.Time{})
	})
}

func TestPassEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(1, 0)
		p := enter(t, g)
		p.End(pace.Success, 0)
		p.End(pace.Success, 0)
		p.End(pace.Unconnected, 0)
		p.End(pace.Throttled, time.Hour)
		p.Release()
		if !g.FailingSince().IsZero() {
			t.Error("a second end was counted")
		}
		start := time.Now()
		enter(t, g)
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v after a second end; want no wait", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second slot came free: %v", err)
		}
	})
}

func TestEndedContext(t *testing.T) {
	cause := errors.New("enough")
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(1, 1)
		over, stop := context.WithCancelCause(t.Context())
		stop(cause)
		if _, err := g.Enter(over); !errors.Is(err, cause) {
			t.Errorf("Enter with an ended context: %v; want its cause", err)
		}
		p := enter(t, g) // the ended one took neither slot nor rate
		ctx, stop := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := g.Enter(ctx); !errors.Is(err, cause) {
					t.Errorf("Enter: %v; want the cause", err)
				}
			})
		}
		synctest.Wait()
		var after *pace.Pass
		wg.Go(func() { after = enter(t, g) })
		synctest.Wait()
		stop(cause)
		synctest.Wait()
		if after != nil {
			t.Error("the slot was given while it was taken")
		}
		p.End(pace.Throttled, time.Minute)
		wg.Wait() // in the end the sixth enters, for nobody stands before it any more
		after.End(pace.Success, 0)
	})
}

func TestEndedWhilePausing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(2, 0)
		enter(t, g).End(pace.Throttled, time.Hour)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("Enter returned %v after %v; want the deadline after 1m", err, time.Since(start))
		}
		enter(t, g).End(pace.Success, 0)
		if d := time.Since(start); d != time.Hour {
			t.Errorf("entered after %v; want 1h", d)
		}
	})
}

func TestNobodyStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, rounds = 10, 30
		g := pace.New(3, 0)
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for range rounds {
					p := enter(t, g)
					mu.Lock()
					order = append(order, w)
					mu.Unlock()
					time.Sleep(time.Second)
					p.End(pace.Success, 0)
				}
			})
		}
		wg.Wait()
		last := map[int]int{}
		for i, w := range order {
			if before, ok := last[w]; ok && i-before > 2*workers {
				t.Fatalf("worker %d waited while %d others entered", w, i-before)
			}
			last[w] = i
		}
	})
}

// With everything at once, never more are under way than the ceiling allows.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 6
		g := pace.New(workers, 50)
		var mu sync.Mutex
		busy, most := 0, 0
		count := func(d int) {
			mu.Lock()
			defer mu.Unlock()
			busy += d
			most = max(most, busy)
		}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				for range 100 {
					ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Second))
					p, err := g.Enter(ctx)
					cancel()
					if err != nil {
						continue
					}
					count(1)
					time.Sleep(rand.N(200 * time.Millisecond))
					count(-1)
					switch rand.N(40) {
					case 0:
						p.End(pace.Throttled, rand.N(3*time.Second))
					case 1:
						p.End(pace.Unconnected, 0)
					case 2:
						p.Release()
					default:
						p.End(pace.Success, 0)
					}
				}
			})
		}
		wg.Wait()
		if most < 2 || most > workers {
			t.Errorf("at most %d were under way at once; want 2 to %d", most, workers)
		}
		ps := together(t, g, g.Window()) // every slot came back
		for _, p := range ps {
			p.Release()
		}
	})
}

func TestWidened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0).Widen()
		for i, p := range together(t, g, 8) {
			p.End(pace.Unconnected, 0)
			if g.Window() != 2 {
				t.Errorf("window is %d after %d without a connection; want 2", g.Window(), i+1)
			}
		}
		enter(t, g).End(pace.Throttled, 0)
		together(t, g, 2)
		if w := pace.New(1, 0).Widen().Window(); w != 1 {
			t.Errorf("window of one worker is %d", w)
		}
	})
}

func TestEnterAllTakesWhatIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := pace.New(8, 0).Begin(8)
		held := together(t, g, 3)
		all, err := g.EnterAll(t.Context())
		if err != nil || len(all) != 5 {
			t.Fatalf("%d passes of 5, %v", len(all), err)
		}
		held[0].Release()
		if all, err = g.EnterAll(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d passes of 1, %v", len(all), err)
		}
		held[1].End(pace.Throttled, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if all, err = g.EnterAll(ctx); err == nil {
			t.Errorf("%d passes in a pause", len(all))
		}
		g = pace.New(8, 10).Begin(8)
		if all, err = g.EnterAll(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d passes at once at 10/s, %v", len(all), err)
		}
	})
}
