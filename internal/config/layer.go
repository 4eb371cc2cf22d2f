package config

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/disk"
)

// value is a decoded value and its place.
type value struct {
	v      any
	origin Origin
}

// layer is what one level sets, by key.
type layer map[string]value

// loader holds what decoding a layer needs.
type loader struct {
	src   Sources
	env   map[string]string
	paths Paths
	table []Setting
}

func newLoader(src Sources) (*loader, error) {
	paths, err := Locate(src)
	return &loader{src: src, env: environment(src.Env, runtime.GOOS), paths: paths, table: table()}, err
}

// find returns the setting of a key, or the zero one.
func (l *loader) find(key string) Setting {
	i := slices.IndexFunc(l.table, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}
	}
	return l.table[i]
}

func (l *loader) keys() []string {
	all := make([]string, len(l.table))
	for i, s := range l.table {
		all[i] = s.Key
	}
	return all
}

// flags makes the layer of the flags that were given.
func (l *loader) flags() (layer, error) {
	made := layer{}
	for _, f := range l.src.Flags {
		if !f.Changed || f.Name == configFlag || len(f.Values) == 0 {
			continue
		}
		o := Origin{Level: FromFlag, Name: "--" + f.Name}
		i := slices.IndexFunc(l.table, func(s Setting) bool { return s.Flag != "" && s.Flag == f.Name })
		if i < 0 {
			return made, wrong("is not a setting", "").at("", o)
		}
		s := l.table[i]
		if last := f.Values[len(f.Values)-1]; last == "" {
			return made, wrong("must be "+s.want()+" that is not empty", "omit the flag to use the configured value").at(s.Key, o)
		}
		v, fault := s.fromTexts(f.Values)
		if fault != nil {
			return made, fault.at(s.Key, o)
		}
		made[s.Key] = value{l.withAbsolutePaths(s, v, l.src.WorkDir), o}
	}
	return made, nil
}

// environment makes the layer of the variables that are set and not empty.
func (l *loader) environment() (layer, error) {
	made := layer{}
	for _, s := range l.table {
		t := l.env[s.Env]
		if t == "" {
			continue
		}
		o := Origin{Level: FromEnv, Name: s.Env}
		v, fault := s.fromVariable(t)
		if fault != nil {
			return made, fault.at(s.Key, o)
		}
		made[s.Key] = value{l.withAbsolutePaths(s, v, l.src.WorkDir), o}
	}
	return made, nil
}

// withAbsolutePaths makes the paths in a value absolute.
func (l *loader) withAbsolutePaths(s Setting, v any, folder string) any {
	if path, ok := v.(string); ok && s.Kind == KindPath && (s.Key != "store" || !IsServer(path)) {
		return absolute(path, folder, l.src.Home)
	}
	if places, ok := v.([]string); ok && s.Key == "webhook.secrets" {
		for i, place := range places {
			if path, isFile := strings.CutPrefix(place, "file:"); isFile {
				places[i] = "file:" + absolute(path, folder, l.src.Home)
			}
		}
	}
	return v
}

// project makes the layer of the project file; an empty one without the file.
// The file may set what its settings allow, and nothing else.
func (l *loader) project() (layer, error) {
	made := layer{}
	path := l.paths.Project
	if !l.paths.ProjectExists || l.projectIsUser() {
		return made, nil
	}
	o := Origin{Level: FromProject, File: path}
	data, info, fault := readSettings(path)
	if fault == nil {
		fault = refuseChangers(path, disk.ForeignOwner(path, info))
	}
	if fault != nil {
		return made, fault.at("", o)
	}
	root, fault := parse(data)
	if fault != nil {
		return made, fault.at("", o)
	}
	if root == nil {
		return made, nil
	}
	if fault := l.refuseReserved(root); fault != nil {
		return made, fault.at("", o)
	}
	return made, l.fill(made, root, o)
}

// projectIsUser reports whether somebody named the project file as the user
// file: then it is that, whole.
func (l *loader) projectIsUser() bool {
	if l.paths.UserOrigin.Level == FromDefault {
		return false
	}
	user, err := os.Stat(l.paths.User)
	if err != nil {
		return false
	}
	project, err := os.Stat(l.paths.Project)
	return err == nil && os.SameFile(user, project)
}

// refuseReserved refuses the first key that a project file may not set.
func (l *loader) refuseReserved(root *yaml.Node) *KeyError {
	own, fault := pairs(root, "a mapping of keys and values")
	if fault != nil {
		return fault
	}
	for _, p := range own {
		why := whyAddress
		if p.key != profilesKey {
			why = l.whyNot(p.key)
		}
		if why != "" {
			return &KeyError{Key: p.key, Line: p.line, Message: "not allowed in a project file: " + why, Hint: "remove it here; set it in the user file, with a flag or in the environment"}
		}
	}
	return nil
}

// whyNot says why the project file may not hold key, a setting or a section;
// nothing if it may, or if no such key is known.
func (l *loader) whyNot(key string) string {
	why := ""
	for _, s := range l.table {
		if s.Key == key || strings.HasPrefix(s.Key, key+".") || strings.HasPrefix(key, s.Key+".") {
			if s.Project {
				return ""
			}
			why = s.Why
		}
	}
	return why
}

// fill decodes the settings below a mapping into made.
func (l *loader) fill(made layer, root *yaml.Node, o Origin) error {
	all, fault := flatten(root, "", l.keys())
	if fault != nil {
		return fault.at("", o)
	}
	for _, p := range all {
		place := o
		place.Line = p.line
		s := l.find(p.key)
		v, fault := s.fromNode(p.value)
		if fault != nil {
			return fault.at(p.key, place)
		}
		if s.Key == "api_key_file" && v == stdinName {
			return wrong("standard input can't be set in a file", "pass --api-key-file -").at(p.key, place)
		}
		made[p.key] = value{l.withAbsolutePaths(s, v, filepath.Dir(o.File)), place}
	}
	return nil
}

// warnings returns the variables that look like settings and are none.
func (l *loader) warnings(used []string) []Warning {
	known := slices.Clone(used)
	for _, s := range l.table {
		known = append(known, s.Env)
	}
	for _, v := range Variables() {
		known = append(known, v.Name)
	}
	var all []Warning
	for name, v := range l.env {
		if strings.HasPrefix(name, EnvPrefix) && v != "" && !slices.Contains(known, name) {
			all = append(all, Warning{Name: name, Suggestion: nearestVariable(name, known)})
		}
	}
	slices.SortFunc(all, func(a, b Warning) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// nearestVariable compares what follows the prefix that all share.
func nearestVariable(name string, known []string) string {
	var rest []string
	for _, k := range known {
		if r, ok := strings.CutPrefix(k, EnvPrefix); ok {
			rest = append(rest, r)
		}
	}
	if n := Nearest(strings.TrimPrefix(name, EnvPrefix), rest); n != "" {
		return EnvPrefix + n
	}
	return ""
}

// Warning names an environment variable that begins like a setting and is none.
type Warning struct {
	Name       string
	Suggestion string // the nearest setting's variable; empty if none is near
}

// String words the warning.
func (w Warning) String() string {
	s := "environment variable " + strconv.Quote(short(w.Name)) + " is not a setting and is ignored"
	if w.Suggestion != "" {
		s += ", did you mean " + w.Suggestion + "?"
	}
	return s
}
