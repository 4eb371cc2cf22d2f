package main_test

import (
	"bytes"
	"testing"
)

// An answer that names the rows it did not take is believed row by row. They
// are rejected in the service's own words, in both operations.
func TestTortureNamedRows(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"--batch-size", "20"}, {"--sync"}} {
		t.Run(flags[0], func(t *testing.T) {
			n := either(100, 2000)
			w := newWorld(t, "--processing", "0s", "--create-shape", "items", "--reject", "^94001.*5.$")
			rows := append(pairs(n, parcels), w.control())
			args := append([]string{orders(t, w.home, n, parcels), "--max-rejects", "1000"}, flags...)
			if code, r := w.create(args[0], args[1:]...); code != 6 || r.Accepted != n-n/10 || r.Rejected != n/10 {
				t.Errorf("ended with %d: %+v; want 6 and %d rejected", code, r, n/10)
			}
			w.whole(rows, n/10)
			_, stdout, _ := w.run("list", "-o", "jsonl")
			if said := bytes.Count(stdout, []byte(`"reason":"this tracking is not accepted"`)); said != n/10 {
				t.Errorf("the service's words stand at %d rows; want %d", said, n/10)
			}
		})
	}
}
