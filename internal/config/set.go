package config

import (
	"cmp"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Assignment gives a setting a value, written as its environment variable
// would hold it, or removes it. The key may be that of one name, such as
// carriers.UPS.
type Assignment struct {
	Key    string
	Value  string
	Secret Secret // of a setting that is a secret, in place of Value
	Unset  bool   // removes the key, known or not
}

// Set writes settings into the user file, in a profile, and leaves
// what else stands there as it is, comments too. The file is made if need be and is 0600 afterwards; it is replaced whole or not at all, and
// only by one that can be read again. It returns the file's path. Which profile
// is in force is a setting of the whole file.
//
// A secret as Value is refused: those do not go through command lines. The error
// is a [*KeyError].
func Set(src Sources, profile string, all ...Assignment) (string, error) {
	l, err := newLoader(src)
	if err != nil {
		return "", err
	}
	o := Origin{Level: FromUser, Profile: profile}
	want := map[string]any{}
	var changes []Change
	for _, a := range all {
		if a.Unset {
			changes = append(changes, Change{Key: l.place(a.Key)})
			continue
		}
		v, n, fault := l.assign(a)
		if fault != nil {
			return "", fault.at(a.Key, Origin{Name: a.Key})
		}
		want[a.Key] = v
		changes = append(changes, Change{Key: l.place(a.Key), Value: n})
	}
	return editUser(src, profile, changes, func(made userFile, file string) error {
		o.File = file
		in := made.in(profile)
		for key, v := range want {
			if !reflect.DeepEqual(in.at(l.place(key)), v) {
				return wrong("can't be written to the file unchanged", "edit the file by hand").at(key, o)
			}
		}
		return nil
	})
}

// named returns the setting that key is one name of, and the name as it is kept;
// the zero setting if key is something else.
func (l *loader) named(key string) (Setting, string) {
	for _, s := range l.table {
		name, ok := strings.CutPrefix(key, s.Key+".")
		if !ok || s.Kind != KindNames && s.Kind != KindMaps && s.Kind != KindSchemes {
			continue
		}
		if s.fields {
			name = cmp.Or(field(name), name)
		}
		return s, name
	}
	return Setting{}, ""
}

// place returns the names on the way to a key.
func (l *loader) place(key string) []string {
	if s, name := l.named(key); name != "" {
		return append(strings.Split(s.Key, "."), name)
	}
	return strings.Split(key, ".")
}

// at returns the value at a place: that of a setting, or of one of its names.
func (made layer) at(place []string) any {
	if v, ok := made[strings.Join(place, ".")]; ok {
		return v.v
	}
	all, _ := made[strings.Join(place[:len(place)-1], ".")].v.(names)
	return all[place[len(place)-1]]
}

// assign returns a value decoded, and as YAML.
func (l *loader) assign(a Assignment) (any, *yaml.Node, *KeyError) {
	s := l.find(a.Key)
	one, name := l.named(a.Key)
	switch {
	case s.Key == "" && one.Kind == KindNames:
		if fault := one.collect().add(name, a.Value); fault != nil {
			return nil, nil, fault
		}
		return a.Value, textNode(a.Value), nil
	case s.Key == "":
		return nil, nil, &KeyError{Message: didYouMean("unknown key", a.Key, l.keys()), Hint: unknownHint}
	case s.Secret && a.Secret.IsZero():
		return nil, nil, wrong("is a secret", "edit the file by hand, or set the path of a file that contains it")
	case s.Secret:
		text := a.Secret.Reveal()
		v, fault := s.secret(text)
		if fault == nil && s.Key == "api_key" {
			fault = checkAPIKey(text)
		}
		return v, textNode(text), fault
	case a.Value == "":
		return nil, nil, &KeyError{Message: "must be " + s.want()}
	}
	v, fault := s.fromVariable(a.Value)
	if fault != nil {
		return nil, nil, fault
	}
	v = l.withAbsolutePaths(s, v, l.src.WorkDir)
	n, fault := nodeOf(v)
	return v, n, fault
}

// nodeOf writes a decoded value as YAML.
func nodeOf(v any) (*yaml.Node, *KeyError) {
	text, err := compactJSON(plain(v))
	if err != nil {
		return nil, &KeyError{Message: err.Error(), Err: err}
	}
	n, fault := parse([]byte(text))
	if fault == nil && n == nil {
		fault = wrong("has no value", "")
	}
	if fault == nil {
		block(n)
	}
	return n, fault
}

// block takes the brackets and quotes of JSON off; the encoder puts quotes
// where they are needed.
func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}
