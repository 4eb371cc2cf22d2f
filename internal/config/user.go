package config

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/disk"
)

// profilesKey is the key of the user file below which the profiles stand.
const profilesKey = "profiles"

// DefaultProfile is the name of the profile that stands at the top of the user file.
const DefaultProfile = "default"

type userFile struct {
	top      layer
	profiles map[string]layer
}

// in returns the layer of a profile, an empty one if the file does not have it.
func (u userFile) in(profile string) layer {
	if profile == DefaultProfile {
		return u.top
	}
	return u.profiles[profile]
}

// user decodes the user file. A file that nobody named may be missing.
func (l *loader) user() (userFile, error) {
	made := userFile{layer{}, map[string]layer{}}
	o := Origin{Level: FromUser, File: l.paths.User}
	if o.File == "" {
		return made, nil
	}
	if fault := refuseForeignLinks(o.File); fault != nil {
		return made, fault.at("", o)
	}
	data, info, fault := readSettings(o.File)
	if fault != nil {
		if l.paths.UserOrigin.Level != FromDefault {
			fault.Hint = strings.TrimPrefix(fault.Hint+"; it was named by "+l.paths.UserOrigin.Name, "; ")
		} else if errors.Is(fault, fs.ErrNotExist) {
			return made, nil
		}
		return made, fault.at("", o)
	}
	root, fault := parse(data)
	if fault != nil {
		return made, fault.at("", o)
	}
	if root == nil {
		return made, nil
	}
	if err := l.fillUser(made, root, o); err != nil {
		return made, err
	}
	if err := made.refuseReadable(info); err != nil {
		return made, err
	}
	if fault := refuseChangers(o.File, disk.ChangersOf(o.File, info)); fault != nil {
		return made, fault.at("", o)
	}
	return made, nil
}

// fillUser decodes the top level and every profile, chosen or not.
func (l *loader) fillUser(made userFile, root *yaml.Node, o Origin) error {
	own, fault := pairs(root, "a mapping of keys and values")
	if fault != nil {
		return fault.at("", o)
	}
	rest := *root
	rest.Content = nil
	var profiles []pair
	for i, p := range own {
		if p.key != profilesKey {
			rest.Content = append(rest.Content, root.Content[2*i], p.value)
			continue
		}
		if profiles, fault = pairs(p.value, "names with settings below each name"); fault != nil {
			return fault.at(profilesKey, o)
		}
	}
	if err := l.fill(made.top, &rest, o); err != nil {
		return err
	}
	for _, p := range profiles {
		if want := oneLineFilled(p.key); want != "" {
			return (&KeyError{Line: p.line, Message: "the name of a profile must be " + want}).at(profilesKey, o)
		}
		if p.key == DefaultProfile {
			fault := &KeyError{Line: p.line, Message: "not allowed: the settings at the top of the file are the profile default"}
			fault.Hint = "move its settings to the top, or give it another name"
			return fault.at(profilesKey+"."+p.key, o)
		}
		po := o
		po.Level, po.Profile = FromProfile, p.key
		profile := layer{}
		if err := l.fillProfile(profile, p, po); err != nil {
			return err
		}
		made.profiles[p.key] = profile
	}
	return nil
}

// fillProfile decodes one profile. Its keys show in errors with its name.
func (l *loader) fillProfile(made layer, p pair, o Origin) error {
	prefix := profilesKey + "." + p.key
	own, fault := pairs(p.value, "a mapping of keys and values")
	if fault != nil {
		return fault.at(prefix, o)
	}
	for _, key := range own {
		if key.key == profilesKey || key.key == "profile" {
			return (&KeyError{Line: key.line, Message: "not allowed in a profile: " + key.key}).at(prefix, o)
		}
	}
	err := l.fill(made, p.value, o)
	if inside, ok := errors.AsType[*KeyError](err); ok {
		inside.Key = strings.TrimSuffix(prefix+"."+inside.Key, ".")
	}
	return err
}

// refuseReadable refuses a file that others may read while it holds a secret.
func (u userFile) refuseReadable(info fs.FileInfo) error {
	for _, made := range slices.Concat([]layer{u.top}, slices.Collect(maps.Values(u.profiles))) {
		for key, v := range made {
			s, isSecret := v.v.(Secret)
			if !isSecret || s.IsZero() {
				continue
			}
			if v.origin.Profile != "" {
				key = profilesKey + "." + v.origin.Profile + "." + key
			}
			if fault := refuseReaders(v.origin.File, info); fault != nil {
				return fault.at(key, v.origin)
			}
		}
	}
	return nil
}

// refuseChangers refuses a file that others may change: it decides where the
// key is sent, or is the key.
func refuseChangers(path string, c disk.Changers) *KeyError {
	hint := restrictCommand(path)
	switch {
	case c.Text == "":
		return nil
	case c.Folder:
		hint = "move it to a folder that only you can write to"
	case c.Owner:
		hint = "copy it to a file of your own, and use that"
	}
	return wrong("not used: "+c.Text, hint)
}

// refuseForeignLinks refuses a path through a symbolic link that another user
// put where others may write.
func refuseForeignLinks(path string) *KeyError {
	_, err := disk.Resolve(path)
	if foreign, ok := errors.AsType[*disk.ForeignError](err); ok {
		return &KeyError{Message: "not used: " + foreign.Error(), Hint: "name a file of your own, in a folder that only you can write to", Err: err}
	}
	return nil
}

func refuseReaders(path string, info fs.FileInfo) *KeyError {
	who, err := othersWithAccess(path, info)
	switch {
	case err != nil:
		return &KeyError{
			Message: "a secret, but the permissions of the file can't be read: " + cause(err),
			Hint:    "move the secret into the environment", Err: err,
		}
	case who != "":
		return wrong("a secret, and "+who+" may read or change the file", restrictCommand(path))
	}
	return nil
}

// profilePlace returns the names on the way to a place in a profile.
func profilePlace(profile string, place []string) []string {
	if profile == DefaultProfile {
		return place
	}
	return append([]string{profilesKey, profile}, place...)
}

// profileName returns the name of the profile to use, and what chose it.
func (u userFile) profileName(flags, env layer) value {
	for _, made := range []layer{flags, env, u.top} {
		if v, ok := made["profile"]; ok {
			return v
		}
	}
	return value{v: DefaultProfile}
}

// profile returns the layer of the profile to use, which is put over the top of the
// file: an empty one for the default.
func (u userFile) profile(v value, file string) (layer, error) {
	name, _ := v.v.(string)
	if name == DefaultProfile {
		return nil, nil
	}
	if made, ok := u.profiles[name]; ok {
		return made, nil
	}
	known := slices.Sorted(maps.Keys(u.profiles))
	message := "no profile " + strconv.Quote(short(name)) + " in " + file
	if file == "" {
		message = "no profile " + strconv.Quote(short(name)) + ": there is no user file"
	}
	if len(known) > 0 {
		message += ", which has " + strings.Join(known, ", ")
	}
	hint := "define it below `profiles:` in the user file, or use the profile default"
	if n := Nearest(name, known); n != "" {
		hint = "did you mean " + n + "?"
	}
	return nil, wrong(message, hint).at("profile", v.origin)
}
