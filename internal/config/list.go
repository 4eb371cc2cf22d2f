package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/viper"
)

// Entry is one setting as it was decided.
type Entry struct {
	Key    string // of a name in a map: the setting's key, a dot, the name
	Text   string // on one line; a secret is `***`
	Value  any    // of JSON's own types; durations are text; a secret is `***`
	Origin Origin
}

// List returns every setting, by key. Of names, each is an entry of its own,
// with its own origin.
func (c Config) List() []Entry { return slices.Clone(c.entries) }

// Get returns the entry of key: a setting, or one name of it. Names come whole
// under the setting's key, with the highest of their origins. The error for an unknown key is a [*KeyError] with
// the nearest known one.
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

func unknownKey(key string, known []string) *KeyError {
	return wrong(didYouMean("unknown key "+quoted(key), key, known), "`waybill config list` lists every key").at("", Origin{})
}

func entry(key string, v any, o Origin) Entry {
	return Entry{Key: key, Text: text(v), Value: plain(v), Origin: o}
}

// list lists what v decided.
func (c Config) list(v *viper.Viper) []Entry {
	var all []Entry
	for _, s := range table() {
		val := v.Get(s.Key)
		items, _ := val.(names)
		if len(items) == 0 {
			all = append(all, entry(s.Key, val, c.origins[s.Key]))
		}
		for name, item := range items {
			key := s.Key + "." + name
			all = append(all, entry(key, item, c.origins[key]))
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	return all
}
