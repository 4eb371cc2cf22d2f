package main_test

import (
	"fmt"
	"testing"
)

// Answers that lie about what became of a batch. Whatever they say, no row is
// called accepted that the service lacks, and in the end it has each once.
func TestTortureLies(t *testing.T) {
	t.Parallel()
	for _, lie := range []string{"cut-after", "502-after", "truncate", "stall", "html", "error-envelope", "404-all", "redirect"} {
		t.Run(lie, func(t *testing.T) { lieAboutBatches(t, lie) })
	}
}

func lieAboutBatches(t *testing.T, lie string) {
	const size = 10
	batches := either(3, 100)
	w := newWorld(t, "--processing", "0s")
	rows := append(pairs(size*batches, parcels), w.control())
	w.fault(lie, "createV2", batches)
	args := []string{
		"create", orders(t, w.home, size*batches, parcels), "-o", "json", "--settle", "0s",
		"--request-timeout", "500ms", "--batch-size", fmt.Sprint(size), "--concurrency", "4",
	}
	for tries := 0; ; tries++ {
		_, said, done := w.again(args...)
		if b := w.audit(rows); t.Failed() || tries > 3*batches {
			t.Fatalf("after %d tries: %+v\nstderr: %s", tries, b, said)
		}
		if done {
			break
		}
	}
	w.whole(rows, 0)
	if asked := w.stats("?rows=0").Requests["createV2"]; asked-1 < batches {
		t.Errorf("%d creates after the control row; %d were to be lied about", asked-1, batches)
	}
}

// A service that says the same of everything, also of what it has, proves
// nothing: what is unknown stays unknown, and nothing is sent again.
func TestTortureSameAnswerToAll(t *testing.T) {
	t.Parallel()
	for _, lie := range []string{"404-all", "html", "error-envelope", "redirect", "truncate"} {
		t.Run(lie, func(t *testing.T) {
			n := either(20, 1000)
			w := newWorld(t, "--processing", "0s")
			rows := append(pairs(n, parcels), w.control())
			args := []string{"create", orders(t, w.home, n, parcels), "-o", "json", "--settle", "0s", "--skip-proof", "--timeout", "1s"}
			w.fault("502-after", "createV2", 1)
			w.chance(1, lie)
			for i := range either(2, 5) {
				code, r := w.create(args[1], args[4:]...)
				if code != 7 || r.Unknown != n {
					t.Errorf("try %d: ended with %d: %+v; want 7 and %d unknown", i, code, r, n)
				}
			}
			if s := w.stats("?rows=0"); s.Created != n+1 || s.Requests["createV2"] != 2 {
				t.Errorf("%d rows created by %d calls; want %d by 2", s.Created, s.Requests["createV2"], n+1)
			}
			w.chance(0, lie)
			w.finish(3, args...)
			w.whole(rows, 0)
		})
	}
}
