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
	length int64 // nanoseconds or bytes
}

// The units, largest first. A day is always 24 hours.
var (
	durationUnits = []unit{
		{"d", int64(24 * time.Hour)},
		{"h", int64(time.Hour)},
		{"m", int64(time.Minute)},
		{"s", int64(time.Second)},
		{"ms", int64(time.Millisecond)},
	}
	sizeUnits = []unit{
		{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
	}
)

var durationPart = regexp.MustCompile(`^([0-9.]*)([^0-9.]*)`)

// ParseDuration reads a duration such as 30s, 2m, 1h30m, 1.5h or 7d. The units are ms, s, m, h and d, of 24 hours.
// It refuses a number without a unit, even zero, a sign, and durations over about 290 years.
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
		i := slices.IndexFunc(durationUnits, func(u unit) bool { return u.name == name })
		switch {
		case err != nil:
			return 0, fmt.Errorf("%q is not a duration such as 30s, 2m, 1h or 7d", short(s))
		case name == "":
			return 0, fmt.Errorf("%q needs a unit: %ss, %sm, %sh or %sd", short(s), number, number, number, number)
		case i < 0:
			return 0, fmt.Errorf("%q has an unknown unit %q: use ms, s, m, h or d", short(s), short(name))
		}
		total += n * float64(durationUnits[i].length)
	}
	if total >= math.MaxInt64 {
		return 0, fmt.Errorf("%q %w", short(s), ErrTooLong)
	}
	return time.Duration(math.Round(total)), nil
}

// ErrTooLong reports that a duration is longer than can be represented.
var ErrTooLong = errors.New("is too long")

// FormatDuration formats d for [ParseDuration]: 2m, 1h30m, 7d. It drops the sign and fractions of a millisecond.
func FormatDuration(d time.Duration) string {
	rest := int64(d.Abs().Truncate(time.Millisecond))
	if rest == 0 {
		return "0s"
	}
	var text []byte
	for _, u := range durationUnits {
		if n := rest / u.length; n > 0 {
			text = append(strconv.AppendInt(text, n, 10), u.name...)
		}
		rest %= u.length
	}
	return string(text)
}

// Size is a number of bytes.
type Size int64

// ParseSize reads a size such as 5MiB or 5 MB: a number with the unit B, kB, MB, GB, KiB, MiB or GiB, in any case. It
// refuses a number without a unit, except 0.
func ParseSize(s string) (Size, error) {
	s = strings.ReplaceAll(s, " ", "")
	end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if s == "0" {
		return 0, nil
	}
	if end < 0 && s != "" {
		return 0, fmt.Errorf("%q needs a unit: %skB, %sMB or %sGB", short(s), short(s), short(s), short(s))
	}
	for _, u := range sizeUnits {
		if end <= 0 || !strings.EqualFold(s[end:], u.name) {
			continue
		}
		n, err := strconv.ParseFloat(s[:end], 64)
		if total := n * float64(u.length); err == nil && total < math.MaxInt64 {
			return Size(total), nil
		}
	}
	return 0, fmt.Errorf("%q is not a size such as 512kB, 5MB or 1GiB", short(s))
}

// String formats the size for [ParseSize], in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.length == 0 {
			return strconv.FormatInt(int64(s)/u.length, 10) + u.name
		}
	}
	return "0"
}
