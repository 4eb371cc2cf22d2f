package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/term"
)

// Quoted shows foreign text between quotes, every character in it visible.
func Quoted(s string) string {
	return `"` + strings.ReplaceAll(term.Visible(s), `"`, `\"`) + `"`
}

// Plural returns n and its noun, such as 2 rows or 2 deliveries.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return fmt.Sprintf("%d %sries", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ElapsedSeconds returns the time since a moment, to the millisecond.
func ElapsedSeconds(since time.Time) float64 { return float64(time.Since(since).Milliseconds()) / 1000 }

// ShortDuration shows a duration to the second, from a minute on to 10 seconds.
func ShortDuration(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute / 6).String()
}
