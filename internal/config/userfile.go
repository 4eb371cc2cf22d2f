package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/disk"
)

const profilesKey = "profiles"

// DefaultProfile is the name of the profile at the top level of the user file.
const DefaultProfile = "default"

// UserFile is the user file as it is, valid or not, and the settings in it that are valid.
type UserFile struct {
	Path  string // empty if no home folder is known
	Data  []byte // nil if there is no such file
	Fault error  // why Data is not valid; nil if it is

	loader   *loader
	profiles map[string]layer // the default profile is the top level; empty if Data is no mapping
}

// OpenUserFile reads the user file for a change. It may be missing. The error is a [*KeyError]: there is no place for
// the file, it can't be read, or others may change it.
func OpenUserFile(src Sources) (UserFile, error) {
	l, err := newLoader(src)
	if err != nil {
		return UserFile{}, err
	}
	if l.paths.User == "" {
		const message = "no user file: there is no home folder"
		return UserFile{}, at(wrong(message, "pass --config FILE"), "", Origin{Level: FromUser})
	}
	data, info, err := l.readUser()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return UserFile{}, err
	}
	return l.decodeUser(data, l.paths.User), l.refuseUserChangers(info)
}

// ReadUserFile reads the user file as [Load] does. The error is a [*KeyError].
func ReadUserFile(src Sources) (UserFile, error) {
	l, err := newLoader(src)
	if err != nil {
		return UserFile{}, err
	}
	return l.user()
}

