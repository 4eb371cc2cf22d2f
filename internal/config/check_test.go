package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStorePlace(t *testing.T) {
	for _, s := range []string{
		"w.db", "/srv/w.db", "services=x", "postgres", "postgres:", "postgres://", "postgres:///d", "postgres://ops@db/d",
		"postgresql://ops@db:5432/d?schema=a&sslmode=verify-full", "postgres://ops@[::1]:5432/d", "postgres://ops@a:1,b:2/d",
		"postgres://o%3Ap@db/d%40e", "postgres://?service=team", "service=team", "postgres://ops@/d?host=/run/postgresql",
	} {
		if want := storePlaceError(s); want != "" {
			t.Errorf("storePlace(%q) wants %s", s, want)
		}
	}
	for _, s := range []string{
		"mysql://db/d", "Postgres://db/d", "file:///w.db", "service=", "service=a b", "service=a password=b",
		"postgres://ops:pw@db/d", "postgres://ops:@db/d", "postgres://ops:pw@a,b/d", "postgres://ops:p/w@db/d", "postgres://ops:p?w@db/d",
		"postgres://ops:p#w@db/d", "postgres://ops:pw/d", "postgres://ops:pw", "postgres://ops@db:pw/d", "postgres://ops@x:pw@db/d",
		"postgres://db/d?password=pw", "postgres://db/d?a=b&sslpassword=pw", "postgres://db/d?pass%77ord=pw", "postgres://db/d?%zz=pw",
		"host=db user=ops password=pw", "password=pw host=db", "postgres:/ops@db/d", "postgres//ops:pw@db/d", "ops:pw@db/d", "//ops:pw@db/d", "postgres:ops:pw@db/d",
		"postgres://db/d\n", "postgres://[]/d", "postgres://[::1]pw/d", "postgres://[::1/d", "postgres://a]b/d",
	} {
		if storePlaceError(s) == "" {
			t.Errorf("storePlace(%q) takes it", s)
		}
	}
}

func TestStorePassword(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "pw")
	load := func() (Secret, error) {
		c, err := Load(Sources{Env: []string{"WAYBILL_STORE_PASSWORD_FILE=pw", "WAYBILL_STORE=postgres://ops@db/d"}, WorkDir: folder})
		if err != nil {
			t.Fatal(err)
		}
		if c.Store != "postgres://ops@db/d" || c.StorePasswordFile != path {
			t.Errorf("store %q, password file %q", c.Store, c.StorePasswordFile)
		}
		return c.StorePassword()
	}
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "WAYBILL_STORE_PASSWORD_FILE") {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if pw, err := load(); err != nil || pw.Reveal() != "secret" {
		t.Errorf("password %q, %v", pw.Reveal(), err)
	}
}
