package edit_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
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
	param := edit.Change{Key: "query.tracking_number_param", Value: "number"}
	absent := edit.Change{Key: "query.absent", Value: absentValue}
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
				if got, err := edit.Set(src, tt.profile, param, absent); err != nil || got != path {
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
			_, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: tt.key, Value: tt.value})
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
	got, err := edit.Set(src, config.DefaultProfile,
		edit.Change{Key: "webhook.schemes.Mine: 1", Value: odd()},
		edit.Change{Key: "webhook.scheme", Value: "Mine: 1"},
		edit.Change{Key: "webhook.verify", Value: "observe"},
		edit.Change{Key: "webhook.secrets", Value: []string{"env:A", "file:/run/b"}})
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

func TestSetSecretsAndNames(t *testing.T) {
	src, path := userFile(t, "# mine\ncarriers:\n  DHL: dhl # parcels\n")
	_, err := edit.Set(src, config.DefaultProfile,
		edit.Change{Key: "api_key", Value: config.NewSecret("s3cret: #1")},
		edit.Change{Key: "carriers.St. Post", Value: "post"},
		edit.Change{Key: "carriers.DHL", Value: "dhl-de"},
		edit.Change{Key: "map.refer_id", Value: "Order No"})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	want := "# mine\ncarriers:\n  DHL: dhl-de # parcels\n  St. Post: post\napi_key: 's3cret: #1'\nmap:\n  referId: Order No\n"
	if string(data) != want {
		t.Errorf("the file is\n%s\nwant\n%s", data, want)
	}
	c, err := config.Load(src)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := c.ReadAPIKey(nil, nil); key.Secret.Reveal() != "s3cret: #1" || err != nil {
		t.Errorf("key %q, %v", key.Secret.Reveal(), err)
	}
}

func TestUnset(t *testing.T) {
	const before = `# waybill of the shop

# how fast
rate: 2 # per second
quiet: true
query:
  # said support
  tracking_number_param: number
profiles:
  test:
    # the other service
    base_url: https://t.example
carriers: {DHL: dhl, UPS: ups}
nonsense: 1
`
	src, path := userFile(t, before)
	if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "rate"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a file that would still be refused: %v", err)
	}
	steps := []struct{ profile, key string }{
		{config.DefaultProfile, "nonsense"},
		{config.DefaultProfile, "rate"},
		{config.DefaultProfile, "query.tracking_number_param"},
		{config.DefaultProfile, "carriers.UPS"},
		{"test", "base_url"},
		{config.DefaultProfile, "timeout"}, // not there
	}
	for _, s := range steps {
		if _, err := edit.Set(src, s.profile, edit.Change{Key: s.key}); err != nil {
			t.Fatalf("%s: %v", s.key, err)
		}
	}
	const want = `# waybill of the shop

# how fast
quiet: true
# said support
profiles:
  test: {}
  # the other service
carriers: {DHL: dhl}
`
	if data, _ := os.ReadFile(path); string(data) != want {
		t.Errorf("the file is\n%s\nwant\n%s", data, want)
	}
	for _, key := range []string{"quiet", "carriers", "profiles"} {
		if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(path); strings.ContainsAny(string(data), "{}") || !strings.Contains(string(data), "# how fast") {
		t.Errorf("all removed, the file is\n%s", data)
	}
	if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "rate", Value: "3"}); err != nil {
		t.Fatal(err)
	}
}

// What Load would refuse is not written: not only values of a wrong type, also
// those that contradict others.
func TestSetRefusesWhatLoadWould(t *testing.T) {
	tests := []struct{ name, file, key, value, want string }{
		{"http", "", "base_url", "http://shop.example", "http would send the API key unencrypted"},
		{"no URL", "quiet: true\n", "base_url", "shop", "not a URL"},
		{"two keys", "api_key: s3cret\n", "api_key_file", "key", "api_key_file: conflicts with api_key"},
		{"two keys, one in the keyring", "api_key: s3cret\n", "api_key_keyring", "shop", "api_key_keyring: conflicts with api_key"},
		{"no such profile", "profiles: {test: {quiet: true}}\n", "profile", "tset", "no profile"},
		{"a name twice", "carriers: {UPS: ups}\n", "carriers.ups", "x", "twice"},
		{"a name that is none", "", "map.colour", "x", "unknown name"},
		{"http after all", "base_url: http://shop.example\ninsecure_http: true\n", "insecure_http", "false", "http would send"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src, path := userFile(t, tt.file)
			_, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: tt.key, Value: tt.value})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("error %v; want %q", err, tt.want)
			}
			if data, _ := os.ReadFile(path); string(data) != tt.file {
				t.Errorf("the file became %q", data)
			}
		})
	}
}

