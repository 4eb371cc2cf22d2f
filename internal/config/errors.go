package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBaseURL reports that a command needs the service's address and none is set.
var ErrNoBaseURL = errors.New("no base URL is set")

// ErrNoAPIKey reports that a command needs the API key and none is set.
var ErrNoAPIKey = errors.New("no API key is set")

// KeyError describes a fault in a setting, its file, or a secret that it names. It never contains a secret.
type KeyError struct {
	Key     string // dotted, `query.absent`; empty for a whole file
	Origin  Origin
	File    string // the file of settings at fault; empty for flags, environment and defaults
	Line    int    // 1-based line in File; 0 if unknown
	Message string
	Hint    string // what to do; may be empty
	Err     error  // cause; may be nil
}

// Error returns the place, the key and the message, without the hint.
func (e *KeyError) Error() string {
	text := e.Message
	if e.Key != "" && (e.File != "" || e.Origin.Name == "") {
		text = e.Key + ": " + text
	}
	switch {
	case e.File != "" && e.Line > 0:
		return e.File + ":" + strconv.Itoa(e.Line) + ": " + text
	case e.File != "":
		return e.File + ": " + text
	case e.Origin.Name != "":
		return e.Origin.Name + ": " + text
	}
	return text
}

// Unwrap returns the cause, or nil.
func (e *KeyError) Unwrap() error { return e.Err }

// at sets the origin and file of a fault, and its line and key if it has none. It returns nil for a nil fault.
func at(fault error, key string, o Origin) error {
	if e, ok := errors.AsType[*KeyError](fault); ok {
		e.Line = cmp.Or(e.Line, o.Line)
		e.Key = cmp.Or(e.Key, key)
		o.Line = e.Line
		e.Origin, e.File = o, o.File
	}
	return fault
}

// in prefixes the message of a fault with a place. It returns nil for a nil fault.
func in(place string, fault error) error {
	if e, ok := errors.AsType[*KeyError](fault); ok {
		e.Message = place + ": " + e.Message
	}
	return fault
}

// wrong returns a [*KeyError] without a place, which [at] sets later.
func wrong(message, hint string) error { return &KeyError{Message: message, Hint: hint} }

func short(s string) string {
	const limit = 60 // runes
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}

func quoted(s string) string { return strconv.Quote(short(s)) }

// Nearest returns the known word most similar to word, or "" if none is similar. It ignores case, `-` and `_`, and
// compares a word without dots with the last part of a dotted key too.
func Nearest(word string, known []string) string {
	w := plainWord(word)
	best, bestDistance := "", max(2, len(w)/3)+1
	for _, k := range known {
		whole := plainWord(k)
		d := distance(w, whole)
		if letters(w) == letters(whole) {
			d = min(d, 1)
		}
		if last := whole[strings.LastIndexByte(whole, '.')+1:]; last != whole && !strings.Contains(w, ".") {
			d = min(d, distance(w, last))
		}
		if d < bestDistance && d < len(w) {
			best, bestDistance = k, d
		}
	}
	return best
}

func plainWord(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// letters returns the sorted bytes of a word: words that differ by swapped letters have the same.
func letters(s string) string { return string(slices.Sorted(slices.Values([]byte(s)))) }

// distance returns the Levenshtein distance in bytes. Long words are truncated; no known word is that long.
func distance(a, b string) int {
	const limit = 80
	a, b = a[:min(len(a), limit)], b[:min(len(b), limit)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost = 1 + min(corner, row[j], row[j+1])
			}
			corner, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

func didYouMean(message, word string, known []string) string {
	if n := Nearest(word, known); n != "" {
		return message + ", did you mean " + n + "?"
	}
	return message
}

// Level is the kind of place that a value comes from. A higher level wins over a lower one.
type Level int

// The levels, lowest first.
const (
	FromDefault Level = iota
	FromUser          // top level of the user file
	FromProfile       // the chosen profile in the user file
	FromProject       // .waybill.yaml in the working folder
	FromEnv
	FromFlag
)

// Origin is the place that a value comes from.
type Origin struct {
	Level   Level
	Name    string // --timeout or WAYBILL_TIMEOUT; empty for files and defaults
	File    string // absolute path; empty unless it is a file
	Line    int    // 1-based; 0 if not in a file
	Profile string // the profile's name; empty outside profiles
}

// String returns the place: `flag --timeout`, `env WAYBILL_TIMEOUT`, a path, a path with `(profile NAME)`, `default`.
func (o Origin) String() string {
	switch o.Level {
	case FromFlag:
		return "flag " + o.Name
	case FromEnv:
		return "env " + o.Name
	case FromProfile:
		return o.File + " (profile " + o.Profile + ")"
	case FromUser, FromProject:
		return o.File
	default:
		return "default"
	}
}
