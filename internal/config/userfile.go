package config

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Profile is a profile of the user file. Empty fields are not set in it.
type Profile struct {
	Name    string
	BaseURL string // as written
	Account string
}

// ProfileList is the profiles of the user file, and which is in force.
type ProfileList struct {
	File   string    // the user file
	All    []Profile // the default first
	Active string    // perhaps not in All
	Origin Origin    // of Active
}

// ListProfiles returns the default profile, and those of the user file by name. The error is a
// [*KeyError].
func ListProfiles(src Sources) (ProfileList, error) {
	l, err := newLoader(src)
	if err != nil {
		return ProfileList{}, err
	}
	list := ProfileList{File: l.paths.User}
	user, err := l.user()
	if err != nil {
		return list, err
	}
	v, err := l.chosenProfile(user)
	if err != nil {
		return list, err
	}
	list.Active, _ = v.v.(string)
	list.Origin = v.origin
	for _, name := range append([]string{DefaultProfile}, slices.Sorted(maps.Keys(user.profiles))...) {
		made := user.in(name)
		p := Profile{Name: name}
		p.BaseURL, _ = made["base_url"].v.(string)
		p.Account, _ = made["account"].v.(string)
		list.All = append(list.All, p)
	}
	return list, nil
}

func (l *loader) chosenProfile(user userFile) (value, error) {
	flags, err := l.flags()
	if err != nil {
		return value{}, err
	}
	env, err := l.environment()
	if err != nil {
		return value{}, err
	}
	return user.profileName(flags, env), nil
}

// Profile returns the profile that changes of the user file are for: the one in
// force. One that the file does not have is refused. A file with
// faults elsewhere will do.
func (d *Draft) Profile() (string, error) {
	raw := userFile{layer{}, map[string]layer{}}
	root, fault := parse(d.Old)
	if fault != nil {
		return "", fault.at("", Origin{Level: FromUser, File: d.Path})
	}
	if root != nil {
		if n := below(root, "profile"); n != nil && n.Kind == yaml.ScalarNode && !missing(n) {
			raw.top["profile"] = value{n.Value, Origin{Level: FromUser, File: d.Path, Line: n.Line}}
		}
		if n := below(root, profilesKey); n != nil {
			own, _ := pairs(n, "") // anything else has no profiles
			for _, p := range own {
				raw.profiles[p.key] = layer{}
			}
		}
	}
	v, err := d.loader.chosenProfile(raw)
	if err != nil {
		return "", err
	}
	_, err = raw.profile(v, d.Path)
	name, _ := v.v.(string)
	return name, err
}

// Has reports whether the file sets a key, known or not, in a profile.
func (d *Draft) Has(profile, key string) bool {
	n, fault := parse(d.Old)
	if fault != nil {
		return false
	}
	for _, name := range profilePlace(profile, d.loader.place(key)) {
		if n == nil || n.Kind != yaml.MappingNode {
			return false
		}
		n = below(n, name)
	}
	return n != nil
}

// Entries returns what the file sets in a profile, by key. The error is a [*KeyError].
func (d *Draft) Entries(profile string) ([]Entry, error) {
	made, err := d.read(d.Old, d.Path)
	if err != nil {
		return nil, err
	}
	in := made.in(profile)
	var all []Entry
	for _, key := range slices.Sorted(maps.Keys(in)) {
		all = append(all, Entry{Key: key, Text: text(in[key].v), Value: plain(in[key].v), Origin: in[key].origin, Secret: d.loader.find(key).Secret})
	}
	return all, nil
}

// Holds reports whether the file sets a secret in a profile to just this one.
func (d *Draft) Holds(profile, key string, secret Secret) bool {
	made, err := d.read(d.Old, d.Path)
	has, isSecret := made.in(profile)[key].v.(Secret)
	return err == nil && isSecret && has.Reveal() == secret.Reveal()
}

// CheckKey returns a [*KeyError] with the nearest known key, unless key is that of
// a setting, or of one name in a setting.
func CheckKey(key string) error {
	l := &loader{table: table()}
	if s, name := l.named(key); l.find(key).Key != "" || s.Key != "" && strings.TrimSpace(name) != "" {
		return nil
	}
	return unknownKey(key, l.keys())
}

// IsSecret reports whether key is that of a setting that is a secret.
func IsSecret(key string) bool { return (&loader{table: table()}).find(key).Secret }
