package command

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/term"
)

// Quoted shows foreign text between quotes, every character in it visible.
func Quoted(s string) string {
	return `"` + strings.ReplaceAll(term.Visible(s), `"`, `\"`) + `"`
}

// Plural returns n and its noun, such as 2,000 rows or 2 deliveries.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return Number(int64(n)) + " " + stem + "ries"
	}
	return Number(int64(n)) + " " + noun + "s"
}

// Number returns a count with commas between thousands.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
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

// Stopwatch shows a duration to the second, from an hour on to the minute.
func Stopwatch(d time.Duration) string {
	if d < time.Hour {
		return d.Truncate(time.Second).String()
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// roughly shows a duration that is an estimate, in its largest unit, rounded up.
func roughly(d time.Duration) string {
	for _, u := range []struct {
		below, unit time.Duration
		name        string
	}{{time.Minute, time.Second, "s"}, {time.Hour, time.Minute, "m"}, {48 * time.Hour, time.Hour, "h"}, {math.MaxInt64, 24 * time.Hour, " days"}} {
		if d <= u.below-u.unit {
			return fmt.Sprintf("%d%s", (d+u.unit-1)/u.unit, u.name)
		}
	}
	return ""
}
