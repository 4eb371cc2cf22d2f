package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

type sizeUnit struct {
	name   string
	length int64 // bytes
}

// sizeUnits returns every unit, longest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"GB", 1e9}, {"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1}}
}

// ParseSize reads a size such as 5MiB or 5 MB: a number with the unit B, kB, MB, GB,
// KiB, MiB or GiB, in any case. A number without a unit is refused, but for 0.
func ParseSize(s string) (Size, error) {
	s = strings.ReplaceAll(s, " ", "")
	end := strings.IndexFunc(s, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if s == "0" {
		return 0, nil
	}
	if end < 0 && s != "" {
		return 0, fmt.Errorf("%q needs a unit: %skB, %sMB or %sGB", short(s), short(s), short(s), short(s))
	}
	for _, u := range sizeUnits() {
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

// String writes the size as [ParseSize] reads it, in the largest unit that it
// is a whole number of.
func (s Size) String() string {
	for _, u := range sizeUnits() {
		if s != 0 && int64(s)%u.length == 0 {
			return strconv.FormatInt(int64(s)/u.length, 10) + u.name
		}
	}
	return "0"
}
