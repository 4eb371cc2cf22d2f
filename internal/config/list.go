package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/viper"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Entry is one setting with its value in force.
type Entry struct {
	Key    string // for a name in a map: the setting's key, a dot, the name
	Text   string // on one line; a secret is `***`
	Value  any    // JSON types only; durations are text; a secret is `***`
	Origin Origin
}

// List returns every setting, sorted by key. Each name in a map is a separate entry with its own origin.
func (c Config) List() []Entry { return slices.Clone(c.entries) }

// Get returns the entry of a setting, or of one name in a map. The key of a map returns all its names, with the highest
// of their origins. The error for an unknown key is a [*KeyError] that suggests the nearest known key.
func (c Config) Get(key string) (Entry, error) {
	whole := Entry{Key: key}
	var known []string
	named := map[string]any{}
	for _, e := range c.entries {
		if e.Key == key {
			return e, nil
		}
		if name, ok := strings.CutPrefix(e.Key, key+"."); ok {
			named[name] = e.Value
			if e.Origin.Level >= whole.Origin.Level {
				whole.Origin = e.Origin
			}
		}
		known = append(known, e.Key)
	}
	if settingOf(key).Key == "" || len(named) == 0 {
		return Entry{}, unknownKey(key, known)
	}
	whole.Text, whole.Value = text(named), named
	return whole, nil
}

func (c Config) list(v *viper.Viper) []Entry {
	var all []Entry
	add := func(key string, v any) { all = append(all, Entry{key, text(v), plain(v), c.origins[key]}) }
	for _, s := range table() {
		val := v.Get(s.Key)
		items, _ := val.(names)
		if len(items) == 0 {
			add(s.Key, val)
		}
		for name, item := range items {
			add(s.Key+"."+name, item)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

// plain converts a decoded value to JSON types: durations, sizes and secrets become text, as displayed.
func plain(v any) any {
	switch v := v.(type) {
	case time.Duration:
		return FormatDuration(v)
	case fmt.Stringer: // sizes and secrets
		return v.String()
	case tracking.Match:
		return AbsentEntry(tracking.Absent{Match: v})
	case tracking.Absent:
		return AbsentEntry(v)
	case webhook.Scheme:
		return SchemeSettings(v)
	case names:
		all := make(map[string]any, len(v))
		for name, item := range v {
			all[name] = plain(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = plain(item)
		}
		return all
	}
	return v
}

func text(v any) string {
	switch v := plain(v).(type) {
	case float64:
		return plainNumber(v)
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
		return compactJSON(v)
	case []any:
		texts := make([]string, len(v))
		for i, item := range v {
			if _, isObject := item.(map[string]any); isObject {
				return compactJSON(v)
			}
			texts[i] = text(item)
		}
		return strings.Join(texts, ",")
	default:
		return fmt.Sprint(v)
	}
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// compactJSON encodes a result of plain.
func compactJSON(v any) string {
	b, _ := jsonscan.Marshal(v) // JSON types always encode
	return string(b)
}

// AbsentEntry returns an entry of query.absent as it is written in a file.
func AbsentEntry(a tracking.Absent) map[string]any {
	all := map[string]any{}
	if a.Match != (tracking.Match{}) {
		var equals any = a.Match.Equals
		_ = json.Unmarshal([]byte(a.Match.Equals), &equals) // invalid JSON stays text
		all["path"], all["equals"] = a.Match.Path, equals
	}
	if a.Status != 0 {
		all["status"] = a.Status
	}
	if a.Message != "" {
		all["message"] = a.Message
	}
	return all
}
