package term

import "github.com/clipperhouse/displaywidth"

// DisplayWidth returns how many columns of a terminal s takes. It is meant for
// text that is visible: see [Visible].
func DisplayWidth(s string) int { return displaywidth.String(s) }

// Truncate returns s if it takes at most width columns, else as much of its
// start as leaves room for a closing `…`. It never splits what a reader takes
// for one character. For a width below 1 it is empty.
func Truncate(s string, width int) string {
	if width < 1 {
		return ""
	}
	return displaywidth.TruncateString(s, width, "…")
}