// A fault that is there already does not keep other settings from being set.
func TestSetBesideAFault(t *testing.T) {
	src, _ := userFile(t, "base_url: http://shop.example\n")
	if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "rate", Value: "3"}); err != nil {
		t.Error(err)
	}
	src.Flags = []config.Flag{{Name: "insecure-http", Values: []string{"true"}}}
	if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "base_url", Value: "http://other.example"}); err != nil {
		t.Errorf("with --insecure-http: %v", err)
	}
}

// Changes at the same time are all there afterwards.
func TestSetAtTheSameTime(t *testing.T) {
	src, path := userFile(t, "")
	var wg sync.WaitGroup
	const n = 12
	for i := range n {
		wg.Go(func() {
			if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: fmt.Sprintf("statuses.%d", i), Value: "name"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c, err := config.Load(src)
	if err != nil || len(c.Statuses) != n {
		t.Errorf("%d of %d are there: %v", len(c.Statuses), n, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

func TestUserFile(t *testing.T) {
	src, path := userFile(t, "profile: test\nprofiles:\n  test: {base_url: https://t.example, account: shop}\n  live: {api_key: s3cret}\n")
	d, err := config.OpenUserFile(src)
	if err != nil {
		t.Fatal(err)
	}
	if name, _, err := d.Profile(); name != "test" || err != nil {
		t.Errorf("profile %q, %v", name, err)
	}
	if !d.Has("test", "base_url") || d.Has(config.DefaultProfile, "base_url") || !d.Has("live", "api_key") {
		t.Error("Has is wrong")
	}
	if shown := d.Text("live", "api_key"); shown != "***" || d.Text("live", "rate") != "" {
		t.Errorf("shown %q", shown)
	}
	var fault *config.KeyError
	for text, line := range map[string]int{"rate: -1\n": 1, "quiet: true\nrate:\n": 2, "profiles: {a: {base_url: nothing}}\n": 1, "profile: gone\n": 1, "a: [": 0} {
		if err := d.Check([]byte(text), "draft.yaml"); !errors.As(err, &fault) || fault.File != "draft.yaml" || line != 0 && fault.Line != line {
			t.Errorf("%q: %v; want an error in line %d of the draft", text, err, line)
		}
	}
	if err := os.WriteFile(path, []byte("quiet: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := edit.Replace(d, []byte("quiet: false\n")); !errors.Is(err, edit.ErrChanged) || !errors.As(err, &fault) {
		t.Errorf("error %v; want ErrChanged", err)
	}
	src.Env = []string{"WAYBILL_PROFILE=gone"}
	if d, err = config.OpenUserFile(src); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Profile(); !errors.As(err, &fault) {
		t.Errorf("error %v; want one for a profile that is not there", err)
	}
}

// What is not changed keeps its lines, empty ones too.
func TestSetKeepsEmptyLines(t *testing.T) {
	for _, before := range []string{
		"# mine\n\nbase_url: https://a.example # where\n\n# how fast\nrate: 2\n\nprofiles:\n  # the other\n  test:\n    quiet: true\n\n    account: shop\n\n  live:\n    quiet: false\n",
		"query:\n  absent:\n    - message: |-\n        one\n\n        more\n\nquiet: true\n",
		"carriers:\n\n  A: a\n\n  # of B\n  B: b # too\n\n# end\n",
	} {
		src, path := userFile(t, before)
		if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "concurrency", Value: "7"}); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(path); !strings.Contains(string(data), "concurrency: 7\n") || strings.Count(string(data), "\n\n") < strings.Count(before, "\n\n") {
			t.Errorf("set:\n%s\nof\n%s", data, before)
		}
		if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "concurrency"}); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(path); string(data) != before {
			t.Errorf("set and removed:\n%q\nwant\n%q", data, before)
		}
	}
}
