package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestSecretIsMasked(t *testing.T) {
	s := config.NewSecret("hush")
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", s)
	asJSON, err := json.Marshal(map[string]any{"key": s})
	if err != nil {
		t.Fatal(err)
	}
	type holder struct{ key config.Secret } // whose field a formatter cannot call methods of
	for _, got := range []string{
		s.String(), fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s %q %x %d", s, s, s, s, s, s, s), fmt.Sprintf("%v %+v %#v", &s, &s, &s),
		fmt.Sprintf("%v %+v %#v", holder{s}, holder{s}, holder{s}), log.String(), string(asJSON),
	} {
		if strings.Contains(got, "hush") || strings.Contains(got, "68757368") {
			t.Errorf("%q shows the secret", got)
		}
	}
	if string(asJSON) != `{"key":"***"}` {
		t.Errorf("JSON %s", asJSON)
	}
	if s.Reveal() != "hush" || s.IsZero() {
		t.Error("the secret itself is lost")
	}
	if none := config.NewSecret(""); !none.IsZero() || none.String() != "" || none.Reveal() != "" {
		t.Errorf("no secret shows as %q", none)
	}
}

// No form of a Config shows a secret, nor does the listing.
func TestConfigKeepsSecrets(t *testing.T) {
	p := newPlace(t)
	p.user("api_key: hush1\nwebhook: {secret: hush2, secrets: [env:HOOK]}\nprofiles: {x: {api_key: hush3}}\n")
	for _, env := range [][]string{nil, {"WAYBILL_API_KEY=hush4", "WAYBILL_WEBHOOK_SECRET=hush5", "HOOK=hush6", "OTHER=hush7"}} {
		c := p.load(env)
		asJSON, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		listed, err := json.Marshal(c.List())
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []string{
			fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%+v", &c), fmt.Sprint(c),
			string(asJSON), string(listed), fmt.Sprintf("%+v", c.List()),
		} {
			if strings.Contains(got, "hush") {
				t.Errorf("shows a secret: %s", got)
			}
		}
		for _, key := range []string{"api_key", "webhook.secret"} {
			if e, err := c.Get(key); err != nil || e.Text != "***" || e.Value != "***" {
				t.Errorf("Get(%s) = %+v, %v", key, e, err)
			}
		}
	}
}

