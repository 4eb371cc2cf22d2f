package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestListProfiles(t *testing.T) {
	p := newPlace(t)
	p.user("profile: live\nprofiles:\n  test: {base_url: https://t.example, account: shop}\n  live:\n    quiet: true\n")
	src, path := p.sources(nil), p.userPath()
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
	p := newPlace(t)
	p.user("api_key_keyring: shop\n")
	src := p.sources(nil)
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
