package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/term"
)

// fakeKeyring is a keyring in memory, or a broken one.
type fakeKeyring struct {
	held   map[string]string
	broken error
}

func (k *fakeKeyring) Get(_ context.Context, name string) (string, error) {
	if secret, ok := k.held[name]; ok {
		return secret, k.broken
	}
	return "", errors.Join(k.broken, keyring.ErrNotFound)
}

func (k *fakeKeyring) Set(_ context.Context, name, secret string) error {
	if k.broken == nil {
		k.held[name] = secret
	}
	return k.broken
}

func (k *fakeKeyring) Delete(_ context.Context, name string) error {
	if _, ok := k.held[name]; !ok {
		return keyring.ErrNotFound
	}
	delete(k.held, name)
	return k.broken
}

// A key goes into the keyring where that is asked for, is read from there, and is
// never in the file at the same time; a keyring that fails changes nothing.
func TestKeyInTheKeyring(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".config", "waybill", "config.yaml")
	k := &fakeKeyring{held: map[string]string{}}
	run := func(stdin string, args ...string) (command.Code, string, string) {
		var out, errs bytes.Buffer
		a := &app.App{
			IO:      term.New(strings.NewReader(stdin), &out, &errs, term.Facts{}),
			Getenv:  func(string) string { return "" },
			Keyring: k,
			Sources: func(flags []config.Flag) config.Sources {
				return config.Sources{Flags: flags, WorkDir: home, Home: home}
			},
		}
		code := cli.Run(t.Context(), a, args)
		return code, out.String(), errs.String()
	}
	must := func(want command.Code, says, stdin string, args ...string) {
		t.Helper()
		code, out, errs := run(stdin, args...)
		if code != want || !strings.Contains(out+errs, says) || strings.Contains(out+errs, "s3cret") {
			t.Errorf("%v: %d\n%s%s\nwant %d, %q, and no secret", args, code, out, errs, want, says)
		}
	}
	file := func(want string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil || string(data) != want {
			t.Errorf("the file is %q, %v; want %q", data, err, want)
		}
	}
	login := []string{"auth", "login", "--api-key-file", "-"}

	must(command.OK, "Stored the API key in "+path, "s3cret-1\n", login...)
	file("api_key: s3cret-1\n")
	k.broken = errors.New("locked")
	must(command.Failed, "locked", "s3cret-2\n", append(login, "--keyring")...)
	file("api_key: s3cret-1\n")
	k.broken = nil
	must(command.OK, "Stored the API key in the keyring", "s3cret-2\n", append(login, "--keyring")...)
	file("api_key_keyring: default\n")
	if k.held["default"] != "s3cret-2" {
		t.Errorf("the keyring holds %v", k.held)
	}
	must(command.OK, `"setting": "api_key_keyring"`, "", "auth", "status", "-o", "json")
	k.broken = errors.New("locked")
	must(command.Usage, "api_key_keyring: locked", "", "auth", "status")
	k.broken = nil

	must(command.OK, "Removed the API key from the keyring", "s3cret-3\n", login...)
	file("api_key: s3cret-3\n")
	must(command.OK, "Stored", "s3cret-4\n", append(login, "--keyring")...)
	must(command.OK, "Removed the API key from the keyring", "", "auth", "logout")
	file("")
	if len(k.held) != 0 {
		t.Errorf("the keyring holds %v", k.held)
	}
	must(command.Auth, "API key:  none", "", "auth", "status")
}
