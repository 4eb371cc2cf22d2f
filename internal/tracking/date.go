package tracking

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// months are how the names of months begin, in the languages of common
// spreadsheets.
var months = []string{
	"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
	"mär", "mrz", "mai", "okt", "dez", // German
	"fév", "fev", "avr", "juin", "juil", "aoû", "aou", "déc", // French
	"ene", "abr", "ago", "dic", // Spanish
	"gen", "mag", "giu", "lug", "set", "ott", // Italian
	"mrt", "maa", "mei", // Dutch
	"out",                                                                // Portuguese
	"sty", "lut", "kwi", "maj", "cze", "lip", "sie", "wrz", "paź", "gru", // Polish
}

// isDate reports whether s is a date of numbers (2024-03-01, 01.03.2024,
// 3/1/24), one with the name of a month (Mar-24, 24-Mär-2024), or either with
// a time, or a time alone. A hyphen within a carrier's number stands between
// longer groups: 020-12345678.
func isDate(s string) bool {
	if len(s) > len("2024-september-24T00:00:00.000000000+00:00") {
		return false
	}
	if day, time, ok := cutTime(s); ok {
		return clock(time) && (day == "" || isDay(day))
	}
	return isDay(s)
}

// cutTime cuts a time from the end of s: what follows a T, or all up to the
// two places before the first colon.
func cutTime(s string) (day, time string, ok bool) {
	colon := strings.IndexByte(s, ':')
	if colon < 0 {
		return s, "", false
	}
	from := colon
	for from > 0 && colon-from < 2 && s[from-1] >= '0' && s[from-1] <= '9' {
		from--
	}
	return strings.TrimRight(s[:from], "T ,"), s[from:], true
}

// clock reports whether s begins as a time of day does.
func clock(s string) bool {
	hour, rest, _ := strings.Cut(s, ":")
	minute := rest[:min(2, len(rest))]
	return between(hour, 0, 24) && len(minute) == 2 && between(minute, 0, 59) && strings.Trim(rest, "0123456789:.,+-ZAPMapm") == ""
}

// isDay reports whether s is a day or a month, in two or three parts.
func isDay(s string) bool {
	s = strings.TrimRight(s, ".日")
	parts := strings.FieldsFunc(s, dateMark)
	if len(parts) < 2 || len(parts) > 3 || strings.TrimFunc(s, dateMark) != s {
		return false
	}
	named := slices.IndexFunc(parts, month)
	switch {
	case named >= 0 && len(parts) == 2:
		other := parts[1-named]
		return between(other, 1, 31) || len(other) == 2 && between(other, 0, 99) || year(other)
	case named >= 0:
		rest := slices.Delete(parts, named, named+1)
		return dayAndYear(rest[0], rest[1]) || dayAndYear(rest[1], rest[0])
	case len(parts) == 2:
		return year(parts[0]) && between(parts[1], 1, 12) || between(parts[0], 1, 12) && year(parts[1])
	case year(parts[0]):
		return between(parts[1], 1, 12) && between(parts[2], 1, 31)
	}
	short := len(parts[2]) == 2 && between(parts[2], 0, 99)
	dayFirst := between(parts[0], 1, 31) && between(parts[1], 1, 12)
	monthFirst := between(parts[0], 1, 12) && between(parts[1], 1, 31)
	return (dayFirst || monthFirst) && (short || year(parts[2]))
}

func dayAndYear(day, of string) bool {
	return between(day, 1, 31) && (year(of) || len(of) == 2 && between(of, 0, 99))
}

func dateMark(r rune) bool { return strings.ContainsRune("-/.年月–", r) }

func month(s string) bool {
	if len(s) > len("septembre")+2 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return false
	}
	s = strings.ToLower(s)
	return slices.ContainsFunc(months, func(m string) bool { return strings.HasPrefix(s, m) })
}

func year(s string) bool { return len(s) == 4 && between(s, 1900, 2099) }

// between reports whether s is a number of at most four digits from low to
// high.
func between(s string, low, high int) bool {
	n, err := strconv.Atoi(s)
	return err == nil && len(s) <= 4 && digits(s) && n >= low && n <= high
}
