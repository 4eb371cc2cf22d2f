package config

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
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
	flags       layer    // the given flags
	environment layer    // variables that are set and not empty
	sameKey     bool     // --same-key
	ignored     []string // warnings about ignored files
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

// project returns the layer of the project file; nil if there is none. A file that another user put into a folder that
// is not theirs, such as the folder for temporary files, is ignored with a warning. It is an error if the file sets a
// setting that is not allowed there.
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
		_, root, err = ParseYAML(data)
	}
	if err == nil {
		err = refuseReserved(root)
	}
	if err != nil {
		return nil, at(err, "", o)
	}
	return l.fill(root, o)
}

// projectIsUser reports whether a flag or variable names the project file as the user file. Then it is only that.
func (l *loader) projectIsUser() bool {
	if l.paths.UserOrigin.Level == FromDefault {
		return false
	}
	user, errUser := os.Stat(l.paths.User)
	project, errProject := os.Stat(l.paths.Project)
	return errUser == nil && errProject == nil && os.SameFile(user, project)
}

func refuseReserved(root *yaml.Node) error {
	own, _ := pairs(root, "") // fill refuses any other form
	for _, p := range own {
		i := slices.IndexFunc(table(), func(s Setting) bool {
			return strings.HasPrefix(s.Key+".", p.key+".") || strings.HasPrefix(p.key+".", s.Key+".")
		})
		why := ""
		switch {
		case p.key == profilesKey:
			why = whyAddress
		case i >= 0:
			why = table()[i].Why // all settings of a section have a reason, or none has
		}
		if why != "" {
			const hint = "remove it here; set it in the user file, with a flag or in the environment"
			return &KeyError{Key: p.key, Line: p.line, Message: "not allowed in a project file: " + why, Hint: hint}
		}
	}
	return nil
}

// fill decodes the settings in a mapping. It returns the valid ones and the first error.
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

// warnings returns a warning for each variable that is named like a setting but is not read. Those in used are read.
func (l *loader) warnings(used []string) []string {
	for _, s := range table() {
		used = append(used, s.Env)
	}
	for _, v := range Variables() {
		used = append(used, v.Name)
	}
	var known []string // without the common prefix
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

// decide merges the layers, lowest first, over the defaults and decodes the result.
func (l *loader) decide(layers []layer) (Config, error) {
	c := Config{sameKey: l.sameKey, origins: map[string]Origin{}, lookup: l.lookup}
	var err error
	if c.key, err = findAPIKey(layers); err != nil {
		return Config{}, err
	}
	v := viper.New()
	saved, ownStatuses := names{}, names{}
	for _, s := range table() {
		v.SetDefault(s.Key, s.preset)
	}
	for _, made := range layers {
		own, _ := made[mapsKey].v.(names)
		maps.Copy(saved, own)
	}
	for _, made := range layers {
		if err := c.apply(v, made, saved); err != nil {
			return Config{}, err
		}
		if named := made["statuses"]; named.origin.Level != FromProject {
			own, _ := named.v.(names)
			ownStatuses = joinNames(settingOf("statuses"), ownStatuses, own)
		}
	}
	v.Set("own_statuses", ownStatuses)
	if err := l.deriveValues(v, &c); err != nil {
		return Config{}, err
	}
	// The values already have their types: nothing is converted.
	exactly := func(d *mapstructure.DecoderConfig) { d.WeaklyTypedInput, d.DecodeHook = false, nil }
	if err := v.Unmarshal(&c, exactly); err != nil {
		return Config{}, fmt.Errorf("decode settings: %w", err)
	}
	if err := c.refuseAuthorities(); err != nil {
		return Config{}, err
	}
	named := c.secretsAt("env:")
	c.hook, _ = v.Get("webhook.secret").(Secret)
	c.entries = c.list(v)
	c.warnings = slices.Concat(l.ignored, l.warnings(named))
	o, others := c.origins["webhook.secret"], len(c.Webhook.Secrets) > 0
	if o.Level == FromEnv && others && !slices.Contains(named, o.Name) {
		c.warnings = append(c.warnings, "environment variable "+o.Name+" is ignored: webhook.secrets names other secrets")
	}
	return c, nil
}

// refuseAuthorities refuses a CA file that others may change, as it decides who can read the key. It may be missing.
func (c *Config) refuseAuthorities() error {
	info, err := os.Stat(c.CAFile)
	if c.CAFile == "" || err != nil {
		return nil //nolint:nilerr // see above
	}
	err = refuseChangers(c.CAFile, disk.ChangersOf(c.CAFile, info))
	return at(in(c.CAFile, err), "ca_file", c.Origin("ca_file"))
}

func (l *loader) lookup(name string) (text string, isSet bool) {
	text, isSet = l.env[variable(name, runtime.GOOS)]
	return text, isSet
}

func (c *Config) apply(v *viper.Viper, made layer, saved names) error {
	for key, val := range made {
		if slices.Contains(apiKeySettings(), key) && val != c.key.value {
			continue // only one layer's key counts, see findAPIKey
		}
		c.origins[key] = val.origin
		s := settingOf(key)
		if own, ok := val.v.(names); ok {
			own, err := expandMap(own, saved)
			if err != nil {
				return at(err, key, val.origin)
			}
			for name := range own {
				c.origins[key+"."+name] = val.origin
			}
			under, _ := v.Get(key).(names)
			val.v = joinNames(s, under, own)
		}
		v.Set(key, val.v)
	}
	return nil
}

func joinNames(s Setting, under, over names) names {
	taken := map[string]bool{}
	for name := range over {
		taken[s.foldedName(name)] = true
	}
	all := names{}
	maps.Copy(all, under)
	maps.DeleteFunc(all, func(name string, _ any) bool { return taken[s.foldedName(name)] })
	maps.Copy(all, over)
	return all
}

// mapsKey is the setting that holds saved mappings; savedMark marks the name of one.
const (
	mapsKey   = "maps"
	savedMark = "@"
)

// expandMap replaces the name of a saved mapping with its fields. Fields that own sets itself win.
func expandMap(own, saved names) (names, error) {
	name, ok := own[savedMark].(string)
	if !ok {
		return own, nil
	}
	mapping, ok := saved[name].(names)
	if !ok {
		known := slices.Sorted(maps.Keys(saved))
		hint := "save one with --map FIELD=HEADER --save-map NAME"
		if len(known) > 0 {
			hint = "saved: " + strings.Join(known, ", ")
		}
		return nil, wrong(didYouMean("no saved mapping "+savedMark+short(name), name, known), hint)
	}
	whole := maps.Clone(mapping)
	maps.Copy(whole, own)
	delete(whole, savedMark)
	return whole, nil
}

func (l *loader) deriveValues(v *viper.Viper, c *Config) error {
	if raw := v.GetString("base_url"); raw != "" {
		c.InsecureHTTP = v.GetBool("insecure_http")
		normal, err := c.CheckBaseURL(raw)
		if err != nil {
			return at(err, "base_url", c.origins["base_url"])
		}
		v.Set("base_url", normal)
	}
	verify := "observe"
	if v.GetString("webhook.scheme") != "" {
		verify = "enforce"
	}
	for key, derived := range map[string]string{
		"account":        v.GetString("base_url"),
		"store":          storeDefault(runtime.GOOS, l.env, l.src.Home, v.GetString("profile")),
		"webhook.verify": verify,
	} {
		if v.GetString(key) == "" {
			v.Set(key, derived)
			delete(c.origins, key)
		}
	}
	return nil
}
