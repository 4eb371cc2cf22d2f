package config

import (
	"maps"
	"slices"
	"strings"
)

// mapsKey is the setting of saved mappings, savedMark what marks the name of one.
const (
	mapsKey   = "maps"
	savedMark = "@"
)

// mapName returns what the name of a mapping must be, or nothing for one that is.
func mapName(name string) string {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "letters, digits, - and _"
	}
	return ""
}

// expandMaps replaces the name of a saved mapping in each layer by what it holds.
// What the layer says itself of a field counts more.
func (l *loader) expandMaps(layers []layer) error {
	all := mappings{}
	for _, made := range layers {
		own, _ := made[mapsKey].v.(mappings)
		maps.Copy(all, own)
	}
	for i, made := range layers {
		for key, val := range made {
			own, _ := val.v.(names)
			name, ok := own[savedMark]
			if !ok {
				continue
			}
			mapping, ok := all[name]
			if !ok {
				return unknownMap(name, all).at(key, val.origin)
			}
			own = maps.Clone(own)
			delete(own, savedMark)
			whole := maps.Clone(mapping)
			maps.Copy(whole, own)
			layers[i] = maps.Clone(made)
			layers[i][key] = value{v: whole, origin: val.origin}
		}
	}
	return nil
}

func unknownMap(name string, all mappings) *KeyError {
	known := slices.Sorted(maps.Keys(all))
	hint := "save one with --map FIELD=HEADER --save-map NAME"
	if len(known) > 0 {
		hint = "saved: " + strings.Join(known, ", ")
	}
	return wrong(didYouMean("no saved mapping "+savedMark+short(name), name, known), hint)
}

// SaveMap returns the changes of the user file that save a mapping of columns, in
// place of one of the same name.
func SaveMap(name string, mapping map[string]string) ([]Change, error) {
	if want := mapName(name); want != "" {
		return nil, &KeyError{Message: "the name of a mapping must be " + want + ", not " + short(name), Hint: "use --save-map NAME"}
	}
	changes := []Change{{Key: []string{mapsKey, name}}}
	for _, field := range slices.Sorted(maps.Keys(mapping)) {
		changes = append(changes, Change{Key: []string{mapsKey, name, field}, Value: mapping[field]})
	}
	return changes, nil
}
