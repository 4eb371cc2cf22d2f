package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/term"
)

// Quoted returns foreign text in quotes, with invisible characters escaped.
func Quoted(s string) string {
	return `"` + strings.ReplaceAll(term.Visible(s), `"`, `\"`) + `"`
}

// Texts returns the results of text for 0 to n-1.
func Texts(n int, text func(i int) string) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = text(i)
	}
	return texts
}

// NonZero returns a number without separators, or "" for 0.
func NonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// Plural returns n with its noun, such as "2,000 rows" or "2 deliveries".
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		return Number(int64(n)) + " " + stem + "ries"
	}
	return Number(int64(n)) + " " + noun + "s"
}

// Number returns a count with thousands separated by commas.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ElapsedSeconds returns the seconds since a moment, to the millisecond.
func ElapsedSeconds(since time.Time) float64 { return float64(time.Since(since).Milliseconds()) / 1000 }

// ShortDuration formats a duration, rounded to a second, or to 10 seconds from one minute.
func ShortDuration(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute / 6).String()
}

// Stopwatch formats a duration, truncated to a second, or to a minute from one hour.
func Stopwatch(d time.Duration) string {
	if d < time.Hour {
		return d.Truncate(time.Second).String()
	}
	return strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s")
}

// roughly formats an estimated duration in its largest unit, rounded up.
func roughly(d time.Duration) string {
	for _, u := range []struct {
		below, unit time.Duration
		name        string
	}{
		{time.Minute, time.Second, "s"},
		{time.Hour, time.Minute, "m"},
		{48 * time.Hour, time.Hour, "h"},
		{math.MaxInt64, 24 * time.Hour, " days"},
	} {
		if d <= u.below-u.unit {
			return fmt.Sprintf("%d%s", (d+u.unit-1)/u.unit, u.name)
		}
	}
	return ""
}

const (
	timeHint  = "such as 2026-11-20, yesterday, monday, 2026-11-20T08:00:00Z or 48h"
	rangeHint = "such as 7d, yesterday, 2026-11-20, 2026-11-01..2026-11-07 or ..30d"
)

// ParseSince parses a point in time: RFC 3339, an age, or the start of a day in the local time zone. A day is a date,
// today, yesterday, or a weekday, which means its latest occurrence up to today.
func ParseSince(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	span, err := parseTime(flag, s, time.Now(), timeHint)
	return span.Since, err
}

// ParseRange parses a time range. A day means that whole day; an age or a point in time means the time since then. A..B
// is the time from A to B, including B if it is a day. A or B may be empty.
func ParseRange(flag, s string) (ledger.Range, error) {
	return parseRange(flag, s, time.Now())
}

func parseRange(flag, s string, now time.Time) (r ledger.Range, err error) {
	from, to, both := strings.Cut(s, "..")
	switch {
	case s == "":
		return r, nil
	case !both:
		return parseTime(flag, s, now, rangeHint)
	case from == "" && to == "":
		return r, Usagef(rangeHint, "%s %q has neither beginning nor end", flag, s)
	}
	if from != "" {
		if r, err = parseTime(flag, from, now, rangeHint); err != nil {
			return r, err
		}
		r.Until = time.Time{}
	}
	if to == "" {
		return r, nil
	}
	end, err := parseTime(flag, to, now, rangeHint)
	if err != nil {
		return r, err
	}
	if r.Until = end.Until; end.Until.IsZero() {
		r.Until = end.Since
	}
	switch {
	case r.Since.Before(r.Until):
		return r, nil
	case from == to:
		return r, Usagef("use "+from+".. for the time since then", "%s %q begins where it ends", flag, s)
	}
	return r, Usagef("use "+to+".."+from, "%s %q ends before it begins", flag, s)
}

func parseTime(flag, s string, now time.Time, hint string) (ledger.Range, error) {
	since := func(t time.Time) (ledger.Range, error) {
		return ledger.Range{Since: t.Truncate(time.Millisecond)}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return since(t)
	}
	day, err := time.ParseInLocation(time.DateOnly, s, time.Local)
	if ago, ok := daysAgo(strings.ToLower(s), now.Local().Weekday()); ok {
		year, month, date := now.Local().Date()
		day, err = time.Date(year, month, date-ago, 0, 0, 0, 0, time.Local), nil
	}
	if err == nil {
		return ledger.Range{Since: day, Until: day.AddDate(0, 0, 1)}, nil
	}
	age, err := parseAge(strings.TrimPrefix(s, "-"))
	switch {
	case err == nil && s[0] != '-':
		return since(now.Add(-age))
	case err == nil:
		return ledger.Range{}, Usagef(hint, "%s %q is negative", flag, s)
	case errors.Is(err, config.ErrTooLong):
		return ledger.Range{}, Usagef(hint, "%s %q is too long", flag, s)
	}
	return ledger.Range{}, Usagef(hint, "%s %q is not a time or an age", flag, s)
}

func daysAgo(word string, today time.Weekday) (days int, ok bool) {
	switch word {
	case "today":
		return 0, true
	case "yesterday":
		return 1, true
	}
	for day := time.Sunday; day <= time.Saturday; day++ {
		if word == strings.ToLower(day.String()) {
			return int(today-day+7) % 7, true
		}
	}
	return 0, false
}

// parseAge parses a duration, also in words such as "3 days".
func parseAge(s string) (time.Duration, error) {
	if number, unit, ok := strings.Cut(s, " "); ok {
		switch unit = strings.TrimSuffix(strings.ToLower(unit), "s"); unit {
		case "second", "minute", "hour", "day":
			s = number + unit[:1]
		}
	}
	return config.ParseDuration(s)
}

// Confirm asks the user before something irreversible. Without a terminal it returns an error that names --yes.
func Confirm(ctx context.Context, c *Call, verb, refused, question string) error {
	if !c.IO.Interactive() {
		return Usagef("add --yes to "+verb+" without a question", "%s", refused)
	}
	yes, err := c.IO.Confirm(ctx, "%s", question)
	if err == nil && !yes {
		err = Usagef("", "nothing was %sd", verb)
	}
	return err
}
