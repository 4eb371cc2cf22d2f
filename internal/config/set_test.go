package config_test

import (
	"cmp"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const absentValue = `[{"status":200,"message":"none: \"x\""},{"path":"","equals":{}},{"path":"/a~1b","equals":null}]`

func absentWanted() []tracking.Absent {
	return []tracking.Absent{
		{Status: 200, Message: `none: "x"`},
		{Match: tracking.Match{Path: "", Equals: "{}"}},
		{Match: tracking.Match{Path: "/a~1b", Equals: "null"}},
	}
}

// userFile is a home with a user file in it; no file if it is empty.
func userFile(t *testing.T, text string) (config.Sources, string) {
	t.Helper()
	home := t.TempDir()
	path := filepath.Join(home, ".config", "waybill", "config.yaml")
	if text != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Sources{WorkDir: t.TempDir(), Home: home}, path
}

func TestSet(t *testing.T) {
	param := config.Change{Key: "query.tracking_number_param", Value: "number"}
	absent := config.Change{Key: "query.absent", Value: absentValue}
	tests := []struct {
		name, file, profile string
		kept                []string // text that must still stand there
	}{
		{"no file", "", config.DefaultProfile, nil},
		{"no file, a profile", "", "test", nil},
		{"comments alone", "# mine\n# to keep\n", config.DefaultProfile, []string{"# mine", "# to keep"}},
		{"a file", "# mine\nbase_url: https://x.example # live\napi_key: s3cret\n", config.DefaultProfile, []string{"# mine", "https://x.example # live", "api_key: s3cret"}},
		{"a section", "query: # how\n  tracking_number_param: old # said support\n", config.DefaultProfile, []string{"# how", "number # said support"}},
		{"an empty section", "query:\nquiet: true\n", config.DefaultProfile, []string{"quiet: true"}},
		{"a profile", "quiet: true\nprofiles:\n  test:\n    base_url: https://t.example # test\n  live: {quiet: false}\n", "test", []string{"quiet: true", "https://t.example # test", "live:"}},
		{"in one line", `{"base_url": "https://x.example", "query": {"tracking_number_param": "old"}}`, config.DefaultProfile, []string{`"https://x.example"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, path := userFile(t, tt.file)
			for range 2 { // again changes nothing
				if got, err := config.Set(src, tt.profile, param, absent); err != nil || got != path {
					t.Fatalf("%q, %v; want %q", got, err, path)
				}
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range tt.kept {
				if !strings.Contains(string(data), k) {
					t.Errorf("%q is gone from\n%s", k, data)
				}
			}
			src.Flags = []config.Flag{{Name: "profile", Values: []string{tt.profile}}}
			c, err := config.Load(src)
			if err != nil {
				t.Fatalf("%v in\n%s", err, data)
			}
			if c.Query.TrackingNumberParam != "number" || !reflect.DeepEqual(c.Query.Absent, absentWanted()) {
				t.Errorf("read again: %+v\n%s", c.Query, data)
			}
			if got := cmp.Or(c.Origin("query.absent").Profile, config.DefaultProfile); got != tt.profile {
				t.Errorf("it stands at %v", c.Origin("query.absent"))
			}
			info, err := os.Stat(path)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	tests := []struct{ name, file, key, value, want string }{
		{"unknown key", "", "query.absnt", "[]", "did you mean query.absent?"},
		{"a secret", "", "api_key", "k", "is a secret"},
		{"nothing", "", "query.tracking_number_param", "", "must be"},
		{"no such value", "", "concurrency", "many", "must be"},
		{"a number that no file can hold", "", "query.absent", `[{"path":"/n","equals":12345678901234567890}]`, "can't be written to the file unchanged"},
		{"bytes that are no text, as a path", "", "ca_file", "a\xff", "can't be written to the file unchanged"},
		{"an entry that asks nothing", "", "query.absent", "[{}]", "an entry must have"},
		{"a broken file", "query: [\n", "query.tracking_number_param", "n", "not valid YAML"},
		{"no section", "query: 7\n", "query.tracking_number_param", "n", "must be a mapping of keys and values"},
		{"an alias", "a: &a [*a]\n", "output", "csv", "anchors and aliases"},
		{"another fault in the file", "colour: red\n", "query.tracking_number_param", "n", "colour: unknown key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, path := userFile(t, tt.file)
			_, err := config.Set(src, config.DefaultProfile, config.Change{Key: tt.key, Value: tt.value})
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.file != "" && !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("error %v; want %q", err, tt.want)
			}
			data, _ := os.ReadFile(path)
			if string(data) != tt.file {
				t.Errorf("the file became %q", data)
			}
		})
	}
}

// odd is a scheme in which nothing has its default.
func odd() webhook.Scheme {
	return webhook.Scheme{
		Kind: "digest", Algorithm: "sha512", Key: webhook.Key{StripPrefix: "yes", Encoding: "utf8", Normalize: "nfkd"},
		Signed:     "{secret}\n: #{body} 'x' \"y\" ",
		Signature:  webhook.Signature{From: "query:a: b", Format: "kv", Separator: "|", Tag: "1", Prefix: " #=", Encoding: "base64url"},
		Timestamp:  webhook.Timestamp{From: "sig:true", Unit: "ms", Tolerance: 90 * time.Second},
		PublicURL:  "https://hooks.example/in?a=1&b={2}",
		AcceptWeak: true,
	}
}

// A new file is its owner's alone, and every part of a scheme is read as it was written.
func TestSetMakesTheFile(t *testing.T) {
	src, path := userFile(t, "")
	got, err := config.Set(src, config.DefaultProfile,
		config.Change{Key: "webhook.schemes.Mine: 1", Value: odd()},
		config.Change{Key: "webhook.scheme", Value: "Mine: 1"},
		config.Change{Key: "webhook.verify", Value: "observe"},
		config.Change{Key: "webhook.secrets", Value: []string{"env:A", "file:/run/b"}})
	if err != nil || got != path {
		t.Fatalf("wrote %s, %v; want %s", got, err, path)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Webhook{Verify: "observe", Scheme: "Mine: 1", Secrets: []string{"env:A", "file:/run/b"}, Schemes: map[string]webhook.Scheme{"Mine: 1": odd()}}
	if !reflect.DeepEqual(c.Webhook, want) {
		t.Errorf("read back %+v\nwant %+v", c.Webhook, want)
	}
}
