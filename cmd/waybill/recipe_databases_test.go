package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/pgtest"
)

// The lines of docs/recipes.md put into SQLite and PostgreSQL what `list -o csv` writes. The continuous
// integration sets SQLITE3=required.
func TestRecipeOfDatabases(t *testing.T) {
	sqlite3, err := exec.LookPath("sqlite3")
	if err != nil && os.Getenv("SQLITE3") == "required" {
		t.Fatal("sqlite3 is missing: install sqlite3")
	}
	url, ok := pgtest.URL(t)
	section := recipe(t, "CSV into SQLite and PostgreSQL")
	w := newWorld(t, "--processing", "0s")
	_, list, _ := strings.Cut(section, "$ waybill list ")
	list, _, _ = strings.Cut(list, "\n")
	for _, line := range []string{"create " + orders(t, w.home, 3, parcels), "wait --run last", "list " + strings.Replace(list, "trackings.csv", filepath.Join(w.home, "trackings.csv"), 1)} {
		if code, stdout, stderr := w.run(strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: %d: %s%s", line, code, stdout, stderr)
		}
	}
	env := append(os.Environ(), "HOME="+w.home)
	if ok {
		conn := pgtest.Connect(t, url)
		if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+conn.Config().RuntimeParams["search_path"]); err != nil {
			t.Fatal(err)
		}
		c := conn.Config()
		env = append(env, "PGHOST="+c.Host, "PGPORT="+strconv.Itoa(int(c.Port)), "PGUSER="+c.User, "PGPASSWORD="+c.Password, "PGDATABASE="+c.Database,
			"PGOPTIONS=-c search_path="+c.RuntimeParams["search_path"])
	}
	sh := func(line string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir, cmd.Env = w.home, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	ran := 0
	for line := range strings.Lines(section + section) { // on two nights
		line, isCode := strings.CutPrefix(line, "    ")
		program, _, _ := strings.Cut(line, " ")
		if !isCode || program == "sqlite3" && sqlite3 == "" || program == "psql" && !ok {
			continue
		}
		sh(strings.TrimSpace(line))
		ran++
	}
	if sqlite3 == "" || !ok {
		t.Logf("NOT TESTED: sqlite3 or PostgreSQL is missing; %d of 6 lines were run", ran)
		return
	}
	if got := sh("sqlite3 orders.db 'select count(*), min(statusLabel) from trackings'"); ran != 6 || !strings.HasPrefix(got, "3|SANDBOX_") {
		t.Errorf("after %d lines SQLite has %q; want 3 trackings", ran, got)
	}
	if got := sh(`psql -At -c 'select count(*), count("learntAt") from trackings'`); got != "3|3" {
		t.Errorf("PostgreSQL has %q; want 3 trackings", got)
	}
}

// recipe returns a section of docs/recipes.md.
func recipe(tb testing.TB, title string) string {
	tb.Helper()
	page, err := os.ReadFile("../../docs/recipes.md")
	if err != nil {
		tb.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+title+"\n")
	if !found {
		tb.Fatalf("docs/recipes.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
