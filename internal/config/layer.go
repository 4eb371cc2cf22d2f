package config

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/disk"
)

type value struct {
	v      any
	origin Origin
}

type layer map[string]value

type loader struct {
	src         Sources
	env         map[string]string
	paths       Paths
	flags       layer    // that were given
	environment layer    // variables that are set and not empty
	sameKey     bool     // --same-key
	ignored     []string // warnings about files that are not used
}

func newLoader(src Sources) (*loader, error) {
	paths, err := Locate(src)
	if err != nil {
		return nil, err
	}
	l := &loader{src: src, env: environment(src.Env, runtime.GOOS), paths: paths, flags: layer{}, environment: layer{}}
	for _, f := range src.Flags {
		if f.Name == configFlag || len(f.Values) == 0 {
			continue
		}
		if f.Name == sameKeyFlag {
			l.sameKey = f.Values[0] == "true"
			continue
		}
		o := Origin{Level: FromFlag, Name: "--" + f.Name}
		i := slices.IndexFunc(table(), func(s Setting) bool { return s.Flag != "" && s.Flag == f.Name })
		if i < 0 {
			return nil, at(wrong("is not a setting", ""), "", o)
		}
		s := table()[i]
		if f.Values[len(f.Values)-1] == "" {
			fault := wrong("must be "+s.codec().want+" that is not empty", "omit the flag to use the configured value")
			return nil, at(fault, s.Key, o)
		}
		v, err := s.fromTexts(f.Values)
		if err != nil {
			return nil, at(err, s.Key, o)
		}
		l.flags[s.Key] = value{l.withAbsolutePaths(s, v, src.WorkDir), o}
	}
	for _, s := range table() {
		if t := l.env[s.Env]; t != "" {
			o := Origin{Level: FromEnv, Name: s.Env}
			v, err := s.fromVariable(t)
			if err != nil {
				return nil, at(err, s.Key, o)
			}
			l.environment[s.Key] = value{l.withAbsolutePaths(s, v, src.WorkDir), o}
		}
	}
	return l, nil
}

func settingOf(key string) Setting {
	i := slices.IndexFunc(table(), func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}
	}
	return table()[i]
}

func (l *loader) withAbsolutePaths(s Setting, v any, folder string) any {
	if path, ok := v.(string); ok && s.Kind == KindPath && (s.Key != "store" || !IsServer(path)) {
		return absolute(path, folder, l.src.Home)
	}
	if places, ok := v.([]any); ok && s.Key == "webhook.secrets" {
		for i, place := range places {
			place, _ := place.(string)
			if path, isFile := strings.CutPrefix(place, "file:"); isFile {
				places[i] = "file:" + absolute(path, folder, l.src.Home)
			}
		}
	}
	return v
}

// project makes the layer of the project file; an empty one without the file, and where
// another user put it into a folder that is not theirs, such as that for temporary files:
// that is a warning. The file may set what its settings allow, and nothing else.
func (l *loader) project() (layer, error) {
	path := l.paths.Project
	if !l.paths.ProjectExists || l.projectIsUser() {
		return nil, nil
	}
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		if info, err := stat(path); err == nil {
			if who := disk.ForeignOwner(path, info).Text; who != "" {
				l.ignored = append(l.ignored, path+" is ignored: "+who)
				return nil, nil
			}
		}
	}
	o := Origin{Level: FromProject, File: path}
	data, _, err := readSettings(path)
	var root *yaml.Node
	if err == nil {
		root, err = parse(data)
	}
	if err == nil {
		err = refuseReserved(root)
	}
	if err != nil {
		return nil, at(err, "", o)
	}
	return l.fill(root, o)
}

// projectIsUser reports whether the project file was named as the user file: then it is that, whole.
func (l *loader) projectIsUser() bool {
	if l.paths.UserOrigin.Level == FromDefault {
		return false
	}
	user, errUser := os.Stat(l.paths.User)
	project, errProject := os.Stat(l.paths.Project)
	return errUser == nil && errProject == nil && os.SameFile(user, project)
}

func refuseReserved(root *yaml.Node) error {
	own, err := pairs(root, "a mapping of keys and values")
	if err != nil {
		return err
	}
	for _, p := range own {
		i := slices.IndexFunc(table(), func(s Setting) bool {
			return strings.HasPrefix(s.Key+".", p.key+".") || strings.HasPrefix(p.key+".", s.Key+".")
		})
		why := ""
		switch {
		case p.key == profilesKey:
			why = whyAddress
		case i >= 0:
			why = table()[i].Why // in a section, all settings have one or none
		}
		if why != "" {
			const hint = "remove it here; set it in the user file, with a flag or in the environment"
			return &KeyError{Key: p.key, Line: p.line, Message: "not allowed in a project file: " + why, Hint: hint}
		}
	}
	return nil
}

// fill decodes the settings below a mapping. It returns the ones without fault, and the first error.
func (l *loader) fill(root *yaml.Node, o Origin) (layer, error) {
	made, err := decodeKeys(root, table(), o)
	for key, val := range made {
		if key == "api_key_file" && val.v == stdinName && err == nil {
			err = at(wrong("standard input can't be set in a file", "pass --api-key-file -"), key, val.origin)
		}
		val.v = l.withAbsolutePaths(settingOf(key), val.v, filepath.Dir(o.File))
		made[key] = val
	}
	return made, err
}

// warnings names the variables that look like settings and are none. Variables in used are read.
func (l *loader) warnings(used []string) []string {
	for _, s := range table() {
		used = append(used, s.Env)
	}
	for _, v := range Variables() {
		used = append(used, v.Name)
	}
	var known []string // without the prefix that all share
	for _, name := range used {
		if rest, ok := strings.CutPrefix(name, EnvPrefix); ok {
			known = append(known, rest)
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		rest, ok := strings.CutPrefix(name, EnvPrefix)
		if !ok || l.env[name] == "" || slices.Contains(known, rest) {
			continue
		}
		w := "environment variable " + quoted(name) + " is not a setting and is ignored"
		if n := Nearest(rest, known); n != "" {
			w += ", did you mean " + EnvPrefix + n + "?"
		}
		all = append(all, w)
	}
	return all
}
