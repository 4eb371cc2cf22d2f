package config

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/disk"
)

const profilesKey = "profiles"

// DefaultProfile is the name of the profile at the top level of the user file.
const DefaultProfile = "default"

type userFile struct {
	path     string
	profiles map[string]layer // the default profile is the top level
}

// names returns the names of all profiles, the default first.
func (u userFile) names() []string {
	others := maps.Clone(u.profiles)
	delete(others, DefaultProfile)
	return append([]string{DefaultProfile}, slices.Sorted(maps.Keys(others))...)
}

// user reads the user file. It may be missing, unless a flag or variable names it.
func (l *loader) user() (userFile, error) {
	data, info, err := l.readUser()
	if err != nil && (l.paths.UserOrigin.Level != FromDefault || !errors.Is(err, fs.ErrNotExist)) {
		return userFile{}, err
	}
	made, err := l.decodeUser(data, l.paths.User)
	if err == nil {
		err = made.refuseReadable(info)
	}
	if err == nil && info != nil {
		err = l.refuseUserChangers(info)
	}
	return made, err
}

// refuseUserChangers refuses a user file that others may change; info is nil for a file that does not exist yet.
func (l *loader) refuseUserChangers(info fs.FileInfo) error {
	err := refuseChangers(l.paths.User, disk.ChangersOf(l.paths.User, info))
	return at(err, "", Origin{Level: FromUser, File: l.paths.User})
}

// readUser reads the user file. It refuses another user's symbolic link in a folder where others may write.
func (l *loader) readUser() ([]byte, fs.FileInfo, error) {
	path := l.paths.User
	if path == "" {
		return nil, nil, nil
	}
	o := Origin{Level: FromUser, File: path}
	_, err := disk.Resolve(path)
	if foreign, ok := errors.AsType[*disk.ForeignError](err); ok {
		const hint = "name a file of your own, in a folder that only you can write to"
		fault := &KeyError{Message: "not used: " + foreign.Error(), Hint: hint, Err: err}
		return nil, nil, at(fault, "", o)
	}
	data, info, err := readSettings(path)
	if fault, ok := errors.AsType[*KeyError](err); ok && l.paths.UserOrigin.Name != "" {
		fault.Hint = strings.TrimPrefix(fault.Hint+"; it was named by "+l.paths.UserOrigin.Name, "; ")
	}
	return data, info, at(err, "", o)
}

// decodeUser decodes the text of a user file: the top level and every profile, chosen or not. Errors name path. With
// the first fault it returns the valid settings; no profile if the text is not a mapping.
func (l *loader) decodeUser(data []byte, path string) (userFile, error) {
	made := userFile{path: path, profiles: map[string]layer{}}
	o := Origin{Level: FromUser, File: path}
	var own []pair
	_, root, err := parse(data)
	if err == nil {
		own, err = pairs(root, "a mapping of keys and values")
	}
	if err != nil {
		return made, at(err, "", o)
	}
	var profiles []pair
	var errProfiles error
	if i := slices.IndexFunc(own, func(p pair) bool { return p.key == profilesKey }); i >= 0 {
		profiles, errProfiles = pairs(own[i].value, "names with settings below each name")
		root.Content = slices.Delete(root.Content, 2*i, 2*i+2)
	}
	made.profiles[DefaultProfile], err = l.fill(root, o)
	err = cmp.Or(err, at(errProfiles, profilesKey, o))
	for _, p := range profiles {
		own, errProfile := l.fillProfile(p, o)
		err = cmp.Or(err, errProfile)
		if p.key != DefaultProfile { // refused
			made.profiles[p.key] = own
		}
	}
	return made, err
}

