package pgtest

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// perSecond is what pgbench measured.
var perSecond = regexp.MustCompile(`tps = ([0-9.]+) \(without`)

// InsertRate returns how many rows a second pgbench inserts with that many clients,
// each row sent to a prepared statement and committed by itself. The table has as
// little as one of deliveries can have: a key, a time and the bytes. of is the URL
// of a schema for it alone.
func InsertRate(t testing.TB, of string, clients, rows int, body string) float64 {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	schema := values.Get("schema")
	values.Del("schema")
	u.RawQuery = values.Encode()
	conn := Connect(t, of)
	for _, query := range []string{
		"CREATE SCHEMA IF NOT EXISTS " + schema,
		"CREATE TABLE IF NOT EXISTS peer (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, received BIGINT NOT NULL, body TEXT NOT NULL)",
	} {
		if _, err := conn.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(t.TempDir(), "insert.sql")
	if err := os.WriteFile(script, []byte("INSERT INTO "+schema+".peer (received, body) VALUES (:received, :body);\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := Program("pgbench")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "--no-vacuum", "--protocol", "prepared", "--client", strconv.Itoa(clients), //nolint:gosec // one of PostgreSQL's programs
		"--jobs", "2", "--transactions", strconv.Itoa(max(1, rows/clients)), "--define", "received=1760000000000", "--define", "body="+body,
		"--file", script, u.String()).CombinedOutput()
	m := perSecond.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("pgbench: %v\n%s", err, out)
	}
	rate, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return rate
}
