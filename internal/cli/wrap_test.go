package cli

import (
	"strings"
	"testing"
)

// An item of a list that is too wide is filled anew to its end.
func TestItemsAreFilledAnew(t *testing.T) {
	text := "  one  A row is sent again when it is time\n       only if so and\n       so.\n  two  Short.\n  x    y\n\n  waybill runs rows 3 -o\n  waybill list\n"
	want := "  one  A row is sent again when it is\n       time only if so and so.\n  two  Short.\n  x    y\n\n"
	if got := wrapText(text, 40); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
