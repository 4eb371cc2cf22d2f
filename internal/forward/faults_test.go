package forward_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/forward"
)

// pairs are the indexes and copies of a plan, sorted.
func pairs(steps []forward.Sending) [][2]int {
	var all [][2]int
	for _, s := range steps {
		all = append(all, [2]int{s.Index, s.Copy})
	}
	slices.SortFunc(all, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return all
}

func TestPlanWithoutFaults(t *testing.T) {
	got, dropped := forward.Faults{Seed: 9}.Plan(3)
	if diff := cmp.Diff([]forward.Sending{{Index: 0}, {Index: 1}, {Index: 2}}, got); diff != "" || dropped != 0 {
		t.Errorf("%d dropped, plan (-want +got):\n%s", dropped, diff)
	}
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	f := forward.Faults{Duplicate: 2, Reorder: true, Drop: 0.3, Delay: time.Second, Seed: 4}
	one, dropped := f.Plan(100)
	two, again := f.Plan(100)
	if diff := cmp.Diff(one, two); diff != "" || dropped != again {
		t.Errorf("twice the same seed differ:\n%s", diff)
	}
	if dropped+len(one) != 300 || math.Abs(float64(dropped)-90) > 50 {
		t.Errorf("%d dropped and %d left of 300", dropped, len(one))
	}
	f.Seed = 5
	if other, _ := f.Plan(100); cmp.Equal(one, other) {
		t.Error("another seed plans the same")
	}
}

func TestFaultsDoNotChangeEachOther(t *testing.T) {
	plain, _ := forward.Faults{Duplicate: 1, Drop: 0.5, Seed: 4}.Plan(200)
	all, _ := forward.Faults{Duplicate: 1, Drop: 0.5, Delay: time.Minute, Reorder: true, Corrupt: true, Seed: 4}.Plan(200)
	if diff := cmp.Diff(pairs(plain), pairs(all)); diff != "" {
		t.Errorf("other sendings are dropped:\n%s", diff)
	}
	if cmp.Equal(plain, all) {
		t.Error("not reordered")
	}
	var longest time.Duration
	for _, s := range all {
		if s.Wait < 0 || s.Wait > time.Minute {
			t.Errorf("wait of %v", s.Wait)
		}
		longest = max(longest, s.Wait)
	}
	if longest < 30*time.Second {
		t.Errorf("never longer than %v", longest)
	}
}

func TestALongerPlanBeginsAlike(t *testing.T) {
	f := forward.Faults{Duplicate: 1, Drop: 0.5, Delay: time.Minute, Seed: 4}
	short, _ := f.Plan(50)
	long, _ := f.Plan(80)
	if diff := cmp.Diff(short, long[:len(short)]); diff != "" {
		t.Errorf("(-short +long):\n%s", diff)
	}
}

func TestDropAllOrNone(t *testing.T) {
	for drop, want := range map[float64]int{0: 0, 1: 1000} {
		if steps, dropped := (forward.Faults{Drop: drop, Seed: 1}).Plan(1000); dropped != want || len(steps) != 1000-want {
			t.Errorf("drop %v: %d dropped, %d left", drop, dropped, len(steps))
		}
	}
}

func TestPick(t *testing.T) {
	seen := map[int]bool{}
	for i := range 100 {
		f, s := forward.Faults{Seed: 3}, forward.Sending{Index: i}
		n := f.Pick(s)(16)
		if n < 0 || n > 15 || n != f.Pick(s)(16) {
			t.Fatalf("sending %d: %d", i, n)
		}
		seen[n] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d of 16 chosen", len(seen))
	}
}

func TestStatuses(t *testing.T) {
	s, err := forward.ParseStatuses("2XX, 401")
	if err != nil || s.String() != "2xx,401" {
		t.Errorf("%v, %v", s, err)
	}
	for status, want := range map[int]bool{200: true, 299: true, 300: false, 401: true, 400: false, 2: false, 0: false, 2000: false} {
		if got := s.Match(status); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
	for _, text := range []string{"", "2x", "xxx", "600", "099", "20x", "2xx,", "ok", "+20"} {
		if s, err := forward.ParseStatuses(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}
