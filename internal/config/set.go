package config

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Assignment gives a setting a value, written as its environment variable
// would hold it.
type Assignment struct{ Key, Value string }

// Set writes settings into the user file, below the profile if one is named,
// and leaves what else stands there as it is, comments too. The file is made
// if need be and is 0600 afterwards; it is replaced whole or not at all, and
// only by one that can be read again. It returns the file's path.
//
// Secrets are refused: their values do not go through command lines. The error
// is a [*KeyError].
func Set(src Sources, profile string, all ...Assignment) (string, error) {
	l := &loader{src: src, table: table()}
	o := Origin{Level: FromUser, Profile: profile}
	want := map[string]any{}
	var changes []Change
	for _, a := range all {
		v, n, fault := l.assign(a)
		if fault != nil {
			return "", fault.at(a.Key, Origin{Name: a.Key})
		}
		want[a.Key] = v
		changes = append(changes, Change{Key: strings.Split(a.Key, "."), Value: n})
	}
	return editUser(src, profile, changes, func(made userFile, file string) error {
		o.File = file
		in := made.top
		if profile != "" {
			in = made.profiles[profile]
		}
		for key, v := range want {
			if !reflect.DeepEqual(in[key].v, v) {
				return wrong("can't be written to the file unchanged", "edit the file by hand").at(key, o)
			}
		}
		return nil
	})
}

// assign returns a value decoded, and as YAML.
func (l *loader) assign(a Assignment) (any, *yaml.Node, *KeyError) {
	s := l.find(a.Key)
	switch {
	case s.Key == "":
		return nil, nil, &KeyError{Message: didYouMean("unknown key", a.Key, l.keys()), Hint: unknownHint}
	case s.Secret:
		return nil, nil, wrong("is a secret", "edit the file by hand, or set the path of a file that contains it")
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
