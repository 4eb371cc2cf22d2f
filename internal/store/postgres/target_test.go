package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// cleanEnv takes what other clients of PostgreSQL would find away, and returns the home
// folder.
func cleanEnv(t *testing.T) string {
	t.Helper()
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
		}
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("PGUSER", "ops")
	t.Setenv("PGHOST", "localhost")
	return home
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// An error names the option or the variable that is wrong.
func TestParseNamesWhatIsWrong(t *testing.T) {
	home := cleanEnv(t)
	gone := filepath.Join(home, "gone")
	for _, tt := range []struct{ variable, value, text, want string }{
		{"PGPORT", "abc", "postgres://", `PGPORT is "abc", and takes a port`},
		{"PGSSLMODE", "always", "postgres://db.example/", `PGSSLMODE is "always", and takes disable, `},
		{"PGCONNECT_TIMEOUT", "5s", "postgres://", `PGCONNECT_TIMEOUT is "5s", and takes a number of seconds`},
		{"PGTARGETSESSIONATTRS", "master", "postgres://", `PGTARGETSESSIONATTRS is "master", and takes any, `},
		{"PGSSLROOTCERT", gone, "postgres://db.example/?sslmode=verify-full", "PGSSLROOTCERT: open " + gone + ": "},
		{"PGSERVICEFILE", gone, "service=team", "PGSERVICEFILE: stat " + gone + ": "},
		{"", "", "service=team", "no such service: stat " + filepath.Join(home, ".pg_service.conf") + ": "},
		{"", "", "postgres:///d?sslmode=always", `sslmode is "always", and takes disable, `},
		{"", "", "postgres://db.example/?sslmode=verify-full&sslrootcert=" + gone, "sslrootcert: open " + gone + ": "},
		{"", "", "postgres:///d?search_path=a", `parameter "search_path" of the URL is not supported`},
		{"", "", "postgres://me:hunter2@/d", "the URL has a password"},
		{"", "", "postgres:///d?schema=Upper", "the schema's name is not allowed"},
		{"", "", "postgres:///d?connect_timeout=x", `connect_timeout is "x", and takes a number of seconds`},
	} {
		t.Run(tt.want, func(t *testing.T) {
			if tt.variable != "" {
				t.Setenv(tt.variable, tt.value)
			}
			if _, err := Parse(tt.text, ParseOptions{}); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v; want %s", err, tt.want)
			}
		})
	}
}