// fillProfile decodes one profile. In errors, its keys are prefixed with its name.
func (l *loader) fillProfile(p pair, o Origin) (layer, error) {
	prefix := profilesKey + "." + p.key
	if want := profileNameError(p.key); want != "" {
		return nil, at(&KeyError{Line: p.line, Message: "the name of a profile must have " + want}, profilesKey, o)
	}
	if p.key == DefaultProfile {
		fault := wrong("not allowed: the settings at the top of the file are the profile default",
			"move its settings to the top, or give it another name")
		o.Line = p.line
		return nil, at(fault, prefix, o)
	}
	o.Level, o.Profile = FromProfile, p.key
	own, _ := pairs(p.value, "") // fill refuses any other form
	for _, key := range own {
		if key.key == profilesKey || key.key == "profile" {
			return nil, at(&KeyError{Line: key.line, Message: "not allowed in a profile: " + key.key}, prefix, o)
		}
	}
	made, err := l.fill(p.value, o)
	if inside, ok := errors.AsType[*KeyError](err); ok {
		inside.Key = strings.TrimSuffix(prefix+"."+inside.Key, ".")
	}
	return made, err
}

// refuseReadable refuses a file that contains a secret and that others may read or change.
func (u userFile) refuseReadable(info fs.FileInfo) error {
	for _, name := range u.names() {
		for key, v := range u.profiles[name] {
			if s, _ := v.v.(Secret); s.IsZero() {
				continue
			}
			who, err := othersWithAccess(u.path, info)
			if err != nil {
				message := "a secret, but the permissions of the file can't be read: " + cause(err)
				err = &KeyError{Message: message, Hint: "move the secret into the environment", Err: err}
			} else if who != "" {
				err = wrong("a secret, and "+who+" may read or change the file", restrictCommand(u.path))
			}
			return at(err, strings.Join(placeOf(name, key), "."), v.origin)
		}
	}
	return nil
}

// refuseChangers refuses a file that others may change, as it contains a secret or decides where the key is sent.
func refuseChangers(path string, c disk.Changers) error {
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

// Exposed describes who besides the owner may read or change a file, and returns the command that restricts it to the
// owner. who is empty if nobody else may, or if that is not known.
func Exposed(path string) (who, command string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	who, _ = othersWithAccess(path, info)
	return who, restrictCommand(path)
}

// chosen returns the profile in force and the origin of its name; an error if the file does not have the profile.
func (u userFile) chosen(levels ...layer) (string, Origin, error) {
	v := value{v: DefaultProfile}
	for _, made := range append([]layer{u.profiles[DefaultProfile]}, levels...) {
		if own, ok := made["profile"]; ok {
			v = own
		}
	}
	name, _ := v.v.(string)
	if _, ok := u.profiles[name]; ok || name == DefaultProfile {
		return name, v.origin, nil
	}
	known := u.names()[1:]
	message := "no profile " + quoted(name) + " in " + u.path
	if u.path == "" {
		message = "no profile " + quoted(name) + ": there is no user file"
	}
	hint := "define it below `profiles:` in the user file, or use the profile default"
	if len(known) > 0 {
		message += ", which has " + strings.Join(known, ", ")
	}
	if n := Nearest(name, known); n != "" {
		hint = "did you mean " + n + "?"
	}
	return name, v.origin, at(wrong(message, hint), "profile", v.origin)
}

// Profile is a profile of the user file. Empty fields are unset.
type Profile struct {
	Name    string
	BaseURL string // as written
	Account string
}

// ProfileList lists the profiles of the user file, and names the one in force.
type ProfileList struct {
	File   string    // the user file
	All    []Profile // the default first
	Active string    // may be missing in All
	Origin Origin    // of Active
}

// ListProfiles returns the profiles of the user file, the default first, others by name. The error is a [*KeyError].
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
	list.Active, list.Origin, _ = user.chosen(l.environment, l.flags) // callers handle a missing profile
	for _, name := range user.names() {
		made := user.profiles[name]
		list.All = append(list.All, Profile{Name: name, BaseURL: made["base_url"].text(), Account: made["account"].text()})
	}
	return list, nil
}
