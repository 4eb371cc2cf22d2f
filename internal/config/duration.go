package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type unit struct {
	name   string
	length time.Duration
}

// units returns every unit, longest first; a day is always 24 hours.
func units() []unit {
	return []unit{
		{"d", 24 * time.Hour},
		{"h", time.Hour},
		{"m", time.Minute},
		{"s", time.Second},
		{"ms", time.Millisecond},
	}
}

// durationPart is a number and the unit behind it.
var durationPart = regexp.MustCompile(`^([0-9.]*)([^0-9.]*)`)

// ParseDuration reads a duration such as 30s, 2m, 1h30m, 1.5h or 7d. The units
// are ms, s, m, h and d, a day being 24 hours. A number without a unit, zero
// included, a sign, and anything past 290 years are refused.
func ParseDuration(s string) (time.Duration, error) {
	if s == "" {
		return 0, errors.New("empty; use a duration such as 30s, 2m, 1h or 7d")
	}
	var total float64 // nanoseconds
	for rest := s; rest != ""; {
		part := durationPart.FindStringSubmatch(rest)
		number, name := part[1], part[2]
		rest = rest[len(part[0]):]
		n, err := strconv.ParseFloat(number, 64)
		i := slices.IndexFunc(units(), func(u unit) bool { return u.name == name })
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is not a duration such as 30s, 2m, 1h or 7d", short(s))
		case name == "":
			return 0, fmt.Errorf("%q needs a unit: %ss, %sm, %sh or %sd", short(s), number, number, number, number)
		case i < 0:
			return 0, fmt.Errorf("%q has an unknown unit %q: use ms, s, m, h or d", short(s), short(name))
		}
		total += n * float64(units()[i].length)
	}
	if total >= math.MaxInt64 {
		return 0, fmt.Errorf("%q %w", short(s), ErrTooLong)
	}
	return time.Duration(math.Round(total)), nil
}

// ErrTooLong says that a duration is longer than can be represented.
var ErrTooLong = errors.New("is too long")

// FormatDuration writes d as [ParseDuration] reads it: 2m, 1h30m, 7d. Parts
// below a millisecond are left out, and so is the sign.
func FormatDuration(d time.Duration) string {
	d = d.Abs().Truncate(time.Millisecond)
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range units() {
		if n := d / u.length; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d -= n * u.length //nolint:durationcheck // n is a number of units, not a duration
		}
	}
	return b.String()
}