func TestParsePlace(t *testing.T) {
	home := cleanEnv(t)
	t.Setenv("PGSERVICEFILE", write(t, filepath.Join(home, "services"), "[team]\nhost=127.0.0.2\nport=6000\ndbname=ops\nuser=u\nkeepalives=1\n", 0o600))
	for text, want := range map[string]string{
		"postgres://":         "postgres://ops@localhost:5432/ops?schema=waybill",
		"postgresql:///depot": "postgres://ops@localhost:5432/depot?schema=waybill",
		"postgres://me@127.0.0.1:99/depot?schema=a": "postgres://me@127.0.0.1:99/depot?schema=a",
		"postgres://me@db.example/depot":            "postgres://me@db.example:5432/depot?schema=waybill",
		"postgres://me@[::1]/depot":                 "postgres://me@[::1]:5432/depot?schema=waybill",
		"postgres://a%40b@localhost/d%2Fe":          "postgres://a%40b@localhost:5432/d%2Fe?schema=waybill",
		"postgres://me@a.example:1,b.example:2/d":   "postgres://me@a.example:1,b.example:2/d?schema=waybill",
		"postgres://me@/d?host=/run/pg&port=5433":   "postgres://me@/d?host=/run/pg&port=5433&schema=waybill",
		"service=team":                      "postgres://u@127.0.0.2:6000/ops?schema=waybill",
		"postgres://?service=team&schema=b": "postgres://u@127.0.0.2:6000/ops?schema=b",
	} {
		target, err := Parse(text, ParseOptions{})
		if err != nil {
			t.Errorf("Parse(%q): %v", text, err)
			continue
		}
		if got := target.Place(); got != want {
			t.Errorf("Place of %q = %q, want %q", text, got, want)
		}
		again, err := Parse(target.Place(), ParseOptions{})
		if err != nil || again.Place() != want {
			t.Errorf("Place of %q = %q, %v: it is not a fixed point", want, again.Place(), err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const secret = "hunter2"
	home := cleanEnv(t)
	t.Setenv("PGSERVICEFILE", write(t, filepath.Join(home, "services"), "[odd]\nhost=localhost\nsslcrl=/x\n", 0o600))
	for _, text := range []string{
		"postgres://me:" + secret + "@localhost/d",
		"postgres://me@localhost/d?password=" + secret,
		"postgres://me@localhost/d?pass%77ord=" + secret,
		"postgres://me@localhost/d?sslpassword=" + secret,
		"postgres://me:" + secret + "/x@localhost/d",
		"postgres://me@localhost:" + secret + "/d",
		"postgres://me@localhost/d?servicefile=" + secret,
		"postgres://me@localhost/d?search_path=" + secret,
		"postgres://me@localhost/d?" + secret,
		"postgres://me@localhost/d?schema=" + secret + "-x",
		"postgres://me@localhost/d?schema=pg_" + secret,
		"postgres://me@localhost/d?schema=",
		"postgres://me@localhost/d?schema=Upper",
		"postgres://me@localhost/d?schema=1a",
		"postgres://me@localhost/d?schema=" + strings.Repeat("a", 64),
		"postgres://me@localhost/%zz" + secret,
		"service=" + secret,
		"service=odd",
	} {
		_, err := Parse(text, ParseOptions{})
		refused, ok := errors.AsType[*TargetError](err)
		if !ok {
			t.Errorf("Parse(%q) = %v, want a TargetError", text, err)
			continue
		}
		if refused.Hint == "" || strings.Contains(refused.Message+refused.Hint, secret) {
			t.Errorf("Parse(%q): %q, hint %q: no hint, or it holds the secret", text, refused.Message, refused.Hint)
		}
	}
}

func TestParseRefusesWhatItCantHonour(t *testing.T) {
	cleanEnv(t)
	for _, name := range unsupported {
		t.Setenv(name, "x")
		if _, err := Parse("postgres://", ParseOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		t.Setenv(name, "")
	}
}

func TestParseVerifies(t *testing.T) {
	cleanEnv(t)
	for _, c := range []struct {
		text, sslmode     string
		refused, insecure bool // insecure: as --insecure-store connects, without verification
	}{
		{text: "postgres://me@db.example/d", insecure: true},
		{text: "postgres://me@db.example/d?sslmode=verify-full"},
		{text: "postgres://me@db.example/d?sslmode=prefer", insecure: true}, // taken for verify-full
		{text: "postgres://me@db.example/d?sslmode=require", refused: true, insecure: true},
		{text: "postgres://me@db.example/d?sslmode=verify-ca", refused: true, insecure: true},
		{text: "postgres://me@db.example/d?sslmode=disable", refused: true, insecure: true},
		{text: "postgres://me@db.example/d?ssl=true", refused: true, insecure: true},
		{text: "postgres://me@db.example/d", sslmode: "disable", refused: true, insecure: true},
		{text: "postgres://me@db.example/d?sslmode=verify-full", sslmode: "disable"},
		{text: "postgres://me@localhost/d"},
		{text: "postgres://me@127.8.8.8/d?sslmode=disable"},
		{text: "postgres://me@/d?host=/run/pg"},
		{text: "postgres://me@localhost,db.example/d", insecure: true},
		{text: "postgres://me@localhost,db.example/d?sslmode=disable", refused: true, insecure: true},
		{text: "postgres://me@10.0.0.1/d", insecure: true},
	} {
		t.Setenv("PGSSLMODE", c.sslmode)
		target, err := Parse(c.text, ParseOptions{})
		if (err != nil) != c.refused {
			t.Errorf("Parse(%q), PGSSLMODE=%s: error %v, want one: %v", c.text, c.sslmode, err, c.refused)
		}
		if err == nil {
			for _, h := range hosts(target.config) {
				if unverified(h) {
					t.Errorf("Parse(%q), PGSSLMODE=%s: %s is not verified", c.text, c.sslmode, h.Host)
				}
			}
		}
		target, err = Parse(c.text, ParseOptions{Insecure: true})
		if err != nil || target.Unverified() != c.insecure {
			t.Errorf("Parse(%q, insecure), PGSSLMODE=%s: unverified %v, %v; want %v", c.text, c.sslmode, target.Unverified(), err, c.insecure)
		}
	}
}

func TestParsePassword(t *testing.T) {
	home := cleanEnv(t)
	passfile := write(t, filepath.Join(home, ".pgpass"), "*:*:*:ops:secret\n", 0o600)
	target, err := Parse("postgres:///d", ParseOptions{})
	if err != nil || target.config.Password != "secret" {
		t.Errorf("password of ~/.pgpass: %q, %v", target.config.Password, err)
	}
	if strings.Contains(target.Place(), "secret") {
		t.Errorf("Place shows the password: %s", target.Place())
	}
	if err := os.Chmod(passfile, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("postgres:///d", ParseOptions{}); err == nil {
		t.Error("a password file that others can read is used")
	}
	t.Setenv("PGPASSWORD", "other")
	if target, err = Parse("postgres:///d", ParseOptions{}); err != nil || target.config.Password != "other" {
		t.Errorf("PGPASSWORD: %q, %v", target.config.Password, err)
	}
}

// The file of a service decides where a password is sent.
func TestServiceFileThatOthersMayChange(t *testing.T) {
	home := cleanEnv(t)
	services := write(t, filepath.Join(home, ".pg_service.conf"), "[ops]\nhost=127.0.0.1\ndbname=d\nuser=ops\n", 0o600)
	if _, err := Parse("service=ops", ParseOptions{Insecure: true}); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(services, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("service=ops", ParseOptions{Insecure: true}); err == nil || !strings.Contains(err.Error(), "everybody can write to it") {
		t.Errorf("a service file that all can write: %v", err)
	}
}
