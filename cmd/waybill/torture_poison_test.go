package main_test

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Seven bad rows in a batch of a thousand: those seven are rejected, each with
// what the service said, the others are accepted, and it takes few calls. What
// is mended and read in again is accepted then.
func TestTorturePoison(t *testing.T) {
	t.Parallel()
	for i := range either(1, 30) {
		t.Run(fmt.Sprint(i), poison)
	}
}

func poison(t *testing.T) {
	const n, bad, calls = 1000, 7, 160
	random := dice(t)
	rows := pairs(n, parcels)
	spots := random.Perm(n)[:bad]
	if random.IntN(3) == 0 { // side by side
		first := spots[0] / 2
		for i := range spots {
			spots[i] = first + i
		}
	}
	for _, i := range spots {
		rows[i].number = fmt.Sprintf("BAD%013d", i)
	}
	w := newWorld(t, "--processing", "0s", "--reject", "^BAD")
	file := rowsFile(t, w.home, "poison.csv", rows)
	code, r := w.create(file, "--settle", "0s")
	if code != 6 || r.Accepted != n-bad || r.Rejected != bad {
		t.Errorf("ended with %d: %+v; want 6, %d accepted and %d rejected", code, r, n-bad, bad)
	}
	if asked := w.stats("?rows=0").Requests["createV2"]; asked > calls {
		t.Errorf("it took %d calls; %d are the most", asked, calls)
	}
	w.whole(rows, bad)

	code, stdout, stderr := w.run("runs", "rows", r.Run, "--status", "rejected", "-o", "csv")
	if code != 0 {
		t.Fatalf("runs rows ended with %d: %s", code, stderr)
	}
	records, err := csv.NewReader(strings.NewReader(string(stdout))).ReadAll()
	if err != nil || len(records) != bad+1 {
		t.Fatalf("%d records, %v; want a header and %d rows:\n%s", len(records), err, bad, stdout)
	}
	for _, i := range spots {
		words := fmt.Sprintf("%q is not accepted", rows[i].number)
		if !slices.ContainsFunc(records, func(r []string) bool {
			text := strings.Join(r, " ")
			return strings.Contains(text, rows[i].refer) && strings.Contains(text, words)
		}) {
			t.Errorf("no record says of %s that %s:\n%s", rows[i].refer, words, stdout)
		}
	}
	// The same command again sends none of them.
	before := w.stats("?rows=0")
	if code, r := w.create(file); code != 6 || r.Rejected != bad {
		t.Errorf("again, it ended with %d: %+v", code, r)
	}
	if after := w.stats("?rows=0"); after.Requests["createV2"] != before.Requests["createV2"] {
		t.Error("rejected rows were sent again")
	}
	mend(t, w, records, rows)
}

// mend writes good numbers into the rejected rows and reads the file in again.
func mend(t *testing.T, w *world, records [][]string, rows []pair) {
	t.Helper()
	column := slices.Index(records[0], "rawTrackingNumber")
	if column < 0 {
		t.Fatalf("no column rawTrackingNumber: %q", records[0])
	}
	var b strings.Builder
	out := csv.NewWriter(&b)
	for i, r := range records {
		if i > 0 {
			r[column] = strings.Replace(r[column], "BAD", "GOOD", 1)
		}
		if err := out.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	out.Flush()
	file := writeFile(t, w.home, "mended.csv", b.String())
	if code, r := w.create(file); code != 0 || r.Accepted != len(records)-1 {
		t.Errorf("mended, it ended with %d: %+v", code, r)
	}
	all := slices.Clone(rows)
	for _, p := range rows {
		if good, ok := strings.CutPrefix(p.number, "BAD"); ok {
			all = append(all, pair{p.refer, "GOOD" + good})
		}
	}
	w.whole(all, len(records)-1)
}
