package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestReadUserFile(t *testing.T) {
	p := newPlace(t)
	p.user("profile: live\nprofiles:\n  test: {base_url: https://t.example, account: shop}\n  live:\n    quiet: true\n")
	f, err := config.ReadUserFile(p.sources(nil))
	if err != nil || f.Path != p.userPath() || !slices.Equal(f.Profiles(), []string{"default", "live", "test"}) {
		t.Errorf("%s has %q, %v", f.Path, f.Profiles(), err)
	}
	if name, origin, err := f.Profile(); name != "live" || origin.Level != config.FromUser || origin.Line != 1 || err != nil {
		t.Errorf("profile %q of %+v, %v", name, origin, err)
	}
	for profile, want := range map[string]string{"default": " ", "live": " ", "test": "https://t.example shop"} {
		if got := f.Text(profile, "base_url") + " " + f.Text(profile, "account"); got != want {
			t.Errorf("%s has %q; want %q", profile, got, want)
		}
	}
}

func TestKeyOfTheKeyring(t *testing.T) {
	p := newPlace(t)
	p.user("api_key_keyring: shop\n")
	src := p.sources(nil)
	c, err := config.Load(src)
	if err != nil || c.APIKeySetting() != "api_key_keyring" {
		t.Fatalf("%q, %v", c.APIKeySetting(), err)
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
