package forward_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/forward"
)

func TestPlanWithoutFaults(t *testing.T) {
	got := forward.Faults{Seed: 9}.Plan(3)
	if diff := cmp.Diff([]forward.Sending{{Index: 0}, {Index: 1}, {Index: 2}}, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	f := forward.Faults{Duplicate: 2, Reorder: true, Seed: 4}
	one := f.Plan(100)
	if diff := cmp.Diff(one, f.Plan(100)); diff != "" || len(one) != 300 {
		t.Errorf("%d sendings of 300; twice the same seed differ:\n%s", len(one), diff)
	}
	f.Seed = 5
	if cmp.Equal(one, f.Plan(100)) {
		t.Error("another seed plans the same")
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
