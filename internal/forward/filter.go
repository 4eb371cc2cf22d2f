package forward

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// Filter selects events. The zero Filter selects all.
type Filter struct {
	terms []term
}

type term struct {
	key    string           // as written
	path   jsonscan.Pointer // nil if the key is not a pointer
	value  string
	prefix bool // value is a prefix
}

// keys are the names that a condition may begin with, besides JSON pointers.
func keys() []string { return []string{"event", "status", "statusTrack", "number"} }

// ParseFilter parses KEY=VALUE[,KEY=VALUE]. All conditions must hold. KEY is event, status (its number, label or
// track), statusTrack, number, or a JSON pointer into the event such as /data/summary/statusLabel. Numbers and
// statuses are compared by [tracking.FoldNumber] and [tracking.FoldStatus], other values exactly. A `*` at the end of
// VALUE matches any rest. An empty text selects all events.
func ParseFilter(text string) (Filter, error) {
	var f Filter
	if text == "" {
		return f, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		t, err := parseTerm(part)
		if err != nil {
			return Filter{}, fmt.Errorf("filter %q: %w", text, err)
		}
		if slices.ContainsFunc(f.terms, func(other term) bool { return other.key == t.key }) {
			return Filter{}, fmt.Errorf("filter %q: %s appears twice, but all conditions must match", text, t.key)
		}
		f.terms = append(f.terms, t)
	}
	slices.SortFunc(f.terms, func(a, b term) int { return strings.Compare(a.key, b.key) })
	return f, nil
}

// IsFilter reports whether a text begins like a filter: with a key and an equals sign.
func IsFilter(text string) bool {
	key, _, ok := strings.Cut(text, "=")
	return ok && (strings.HasPrefix(key, "/") || slices.Contains(keys(), key))
}

func parseTerm(part string) (term, error) {
	key, value, ok := strings.Cut(part, "=")
	if !ok {
		return term{}, fmt.Errorf("%q is not KEY=VALUE", part)
	}
	t := term{key: key}
	switch {
	case strings.HasPrefix(key, "/"):
		if t.path, ok = jsonscan.ParsePointer(key); !ok {
			return term{}, fmt.Errorf("%q is not a JSON pointer: write ~ as ~0", key)
		}
	case !slices.Contains(keys(), key):
		return term{}, fmt.Errorf("key %q is none of %s, nor a JSON pointer such as /data/summary/statusLabel", key,
			strings.Join(keys(), ", "))
	}
	t.value, t.prefix = strings.CutSuffix(value, "*")
	switch {
	case value == "":
		return term{}, fmt.Errorf("%s has no value", key)
	case strings.Contains(t.value, "*"):
		return term{}, fmt.Errorf("%q: * is allowed only at the end of a value", value)
	}
	return t, nil
}

// String returns the canonical form of the filter, "" for all events.
func (f Filter) String() string {
	parts := make([]string, len(f.terms))
	for i, t := range f.terms {
		parts[i] = t.key + "=" + t.value
		if t.prefix {
			parts[i] += "*"
		}
	}
	return strings.Join(parts, ",")
}

// ReadsBytes reports whether a condition needs the bytes of an event.
func (f Filter) ReadsBytes() bool {
	return slices.ContainsFunc(f.terms, func(t term) bool { return t.path != nil })
}

// Match reports whether every condition holds for e. A condition on a value that e lacks does not hold.
func (f Filter) Match(e inbox.Event) bool {
	return !slices.ContainsFunc(f.terms, func(t term) bool { return !t.match(e) })
}

func (t term) match(e inbox.Event) bool {
	var got string
	want := t.value
	switch {
	case t.path != nil:
		if json.Valid(e.Raw) {
			if found, times := t.path.Find(e.Raw); times == 1 { // no name on the way is repeated
				got = scalarText(found)
			}
		}
	case t.key == "event":
		got = e.Kind
	case t.key == "status":
		names := []string{scalarText([]byte(e.Status)), e.StatusLabel, e.StatusTrack}
		return slices.ContainsFunc(names, func(name string) bool {
			return t.takes(tracking.FoldStatus(name), tracking.FoldStatus(want))
		})
	case t.key == "statusTrack":
		got, want = tracking.FoldStatus(e.StatusTrack), tracking.FoldStatus(want)
	default:
		got, want = tracking.FoldNumber(e.TrackingNumber), tracking.FoldNumber(want)
	}
	return t.takes(got, want)
}

func (t term) takes(got, want string) bool {
	return got != "" && (got == want || t.prefix && strings.HasPrefix(got, want))
}

func scalarText(literal []byte) string {
	literal = bytes.TrimSpace(literal)
	if len(literal) == 0 || literal[0] == '{' || literal[0] == '[' || string(literal) == "null" {
		return ""
	}
	var s string
	if literal[0] == '"' && json.Unmarshal(literal, &s) == nil {
		return s
	}
	return string(literal)
}
