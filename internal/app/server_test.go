package app_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
)

// newSession returns a session with settings, and its standard error.
func newSession(t *testing.T, settings ...string) (*app.Session, *bytes.Buffer) {
	t.Helper()
	home, stderr := t.TempDir(), &bytes.Buffer{}
	a := &app.App{
		IO: term.New(strings.NewReader(""), &bytes.Buffer{}, stderr, term.Facts{}),
		Sources: func([]config.Flag) config.Sources {
			return config.Sources{Env: settings, WorkDir: home, Home: home}
		},
	}
	s, err := a.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, stderr
}

// TestPasswordsOfAServer opens a store whose server asks for a password, which may come
// from several places, and is shown nowhere.
func TestPasswordsOfAServer(t *testing.T) {
	server, ok := pgtest.Start(t, "listen_addresses='127.0.0.1'")
	if !ok {
		return
	}
	const right = "right-secret"
	if err := server.Ask(t.Context(), "ALTER ROLE waybill PASSWORD '"+right+"'", nil); err != nil {
		t.Fatal(err)
	}
	if err := server.WriteFile("pg_hba.conf", []byte("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context(), "fast"); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	at := "WAYBILL_STORE=postgres://waybill@127.0.0.1:" + strconv.Itoa(server.Port) + "/waybill"
	t.Setenv("PGPASSFILE", filepath.Join(home, "none"))
	for _, c := range []struct {
		name, env, passfile, setting string
		kind                         error
	}{
		{name: "no password", kind: store.ErrLogin},
		{name: "PGPASSWORD", env: right},
		{name: "a wrong one", env: "wrong-secret", kind: store.ErrLogin},
		{name: "PGPASSFILE", passfile: file("passfile", "127.0.0.1:*:waybill:waybill:"+right+"\n")},
		{name: "store_password_file", setting: file("password", right+"\n")},
		{name: "store_password_file wins", setting: file("password", right+"\n"), env: "wrong-secret"},
	} {
		t.Setenv("PGPASSWORD", c.env)
		t.Setenv("PGPASSFILE", c.passfile)
		s, stderr := newSession(t, at, "WAYBILL_STORE_PASSWORD_FILE="+c.setting)
		opened, err := s.Store(t.Context())
		failed, isStore := errors.AsType[*store.Error](err)
		switch {
		case (err != nil) != (c.kind != nil), err != nil && (!isStore || !errors.Is(failed, c.kind)):
			t.Errorf("%s: %v, want kind %v", c.name, err, c.kind)
		case err != nil && strings.Contains(err.Error()+failed.Hint(), "secret"):
			t.Errorf("%s: it is shown: %v", c.name, err)
		case err == nil && (strings.Contains(opened.Path, "secret") || !strings.HasPrefix(at, "WAYBILL_STORE="+strings.TrimSuffix(opened.Path, "?schema=waybill"))):
			t.Errorf("%s: place %s", c.name, opened.Path)
		}
		if stderr.Len() > 0 {
			t.Errorf("%s: stderr %q", c.name, stderr)
		}
	}
}

// TestUnverifiedServer says that a server is not verified before it connects.
func TestUnverifiedServer(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	at := "WAYBILL_STORE=postgres://ops@192.0.2.1/d?sslmode=disable"
	s, stderr := newSession(t, at)
	_, err := s.Store(ended)
	if refused, ok := errors.AsType[*config.KeyError](err); !ok || refused.Key != "store" || !strings.Contains(refused.Hint, "--insecure-store") || stderr.Len() > 0 {
		t.Errorf("error %v, stderr %q", err, stderr)
	}
	s, stderr = newSession(t, at, "WAYBILL_INSECURE_STORE=true")
	_, err = s.Store(ended)
	if !errors.Is(err, context.Canceled) || !strings.Contains(stderr.String(), "not verified (--insecure-store)") {
		t.Errorf("error %v, stderr %q", err, stderr)
	}
}

// TestUnreachableServer waits for a server once, however often its store is opened.
func TestUnreachableServer(t *testing.T) {
	s, _ := newSession(t, "WAYBILL_STORE=postgres://ops@127.0.0.1:1/d?sslmode=disable")
	s.ReadOnly = true // which waits for no other reason
	_, first := s.ExistingStore(t.Context())
	_, second := s.Store(t.Context())
	failed, ok := errors.AsType[*store.Error](first)
	again, _ := errors.AsType[*store.Error](second)
	if !ok || !errors.Is(first, store.ErrUnreachable) || failed != again {
		t.Errorf("%v and then %v; want the same error that the server is unreachable", first, second)
	}
}

// TestUnsyncedServer refuses a store whose server may forget what it committed.
func TestUnsyncedServer(t *testing.T) {
	server, ok := pgtest.Start(t, "synchronous_commit=off")
	if !ok {
		return
	}
	at := "WAYBILL_STORE=" + server.NewURL(t)
	s, _ := newSession(t, at)
	if _, err := s.Store(t.Context()); !errors.Is(err, store.ErrUnsynced) {
		t.Errorf("error %v, want %v", err, store.ErrUnsynced)
	}
}
