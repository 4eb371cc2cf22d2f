package intake_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// tornHeaders are layouts of exports; %s is the delimiter.
var tornHeaders = [][]string{
	{"referId", "rawTrackingNumber"},
	{"referId", "street", "rawTrackingNumber", "note"},
	{"name", "referId", "street", "city", "rawTrackingNumber", "carrierCode"},
	{"rawTrackingNumber", "name", "referId", "note", "note 2"},
	{"referId", "rawTrackingNumber", "carrierCode", "name", "street", "city"},
	{"referId", "name", "rawTrackingNumber", "street", "carrierCode", "note"},
	{"street", "referId", "rawTrackingNumber"},
}

// tear damages the separators of one row, given as its cells.
type tear struct {
	name string
	row  func(r *rand.Rand, cells []string, delim string) string
}

// split puts a delimiter into a cell, as text that should stand in quotes.
func split(r *rand.Rand, cells []string, delim string) []string {
	cells = slices.Clone(cells)
	at := r.IntN(len(cells))
	for range cells {
		if left, right, ok := strings.Cut(cells[at], " "); ok {
			return slices.Replace(cells, at, at+1, left, strings.Repeat(" ", r.IntN(2))+right)
		}
		at = (at + 1) % len(cells)
	}
	return cells
}

// fuse takes out the delimiter between two cells.
func fuse(r *rand.Rand, cells []string) []string {
	at := r.IntN(len(cells) - 1)
	return slices.Replace(slices.Clone(cells), at, at+2, cells[at]+cells[at+1])
}

var tears = []tear{
	{"whole", func(_ *rand.Rand, cells []string, delim string) string { return strings.Join(cells, delim) }},
	{"split", func(r *rand.Rand, cells []string, delim string) string {
		return strings.Join(split(r, cells, delim), delim)
	}},
	{"split, last empty", func(r *rand.Rand, cells []string, delim string) string {
		cells = split(r, cells, delim)
		cells[len(cells)-1] = ""
		return strings.Join(cells, delim)
	}},
	{"split twice", func(r *rand.Rand, cells []string, delim string) string {
		return strings.Join(split(r, split(r, cells, delim), delim), delim)
	}},
	{"fused", func(r *rand.Rand, cells []string, delim string) string { return strings.Join(fuse(r, cells), delim) }},
	{"short", func(r *rand.Rand, cells []string, delim string) string {
		return strings.Join(cells[:1+r.IntN(len(cells)-1)], delim)
	}},
	{"long", func(r *rand.Rand, cells []string, delim string) string {
		return strings.Join(cells, delim) + strings.Repeat(delim, 1+r.IntN(3))
	}},
	{"other delimiter", func(r *rand.Rand, cells []string, delim string) string {
		at := 1 + r.IntN(len(cells)-1)
		return strings.Join(cells[:at], delim) + "|" + strings.Join(cells[at:], delim)
	}},
	{"line end inside", func(r *rand.Rand, cells []string, delim string) string {
		row := strings.Join(cells, delim)
		at := 1 + r.IntN(len(row)-1)
		return row[:at] + "\n" + row[at:]
	}},
	{"quote opened", func(r *rand.Rand, cells []string, delim string) string {
		cells = slices.Clone(cells)
		at := r.IntN(len(cells))
		cells[at] = `"` + cells[at]
		return strings.Join(cells, delim)
	}},
	// A referId or carrier code that moves while the number stays in its place
	// can't be told from any other.
	{"split and fused behind it", func(r *rand.Rand, cells []string, delim string) string {
		at := slices.IndexFunc(cells, func(s string) bool { return strings.Contains(s, " ") })
		behind := cells[at+1:]
		if at < 0 || len(behind) < 2 || !slices.ContainsFunc(behind, tracking.LikeNumber) || slices.ContainsFunc(behind, func(s string) bool { return strings.HasPrefix(s, "ORD-") }) {
			return strings.Join(cells, delim)
		}
		left, right, _ := strings.Cut(cells[at], " ")
		last := len(cells) - 1
		out := append(slices.Clone(cells[:at]), left, right)
		out = append(out, cells[at+1:last-1]...)
		return strings.Join(append(out, cells[last-1]+cells[last]), delim)
	}},
}