// The highest level that has a key, written or in a file, gives it.
func TestReadAPIKey(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{"flag.key": "of-flag\n", "env.key": "of-env\r\n", "user.key": "of-user", "profile.key": "of-profile\n"} {
		p.write(filepath.Join(p.work, name), text, 0o600)
	}
	const literal = "api_key: literal\nprofiles:\n  file: {api_key_file: ../../../project/profile.key}\n  lit: {api_key: literal2}\n"
	named := "api_key_file: " + filepath.Join(p.work, "user.key") + "\n"
	for _, tt := range []struct {
		name, user string
		env        []string
		flags      []config.Flag
		want       string
		origin     string
	}{
		{"user, written", literal, nil, nil, "literal", p.userPath()},
		{"user, file", named, nil, nil, "of-user", p.userPath()},
		{"profile's file over user's literal", literal, []string{"WAYBILL_PROFILE=file"}, nil, "of-profile", p.userPath() + " (profile file)"},
		{"profile's literal over user's literal", literal, []string{"WAYBILL_PROFILE=lit"}, nil, "literal2", p.userPath() + " (profile lit)"},
		{"environment", named, []string{"WAYBILL_API_KEY=of-var"}, nil, "of-var", "env WAYBILL_API_KEY"},
		{"environment's file over a literal", literal, []string{"WAYBILL_API_KEY_FILE=env.key"}, nil, "of-env", "env WAYBILL_API_KEY_FILE"},
		{"flag over environment", literal, []string{"WAYBILL_API_KEY=of-var"}, []config.Flag{flag("api-key-file", "flag.key")}, "of-flag", "flag --api-key-file"},
		{"flag over two in the environment", "", []string{"WAYBILL_API_KEY=a", "WAYBILL_API_KEY_FILE=b"}, []config.Flag{flag("api-key-file", "flag.key")}, "of-flag", "flag --api-key-file"},
		{"stdin", literal, nil, []config.Flag{flag("api-key-file", "-")}, "of-stdin", "flag --api-key-file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.user(tt.user)
			c := p.load(tt.env, tt.flags...)
			if c.APIKeyFromStdin() != (tt.name == "stdin") {
				t.Errorf("from stdin: %v", c.APIKeyFromStdin())
			}
			got, err := c.ReadAPIKey(strings.NewReader("of-stdin\n"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Secret.Reveal() != tt.want || got.Origin.String() != tt.origin {
				t.Errorf("key %q from %q, want %q from %q", got.Secret.Reveal(), got.Origin, tt.want, tt.origin)
			}
		})
	}
}

// A key goes to the base URL that is set at its own level or next below it, to no other
// one, and with --same-key to any.
func TestKeyIsBoundToItsService(t *testing.T) {
	const stored = "api_key: k\nbase_url: https://a.example/\n"
	const profiles = stored + "profiles:\n  url: {base_url: https://b.example}\n  key: {api_key: other}\n  both: {api_key: other, base_url: https://b.example}\n"
	const entry = "api_key_keyring: shop\nbase_url: https://b.example\n"
	env := func(all ...string) []string { return all }
	url, same := flag("base-url", "https://b.example"), flag("same-key", "true")
	for _, tt := range []struct {
		name, user string
		env        []string
		flags      []config.Flag
		want       string // the error; empty for none
	}{
		{"both in the file", stored, nil, nil, ""},
		{"flag over the file", stored, nil, []config.Flag{url}, "--base-url: the API key of FILE belongs to https://a.example, so it is not sent to https://b.example"},
		{"environment over the file", stored, env("WAYBILL_BASE_URL=https://b.example"), nil, "WAYBILL_BASE_URL: the API key of FILE belongs to https://a.example, so it is not sent to https://b.example"},
		{"another path", stored, env("WAYBILL_BASE_URL=https://a.example/x"), nil, "WAYBILL_BASE_URL: the API key of FILE belongs to https://a.example, so it is not sent to https://a.example/x"},
		{"the same in another spelling", stored, env("WAYBILL_BASE_URL=HTTPS://A.example:443"), nil, ""},
		{"the user's word", stored, nil, []config.Flag{url, same}, ""},
		{"not the user's word", stored, nil, []config.Flag{url, flag("same-key", "false")}, "--base-url: the API key of FILE belongs to https://a.example, so it is not sent to https://b.example"},
		{"no word of the environment", stored, env("WAYBILL_BASE_URL=https://b.example", "WAYBILL_SAME_KEY=true"), nil, "WAYBILL_BASE_URL: the API key of FILE belongs to https://a.example, so it is not sent to https://b.example"},
		{"a profile's URL alone", profiles, env("WAYBILL_PROFILE=url"), nil, "FILE:4: base_url: the API key of FILE belongs to https://a.example, so it is not sent to https://b.example"},
		{"a profile's key alone", profiles, env("WAYBILL_PROFILE=key"), nil, ""},
		{"a profile with both", profiles, env("WAYBILL_PROFILE=both"), nil, ""},
		{"a profile with both and a flag", profiles, env("WAYBILL_PROFILE=both"), []config.Flag{flag("base-url", "https://a.example")}, "--base-url: the API key of FILE (profile both) belongs to https://b.example, so it is not sent to https://a.example"},
		{"stored without a URL", "api_key: k\n", env("WAYBILL_BASE_URL=https://b.example"), nil, "WAYBILL_BASE_URL: the API key of FILE is kept without a base URL, so it is not sent to https://b.example"},
		{"both of the environment", stored, env("WAYBILL_API_KEY=e", "WAYBILL_BASE_URL=https://b.example"), nil, ""},
		{"environment's key, file's URL", stored, env("WAYBILL_API_KEY=e"), nil, ""},
		{"environment's key, flag's URL", "", env("WAYBILL_API_KEY=e"), []config.Flag{url}, ""},
		{"both of the environment and a flag", "", env("WAYBILL_API_KEY=e", "WAYBILL_BASE_URL=https://a.example"), []config.Flag{url}, "--base-url: the API key of env WAYBILL_API_KEY belongs to https://a.example, so it is not sent to https://b.example"},
		{"flag's key", stored, nil, []config.Flag{flag("api-key-file", "-"), url}, ""},
		{"keyring with the URL", entry, nil, nil, "FILE:2: base_url: the API key of FILE belongs to https://k.example, so it is not sent to https://b.example"},
		{"entry named by the environment", "", env("WAYBILL_API_KEY_KEYRING=shop", "WAYBILL_BASE_URL=https://b.example"), nil, "WAYBILL_BASE_URL: the API key of env WAYBILL_API_KEY_KEYRING belongs to https://k.example, so it is not sent to https://b.example"},
		{"this computer by two names", "api_key: k\nbase_url: http://localhost:1\n", env("WAYBILL_BASE_URL=http://127.0.0.1:1"), nil, ""},
		{"another port of this computer", "api_key: k\nbase_url: http://localhost:1\n", env("WAYBILL_BASE_URL=http://127.0.0.1:2"), nil, "WAYBILL_BASE_URL: the API key of FILE belongs to http://localhost:1, so it is not sent to http://127.0.0.1:2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			if tt.user != "" {
				p.user(tt.user)
			}
			c := p.load(tt.env, tt.flags...)
			key, err := c.ReadAPIKey(strings.NewReader("typed"), func(string) (string, error) {
				return config.KeyringEntry(config.NewSecret("k"), "https://k.example"), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := c.CheckService(key, c.BaseURL); err != nil {
				got = strings.ReplaceAll(err.Error(), p.userPath(), "FILE")
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSecretFilesRefused(t *testing.T) {
	p := newPlace(t)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "is empty"},
		{"line end alone", "\r\n", "is empty"},
		{"two lines", "a\nb\n", "contains a line break or another control character"},
		{"two line ends", "a\n\n", "contains a line break or another control character"},
		{"NUL", "a\x00b", "contains a line break or another control character"},
		{"UTF-16", "\xff\xfea\x00", "is UTF-16"},
		{"BOM", "\xef\xbb\xbfa", "starts with a byte order mark"},
		{"not UTF-8", "a\xc3", "is not UTF-8"},
		{"too large", strings.Repeat("x", config.MaxSecretFile+1), "larger than 65536 bytes"},
		{"outer space", "hush \n", "has space at its start or end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(p.work, "key")
			p.write(path, tt.text, 0o600)
			_, err := p.load(nil, flag("api-key-file", "key")).ReadAPIKey(nil, nil)
			var key *config.KeyError
			if !errors.As(err, &key) {
				t.Fatalf("err = %v, want a *KeyError", err)
			}
			if want := "--api-key-file: key file " + path + ": " + tt.want; err.Error() != want || key.Hint == "" {
				t.Errorf("got %q, hint %q, want %q", err, key.Hint, want)
			}
		})
	}
	_, err := p.load(nil, flag("api-key-file", "none")).ReadAPIKey(nil, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	_, err = p.load([]string{"WAYBILL_API_KEY= hush"}).ReadAPIKey(nil, nil)
	if err == nil || err.Error() != "WAYBILL_API_KEY: has space at its start or end" {
		t.Errorf("outer space: %v", err)
	}
	if err := p.refused([]string{"WAYBILL_API_KEY=a\nhush"}); err.Error() != "WAYBILL_API_KEY: contains a line break or another control character" {
		t.Errorf("line break: %v", err)
	}
}

func TestWebhookSecrets(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(p.work, "hook")
	p.write(path, "one\n", 0o600)
	read := func(env ...string) ([]string, error) {
		t.Helper()
		secrets, err := p.load(env).WebhookSecrets()
		var all []string
		for _, s := range secrets {
			all = append(all, s.Name+"="+string(s.Value))
		}
		return all, err
	}
	for _, tt := range []struct {
		name string
		user string
		env  []string
		want []string
	}{
		{"none", "", nil, nil},
		{"variable", "", []string{"WAYBILL_WEBHOOK_SECRET=s"}, []string{"env:WAYBILL_WEBHOOK_SECRET=s"}},
		{"written", "webhook: {secret: w}", nil, []string{"webhook.secret=w"}},
		{"variable over written", "webhook: {secret: w}", []string{"WAYBILL_WEBHOOK_SECRET=s"}, []string{"env:WAYBILL_WEBHOOK_SECRET=s"}},
		{"places over both", "webhook: {secret: w, secrets: [env:OLD, \"file:" + path + "\"]}", []string{"OLD=o ", "WAYBILL_WEBHOOK_SECRET=s"}, []string{"env:OLD=o ", "file:" + path + "=one"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.user(tt.user)
			got, err := read(tt.env...)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v; -want +got:\n%s", err, diff)
			}
		})
	}
	p.user("webhook: {secrets: [env:OLD]}")
	for _, tt := range []struct{ env, want string }{
		{"OTHER=1", ":1: webhook.secrets: env:OLD: environment variable not set"},
		{"OLD=", ":1: webhook.secrets: env:OLD: is empty"},
	} {
		if _, err := read(tt.env); err == nil || err.Error() != p.userPath()+tt.want {
			t.Errorf("%s: %v, want %s", tt.env, err, tt.want)
		}
	}
	t.Run("read anew", func(t *testing.T) {
		c := p.load([]string{"WAYBILL_WEBHOOK_SECRETS=file:" + path})
		p.write(path, "two\n", 0o600)
		if s, err := c.WebhookSecrets(); err != nil || string(s[0].Value) != "two" {
			t.Errorf("%v, %v", s, err)
		}
		p.write(path, "", 0o600)
		if _, err := c.WebhookSecrets(); err == nil {
			t.Error("an empty secret was taken")
		}
	})
}

// A file with a secret is its owner's alone; one without may be anybody's.
func TestUserFilePermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the mode says nothing here; the access list is what counts")
		return
	}
	for _, tt := range []struct {
		name, text string
		mode       os.FileMode
		key        string // at fault; empty if the file is taken
	}{
		{"secret, own", "api_key: k\n", 0o600, ""},
		{"secret, read only", "api_key: k\n", 0o400, ""},
		{"secret, group reads", "output: json\napi_key: k\n", 0o640, "api_key"},
		{"secret, others read", "api_key: k\n", 0o604, "api_key"},
		{"secret, others write", "api_key: k\n", 0o602, "api_key"},
		{"webhook secret", "webhook: {secret: k}\n", 0o644, "webhook.secret"},
		{"secret in a profile nobody chose", "profiles: {p: {api_key: k}}\n", 0o644, "profiles.p.api_key"},
		{"no secret", "output: json\napi_key_file: f\nwebhook: {secrets: [env:A]}\n", 0o644, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.write(p.userPath(), tt.text, tt.mode)
			_, err := config.Load(p.sources(nil))
			if tt.key == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var key *config.KeyError
			if !errors.As(err, &key) || key.Key != tt.key || key.Hint != "chmod 600 "+p.userPath() {
				t.Errorf("%+v, want one about %s with the remedy", err, tt.key)
			}
		})
	}
}
