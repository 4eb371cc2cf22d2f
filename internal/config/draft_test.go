package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestSetSecretsAndNames(t *testing.T) {
	src, path := userFile(t, "# mine\ncarriers:\n  DHL: dhl # parcels\n")
	_, err := config.Set(src, config.DefaultProfile,
		config.Change{Key: "api_key", Value: config.NewSecret("s3cret: #1")},
		config.Change{Key: "carriers.St. Post", Value: "post"},
		config.Change{Key: "carriers.DHL", Value: "dhl-de"},
		config.Change{Key: "map.refer_id", Value: "Order No"})
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
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "rate"}); err == nil || !strings.Contains(err.Error(), "nonsense") {
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
		if _, err := config.Set(src, s.profile, config.Change{Key: s.key}); err != nil {
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
		if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(path); strings.ContainsAny(string(data), "{}") || !strings.Contains(string(data), "# how fast") {
		t.Errorf("all removed, the file is\n%s", data)
	}
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "rate", Value: "3"}); err != nil {
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
			_, err := config.Set(src, config.DefaultProfile, config.Change{Key: tt.key, Value: tt.value})
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
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "rate", Value: "3"}); err != nil {
		t.Error(err)
	}
	src.Flags = []config.Flag{{Name: "insecure-http", Values: []string{"true"}}}
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "base_url", Value: "http://other.example"}); err != nil {
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
			if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: fmt.Sprintf("statuses.%d", i), Value: "name"}); err != nil {
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

func TestDraft(t *testing.T) {
	src, path := userFile(t, "profile: test\nprofiles:\n  test: {base_url: https://t.example, account: shop}\n  live: {api_key: s3cret}\n")
	d, err := config.OpenDraft(src)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := d.Profile(); name != "test" || err != nil {
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
	if err := d.Replace([]byte("quiet: false\n")); !errors.Is(err, config.ErrChanged) || !errors.As(err, &fault) {
		t.Errorf("error %v; want ErrChanged", err)
	}
	src.Env = []string{"WAYBILL_PROFILE=gone"}
	if d, err = config.OpenDraft(src); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Profile(); !errors.As(err, &fault) {
		t.Errorf("error %v; want one for a profile that is not there", err)
	}
}

func TestListProfiles(t *testing.T) {
	src, path := userFile(t, "profile: live\nprofiles:\n  test: {base_url: https://t.example, account: shop}\n  live:\n    quiet: true\n")
	list, err := config.ListProfiles(src)
	if err != nil || list.File != path || list.Active != "live" || list.Origin.Level != config.FromUser || list.Origin.Line != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	want := []config.Profile{{Name: "default"}, {Name: "live"}, {Name: "test", BaseURL: "https://t.example", Account: "shop"}}
	if !slices.Equal(list.All, want) {
		t.Errorf("%+v; want %+v", list.All, want)
	}
}

func TestKeyOfTheKeyring(t *testing.T) {
	src, _ := userFile(t, "api_key_keyring: shop\n")
	c, err := config.Load(src)
	if err != nil || c.APIKeyKeyring() != "shop" {
		t.Fatalf("%q, %v", c.APIKeyKeyring(), err)
	}
	held := func(name string) (string, error) { return "of " + name, nil }
	if key, err := c.ReadAPIKey(nil, held); key.Secret.Reveal() != "of shop" || key.Origin.Level != config.FromUser || err != nil {
		t.Errorf("%q, %v, %v", key.Secret.Reveal(), key.Origin, err)
	}
	locked := errors.New("locked")
	var fault *config.KeyError
	if _, err := c.ReadAPIKey(nil, func(string) (string, error) { return "", locked }); !errors.Is(err, locked) || !errors.As(err, &fault) || fault.Key != "api_key_keyring" {
		t.Errorf("error %v", err)
	}
	src.Env = []string{"WAYBILL_API_KEY=env"} // wins, and the keyring is not asked
	if c, err = config.Load(src); err != nil {
		t.Fatal(err)
	}
	if key, err := c.ReadAPIKey(nil, nil); key.Secret.Reveal() != "env" || err != nil {
		t.Errorf("%q, %v", key.Secret.Reveal(), err)
	}
}

func TestCheckKey(t *testing.T) {
	for key, want := range map[string]string{"rate": "", "carriers.UPS": "", "webhook.schemes.mine": "", "carriers.": "unknown", "rat": "did you mean rate?", "webhook": "unknown key"} {
		_, err := config.CheckKey(key)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", key, err, want)
		}
	}
	for key, want := range map[string]bool{"api_key": true, "rate": false} {
		if secret, _ := config.CheckKey(key); secret != want {
			t.Errorf("%s is a secret: %v", key, secret)
		}
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
		if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "concurrency", Value: "7"}); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(path); !strings.Contains(string(data), "concurrency: 7\n") || strings.Count(string(data), "\n\n") < strings.Count(before, "\n\n") {
			t.Errorf("set:\n%s\nof\n%s", data, before)
		}
		if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "concurrency"}); err != nil {
			t.Fatal(err)
		}
		if data, _ := os.ReadFile(path); string(data) != before {
			t.Errorf("set and removed:\n%q\nwant\n%q", data, before)
		}
	}
}