// tornCells returns one row, and what is right to send of it.
func tornCells(r *rand.Rand, header []string, n int) ([]string, tracking.Item) {
	numbers := []string{
		fmt.Sprintf("1Z999AA1%010d", r.IntN(1e9)), fmt.Sprintf("94001118992231974%05d", 1+r.IntN(9e4)*10),
		fmt.Sprintf("RR%09dCN", r.IntN(1e9)), fmt.Sprintf("JJD0003900%08d", r.IntN(1e8)),
	}
	it := tracking.Item{ReferID: fmt.Sprintf("ORD-%06d", n), Number: numbers[r.IntN(len(numbers))]}
	cells := make([]string, len(header))
	for i, name := range header {
		switch name {
		case "referId":
			cells[i] = it.ReferID
		case "rawTrackingNumber":
			cells[i] = it.Number
		case "carrierCode":
			it.CarrierCode = []string{"", "ups", "dhl"}[r.IntN(3)]
			cells[i] = it.CarrierCode
		case "name":
			cells[i] = []string{"Pat O'Brien", "Müller & Söhne GmbH", "", "李雷"}[r.IntN(4)]
		case "street":
			cells[i] = []string{"Main St 5", "Main St 5 10115", "Rue 12 bis 75001", "Berlin 10115 5"}[r.IntN(4)]
		case "city":
			cells[i] = []string{"Berlin", "New York", "10115 Berlin", ""}[r.IntN(4)]
		default:
			cells[i] = []string{"", "", "fragile glass", "2 of 3"}[r.IntN(4)]
		}
	}
	return cells, it
}

// In files whose separators are damaged, no row is good with other identifiers
// or another carrier code than were written.
func TestTornRowsAreNeverGood(t *testing.T) {
	const files, rowsPerFile = 20, 25
	r := rand.New(rand.NewPCG(27, 2026)) // the same corpus each time
	rows, good, refused := 0, 0, 0
	check := func(name, text string, truth map[tracking.Item]bool) {
		in, err := intake.Open("torn.csv", strings.NewReader(text), intake.Options{})
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		for {
			rec, err := in.Next()
			if err != nil {
				if syntax := (*intake.FileError)(nil); !errors.Is(err, io.EOF) && !errors.As(err, &syntax) {
					t.Fatalf("%s: %v\n%s", name, err, text)
				}
				return
			}
			switch {
			case !rec.Good():
				refused++
			case !truth[rec.Item]:
				t.Errorf("%s: line %d is good as %q:\n%s", name, rec.Line, rec.Item, text)
			default:
				good++
			}
		}
	}
	for _, header := range tornHeaders {
		for _, delim := range []string{",", ";", "\t"} {
			for _, only := range append(tears, tear{name: "mixed"}) {
				for file := range files {
					var b strings.Builder
					b.WriteString(strings.Join(header, delim) + "\n")
					truth := map[tracking.Item]bool{}
					for n := range rowsPerFile {
						cells, it := tornCells(r, header, file*rowsPerFile+n)
						truth[it] = true
						torn := only
						if torn.row == nil {
							torn = tears[r.IntN(len(tears))]
						}
						b.WriteString(torn.row(r, cells, delim) + "\n")
						rows++
					}
					text := b.String()
					if file%2 == 0 {
						text = text[:len(text)-1]
					}
					check(fmt.Sprintf("%v by %q, %s", header, delim, only.name), text, truth)
				}
			}
		}
	}
	t.Logf("%d rows: %d good, %d refused", rows, good, refused)
	if good < rows/12 || refused < rows/4 {
		t.Errorf("%d rows: %d good, %d refused; the corpus proves nothing", rows, good, refused)
	}
}
