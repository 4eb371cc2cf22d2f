package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// missing is the line about what was not tested.
const missing = "NOT TESTED: PostgreSQL is missing, so the store has not run on a server"

// URL returns the URL of a new schema, not created yet, on the server that all
// tests of this process share. The schema is dropped at the end of the test.
// It returns false, with a line about it, if PostgreSQL is missing. The
// continuous integration sets POSTGRES=required, which makes that an error.
func URL(t testing.TB) (string, bool) {
	t.Helper()
	s, err := Shared()
	if isMissing(t, err) {
		return "", false
	}
	return s.NewURL(t), true
}

// Start starts a server for one test, with these settings beyond the usual,
// each as in postgresql.conf, such as "fsync=off". The end of the test ends it.
// It returns false where [URL] does.
func Start(t testing.TB, settings ...string) (*Server, bool) {
	t.Helper()
	s, err := newServer(t.Context(), settings)
	if isMissing(t, err) {
		return nil, false
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, true
}

// NewURL returns the URL of a new schema, not created yet, on this server. The
// schema is dropped at the end of the test.
func (s *Server) NewURL(t testing.TB) string {
	t.Helper()
	of, drop, err := s.NewSchema()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(context.WithoutCancel(t.Context())); err != nil {
			t.Logf("a schema stays: %v", err)
		}
	})
	return of
}

// dropSchemas drops a schema, and those whose names it begins.
const dropSchemas = `DO $$
	DECLARE found text;
	BEGIN
		FOR found IN SELECT nspname FROM pg_namespace WHERE nspname = '%[1]s' OR starts_with(nspname, '%[1]s_') LOOP
			EXECUTE format('DROP SCHEMA %%I CASCADE', found);
		END LOOP;
	END $$`

// NewSchema is [Server.NewURL] for what is no test: it returns the URL of a
// new schema, not created yet, and what drops it and those whose names it
// begins, up to an underscore.
func (s *Server) NewSchema() (of string, drop func(context.Context) error, err error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return "", nil, err
	}
	name := "test_" + strings.ToLower(rand.Text())
	values := u.Query()
	values.Set("schema", name)
	u.RawQuery = values.Encode()
	drop = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return s.Ask(ctx, fmt.Sprintf(dropSchemas, name), nil)
	}
	return u.String(), drop, nil
}

// Connect connects to the schema of a URL, whose tables need no prefix. The end
// of the test closes the connection.
func Connect(t testing.TB, of string) *pgx.Conn {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	values := u.Query()
	if schema := values.Get("schema"); schema != "" {
		values.Del("schema")
		values.Set("search_path", schema)
	}
	u.RawQuery = values.Encode()
	conn, err := pgx.Connect(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Logf("closing a connection: %v", err)
		}
	})
	return conn
}

// isMissing reports whether err is that PostgreSQL is missing, where that is
// allowed, and ends the test for any other error.
func isMissing(t testing.TB, err error) bool {
	t.Helper()
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrMissing) && os.Getenv("POSTGRES") != "required":
		t.Log(missing)
		return true
	default:
		t.Fatal(err)
		return false
	}
}
