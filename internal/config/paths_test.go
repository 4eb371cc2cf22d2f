package config_test

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestLocate(t *testing.T) {
	p := newPlace(t)
	xdg := filepath.Join(p.home, "xdg")
	for _, tt := range []struct {
		name  string
		env   []string
		flags []config.Flag
		user  string
		level config.Level
	}{
		{"home", nil, nil, p.userPath(), config.FromDefault},
		{"XDG", []string{"XDG_CONFIG_HOME=" + xdg}, nil, filepath.Join(xdg, "waybill", "config.yaml"), config.FromDefault},
		{"relative XDG is ignored", []string{"XDG_CONFIG_HOME=xdg"}, nil, p.userPath(), config.FromDefault},
		{"variable", []string{"WAYBILL_CONFIG=c.yaml", "XDG_CONFIG_HOME=" + xdg}, nil, filepath.Join(p.work, "c.yaml"), config.FromEnv},
		{"flag", []string{"WAYBILL_CONFIG=c.yaml"}, []config.Flag{flag("config", "~/d.yaml")}, filepath.Join(p.home, "d.yaml"), config.FromFlag},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := config.Locate(p.sources(tt.env, tt.flags...))
			if err != nil || got.User != tt.user || got.UserOrigin.Level != tt.level || got.UserExists || got.ProjectExists {
				t.Errorf("%+v, %v; want %s", got, err, tt.user)
			}
			if got.Project != p.projectPath() {
				t.Errorf("project file %s, want %s", got.Project, p.projectPath())
			}
		})
	}
	// It works where loading does not.
	p.user("[")
	p.project("[")
	got, err := config.Locate(p.sources(nil))
	if err != nil || !got.UserExists || !got.ProjectExists {
		t.Errorf("%+v, %v; want both files", got, err)
	}
	if got, err := config.Locate(config.Sources{}); got != (config.Paths{}) || err != nil {
		t.Errorf("nothing known: %+v, %v", got, err)
	}
}

// Only the working folder is looked at, not the folders above it.
func TestProjectFileAboveIsIgnored(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(filepath.Dir(p.work), config.ProjectFile), "output: json\n", 0o644)
	if c := p.load(nil); c.Output != "table" {
		t.Errorf("output %q", c.Output)
	}
}

func TestStorePath(t *testing.T) {
	p := newPlace(t)
	data := filepath.Join(p.home, "data")
	for _, tt := range []struct {
		name  string
		user  string
		env   []string
		flags []config.Flag
		want  string
	}{
		{"XDG", "", []string{"XDG_DATA_HOME=" + data}, nil, filepath.Join(data, "waybill", "waybill.db")},
		{"user file, relative to it", "store: w.db\n", nil, nil, filepath.Join(filepath.Dir(p.userPath()), "w.db")},
		{"environment, relative to the working folder", "store: w.db\n", []string{"WAYBILL_STORE=e.db"}, nil, filepath.Join(p.work, "e.db")},
		{"flag", "", []string{"WAYBILL_STORE=e.db"}, []config.Flag{flag("store", "sub/../f.db")}, filepath.Join(p.work, "f.db")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.user(tt.user)
			if got, err := p.load(tt.env, tt.flags...).StorePath(); got != tt.want || err != nil {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
	c, err := config.Load(config.Sources{WorkDir: p.work, Env: []string{"LOCALAPPDATA="}})
	if err != nil {
		t.Fatal(err)
	}
	var key *config.KeyError
	if got, err := c.StorePath(); !errors.As(err, &key) || key.Key != "store" || key.Hint == "" {
		t.Errorf("without a home: %q, %v", got, err)
	}
}

func TestFromOS(t *testing.T) {
	for _, name := range []string{"WAYBILL_CONFIG", "WAYBILL_PROFILE", "XDG_CONFIG_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("WAYBILL_ACCOUNT", "here")
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	c, err := config.Load(config.FromOS([]config.Flag{flag("output", "json")}))
	if err != nil || c.Account != "here" || c.Output != "json" {
		t.Errorf("account %q, output %q, %v", c.Account, c.Output, err)
	}
}

// One name, three spellings.
func TestSettings(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range config.Settings() {
		for _, name := range []string{s.Key, s.Env, "--" + s.Flag} {
			if name != "--" && seen[name] {
				t.Errorf("%s appears twice", name)
			}
			seen[name] = true
		}
		if s.Help == "" || s.Kind == "" {
			t.Errorf("%+v is not whole", s)
		}
		if s.Kind == config.KindSecret && s.Flag != "" {
			t.Errorf("%s is a secret with a flag", s.Key)
		}
	}
	if !seen["WAYBILL_QUERY_TRACKING_NUMBER_PARAM"] || !seen["--base-url"] {
		t.Errorf("names are %v", seen)
	}
	for _, v := range config.Variables() {
		if v.Name == "" || v.Help == "" || seen[v.Name] {
			t.Errorf("%+v is not whole, or a setting", v)
		}
	}
}

func TestGetUnknown(t *testing.T) {
	_, err := newPlace(t).load(nil).Get("base-url")
	if err == nil || err.Error() != `unknown key "base-url", did you mean base_url?` {
		t.Errorf("%v", err)
	}
}

func TestListHoldsEverySetting(t *testing.T) {
	c := newPlace(t).load(nil)
	var got, want []string
	for _, e := range c.List() {
		got = append(got, e.Key)
	}
	for _, s := range config.Settings() {
		want = append(want, s.Key)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A setting without a field in Config, or with a mistyped tag, would have its zero value for whoever reads it.
func TestEverySettingHasAField(t *testing.T) {
	fields := map[string]bool{}
	var add func(prefix string, of reflect.Type)
	add = func(prefix string, of reflect.Type) {
		for f := range of.Fields() {
			tag := f.Tag.Get("mapstructure")
			if tag == "" {
				continue
			}
			fields[prefix+tag] = true
			if f.Type.Kind() == reflect.Struct {
				add(prefix+tag+".", f.Type)
			}
		}
	}
	add("", reflect.TypeFor[config.Config]())
	for _, s := range config.Settings() {
		if strings.Contains(s.Key, "api_key") || s.Key == "webhook.secret" {
			continue // read by methods, from where the user keeps them
		}
		if !fields[s.Key] {
			t.Errorf("no field of Config has the tag of %s", s.Key)
		}
	}
}