// user reads the user file for its settings. It may be missing, unless a flag or variable names it.
func (l *loader) user() (UserFile, error) {
	data, info, err := l.readUser()
	if err != nil && (l.paths.UserOrigin.Level != FromDefault || !errors.Is(err, fs.ErrNotExist)) {
		return UserFile{}, err
	}
	f := l.decodeUser(data, l.paths.User)
	if err = cmp.Or(f.Fault, f.refuseReadable(info)); err == nil && info != nil {
		err = l.refuseUserChangers(info)
	}
	return f, err
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

// decodeUser decodes the text of a user file: the top level and every profile, chosen or not. Its fault names path.
func (l *loader) decodeUser(data []byte, path string) UserFile {
	f := UserFile{Path: path, Data: data, loader: l, profiles: map[string]layer{}}
	o := Origin{Level: FromUser, File: path}
	_, root, err := ParseYAML(data)
	own, errOwn := pairs(root, "a mapping of keys and values")
	if f.Fault = at(cmp.Or(err, errOwn), "", o); f.Fault != nil {
		return f
	}
	var profiles []pair
	for i, p := range own {
		if p.key == profilesKey {
			profiles, err = pairs(p.value, "names with settings below each name")
			root.Content = slices.Delete(root.Content, 2*i, 2*i+2)
		}
	}
	f.profiles[DefaultProfile], f.Fault = l.fill(root, o)
	f.Fault = cmp.Or(f.Fault, at(err, profilesKey, o))
	for _, p := range profiles {
		own, err := l.fillProfile(p, o)
		f.Fault = cmp.Or(f.Fault, err)
		if p.key != DefaultProfile { // refused
			f.profiles[p.key] = own
		}
	}
	return f
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

// Profiles returns the names of all profiles, the default first.
func (f UserFile) Profiles() []string {
	isDefault := func(name string) bool { return name == DefaultProfile }
	return append([]string{DefaultProfile}, slices.DeleteFunc(slices.Sorted(maps.Keys(f.profiles)), isDefault)...)
}

// refuseReadable refuses a file that contains a secret and that others may read or change.
func (f UserFile) refuseReadable(info fs.FileInfo) error {
	for _, name := range f.Profiles() {
		for key, v := range f.profiles[name] {
			if s, _ := v.v.(Secret); s.IsZero() {
				continue
			}
			who, err := othersWithAccess(f.Path, info)
			if err != nil {
				message := "a secret, but the permissions of the file can't be read: " + Cause(err)
				err = &KeyError{Message: message, Hint: "move the secret into the environment", Err: err}
			} else if who != "" {
				err = wrong("a secret, and "+who+" may read or change the file", restrictCommand(f.Path))
			}
			return at(err, strings.Join(Place(name, key), "."), v.origin)
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
func (f UserFile) chosen(levels ...layer) (string, Origin, error) {
	v := value{v: DefaultProfile}
	for _, made := range append([]layer{f.profiles[DefaultProfile]}, levels...) {
		if own, ok := made["profile"]; ok {
			v = own
		}
	}
	name, _ := v.v.(string)
	if _, ok := f.profiles[name]; ok || name == DefaultProfile {
		return name, v.origin, nil
	}
	known := f.Profiles()[1:]
	message := "no profile " + quoted(name) + " in " + f.Path
	if f.Path == "" {
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

// Profile returns the profile in force and what chose it; an error if the file does not have it. Other faults of the
// file are ignored.
func (f UserFile) Profile() (string, Origin, error) {
	if len(f.profiles) == 0 {
		return "", Origin{}, f.Fault
	}
	return f.chosen(f.loader.environment, f.loader.flags)
}

// Has reports whether the file sets a key, known or not, in a profile.
func (f UserFile) Has(profile, key string) bool {
	_, n, _ := ParseYAML(f.Data) // nil if the text is not valid
	for _, name := range Place(profile, key) {
		own, _ := pairs(n, "")
		i := slices.IndexFunc(own, func(p pair) bool { return p.key == name })
		if i < 0 {
			return false
		}
		n = own[i].value
	}
	return true
}

// Text returns the value of a key in a profile of the file, as it is displayed; empty if it is not set.
func (f UserFile) Text(profile, key string) string {
	if v, ok := f.profiles[profile][key]; ok {
		return text(v.v)
	}
	return ""
}

// Holds reports whether the file sets a key in a profile to this secret.
func (f UserFile) Holds(profile, key string, secret Secret) bool {
	return f.profiles[profile][key].text() == secret.Reveal()
}

// shortestHidden is the minimum length, in bytes, of secrets that [UserFile.Hide] hides: shorter text may be elsewhere.
const shortestHidden = 8

// Hide replaces secrets in data with marks, for a copy that outlives this process. restore puts the secrets back.
func (f UserFile) Hide(data []byte) (hidden []byte, restore func([]byte) []byte) {
	var forth, back []string
	for _, name := range f.Profiles() {
		for _, v := range f.profiles[name] {
			s, isSecret := v.v.(Secret)
			if text := s.Reveal(); isSecret && len(text) >= shortestHidden && !slices.Contains(forth, text) {
				mark := fmt.Sprintf("kept-secret-%d", len(forth)/2+1)
				forth, back = append(forth, text, mark), append(back, mark, text)
			}
		}
	}
	restore = func(edited []byte) []byte { return []byte(strings.NewReplacer(back...).Replace(string(edited))) }
	hidden = []byte(strings.NewReplacer(forth...).Replace(string(data)))
	if !bytes.Equal(restore(hidden), data) { // it already contains a mark
		return data, func(edited []byte) []byte { return edited }
	}
	return hidden, restore
}

// Check returns why [Load] would refuse data as the user file: a [*KeyError] that names file. It checks every profile.
func (f UserFile) Check(data []byte, file string) error {
	made := f.loader.decodeUser(data, file)
	err := made.Fault
	for _, name := range made.Profiles() {
		err = cmp.Or(err, made.decided(name))
	}
	return err
}

// CheckChange returns why [Load] would refuse data, in which these keys of a profile are changed. An earlier fault in
// another setting is ignored.
func (f UserFile) CheckChange(data []byte, profile string, keys ...string) error {
	made := f.loader.decodeUser(data, f.Path)
	err := cmp.Or(made.Fault, made.decided(profile))
	fault, isFault := errors.AsType[*KeyError](err)
	if isFault && made.Fault == nil && !slices.Contains(keys, fault.Key) && f.Fault == nil && f.decided(profile) != nil {
		err = nil // the user's file had it before
	}
	return err
}

// decided checks the combined settings of a profile. Of flags and environment, only insecure_http counts.
func (f UserFile) decided(profile string) error {
	if _, _, err := f.chosen(); err != nil {
		return err
	}
	layers := []layer{f.profiles[DefaultProfile], f.profiles[profile]}
	for _, from := range []layer{f.loader.environment, f.loader.flags} {
		if v, ok := from["insecure_http"]; ok {
			layers = append(layers, layer{"insecure_http": v})
		}
	}
	_, err := f.loader.decide(layers)
	return err
}

// Value returns the value to write for a key: for a string, which has the form of the environment variable, the JSON
// types of the setting; any other value as it is. A secret as a string is refused. The error is a [*KeyError].
func (f UserFile) Value(key string, v any) (any, error) {
	var err error
	if t, isText := v.(string); isText {
		v, err = f.loader.fromString(key, t)
	} else if s, isSecret := v.(Secret); isSecret && key == "api_key" {
		err = checkAPIKey(s)
	}
	return v, at(err, key, Origin{Name: key})
}

// fromString decodes the value t of a key, which has the form of the environment variable, to JSON types.
func (l *loader) fromString(key, t string) (any, error) {
	s := settingOf(key)
	parent, name := named(key)
	isSecret, err := CheckKey(key)
	switch {
	case err != nil:
		return nil, err
	case parent.Kind == KindNames:
		_, err := parent.checkName(name, t, map[string]string{})
		return t, err
	case parent.Key != "":
		return nil, wrong("can't be set alone", "write all of "+parent.Key+" into the file with `waybill config edit`")
	case isSecret:
		return nil, wrong("is a secret", "edit the file by hand, or set the path of a file that contains it")
	case t == "":
		return nil, wrong("must be "+s.codec().want, "")
	}
	v, err := s.fromVariable(t)
	if err != nil {
		return nil, err
	}
	v = l.withAbsolutePaths(s, v, l.src.WorkDir)
	written, n := plain(v), &yaml.Node{}
	_ = n.Encode(written)                                                        // JSON types always encode
	if again, err := s.fromNode(n); err != nil || !reflect.DeepEqual(again, v) { // such as a number of 20 digits
		return nil, wrong("can't be written to the file unchanged", "edit the file by hand")
	}
	return written, nil
}
