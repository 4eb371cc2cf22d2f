package create

import (
	"fmt"
	"testing"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Rows of one tracking with two carrier codes are suspected, wherever they stand
// and however many there are; others are not.
func TestContradictionsAreSuspected(t *testing.T) {
	item := func(i int, carrier string) tracking.Item {
		return tracking.Item{ReferID: fmt.Sprint("R", i), Number: fmt.Sprint("N", i%7), CarrierCode: carrier}
	}
	const many = 300_000 // more than are held in memory
	for name, c := range map[string]struct {
		rows  int
		other map[int]tracking.Item // in place of the row there
		want  bool
	}{
		"none":                         {rows: 0},
		"all differ":                   {rows: 1000},
		"repeats":                      {rows: 1000, other: map[int]tracking.Item{500: item(3, "c0"), 900: item(500, "c2")}},
		"another number":               {rows: 1000, other: map[int]tracking.Item{500: {ReferID: "R3", Number: "N4", CarrierCode: "x"}}},
		"a contradiction":              {rows: 1000, other: map[int]tracking.Item{500: item(3, "c1")}, want: true},
		"the last of few":              {rows: 2, other: map[int]tracking.Item{1: item(0, "")}, want: true},
		"many":                         {rows: many},
		"a contradiction far away":     {rows: many, other: map[int]tracking.Item{many - 1: item(0, "c1")}, want: true},
		"a contradiction in the midst": {rows: many, other: map[int]tracking.Item{150_000: item(149_000, "x")}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSuspicion()
			defer s.close()
			for i := range c.rows {
				it, ok := c.other[i]
				if !ok {
					it = item(i, fmt.Sprint("c", i%3))
				}
				if err := s.add(it); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := s.founded(); got != c.want || err != nil {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}
