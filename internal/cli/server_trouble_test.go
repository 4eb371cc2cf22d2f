//go:build !windows

package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// What a server reports while answers are recorded is a problem of the store, whatever it
// is: the rows were sent, so they are not called pending. Answers are saved to no file.
func TestCreateOnAServerThatFailsMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		cause      []string
		says, next string
	}{
		"trigger": {
			[]string{
				"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$",
				"CREATE TRIGGER refused BEFORE UPDATE OF answer ON batches FOR EACH ROW EXECUTE FUNCTION refuse()",
			},
			"server reports an error: not today (SQLSTATE P0001); before that, 0 of 2 rows recorded as accepted\nhint: look the error up in the log of the server",
			"--concurrency 1\n",
		},
		"dropped": {
			[]string{"DO $$ BEGIN EXECUTE 'DROP SCHEMA ' || current_schema() || ' CASCADE'; END $$"},
			"store was deleted, renamed or replaced while it was in use", "--concurrency 1 --check-first\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			place, ok := pgtest.URL(t)
			if !ok {
				return
			}
			t.Chdir(t.TempDir())
			service := newCounted(t)
			env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1"}
			service.first = func() {
				awaitStaged(t, append(env, "WAYBILL_STORE="+place))
				conn := pgtest.Connect(t, place)
				for _, statement := range c.cause {
					if _, err := conn.Exec(t.Context(), statement); err != nil {
						t.Error(err)
					}
				}
			}
			code, stdout, stderr := run(t, env, "--store", place, "create", orders(t, 2), "--skip-proof", "--batch-size", "1", "--concurrency", "1")
			if code != command.Store || stdout != "" {
				t.Errorf("status %d: %s%s", code, stdout, stderr)
			}
			_, next, _ := strings.Cut(stderr, "next: ")
			if !strings.Contains(stderr, c.says) || !strings.HasPrefix(next, "waybill --store ") || !strings.HasSuffix(next, c.next) {
				t.Errorf("want %q and next %q in %s", c.says, c.next, stderr)
			}
			if beside, err := os.ReadDir("."); len(beside) > 0 || err != nil {
				t.Errorf("the folder has %v, %v", beside, err)
			}
		})
	}
}

// What is wrong with the tables of a server is advised on in words of a server.
func TestAdviceOnTheTablesOfAServer(t *testing.T) {
	t.Parallel()
	place, ok := pgtest.URL(t)
	if !ok {
		return
	}
	service := newCounted(t)
	env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + place}
	if code, stdout, stderr := run(t, env, "create", orders(t, 2), "--skip-proof"); code != command.OK {
		t.Fatalf("status %d: %s%s", code, stdout, stderr)
	}
	conn := pgtest.Connect(t, place)
	for _, c := range []struct{ cause, check, doctor string }{
		{"UPDATE counters SET value = 0 WHERE name = 'run'", "hint: keep a copy of the server's data folder", "keep a copy of the server's data folder"},
		{"ALTER TABLE events RENAME TO lost", "hint: restore a backup of the database", "restore a backup of the database"},
	} {
		if _, err := conn.Exec(t.Context(), c.cause); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := run(t, env, "store", "check"); code != command.Store || !strings.Contains(stderr, c.check) {
			t.Errorf("%s: status %d: %s; want %q", c.cause, code, stderr, c.check)
		}
		if _, stdout, _ := run(t, env, "doctor", "-o", "json"); !strings.Contains(stdout, c.doctor) || strings.Contains(stdout, "-wal") {
			t.Errorf("%s: %s; want %q", c.cause, stdout, c.doctor)
		}
	}
}

// A wait whose server stops says so once.
func TestWaitWhoseServerStops(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	service := newCounted(t)
	env := []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=k1", "WAYBILL_STORE=" + server.NewURL(t)}
	if code, stdout, stderr := run(t, env, "create", orders(t, 2), "--skip-proof"); code != command.OK {
		t.Fatalf("status %d: %s%s", code, stdout, stderr)
	}
	service.asked = func() {
		if err := server.Stop(t.Context(), "immediate"); err != nil {
			t.Error(err)
		}
	}
	code, stdout, stderr := run(t, env, "wait", "A0", "--for", "status=Delivered", "--timeout", "20s")
	_, said, _ := strings.Cut(stderr, "waybill: ")
	message, rest, _ := strings.Cut(said, "\n")
	if code != command.Store || stdout != "" || strings.Count(stderr, "server is unreachable") != 1 || strings.HasSuffix(message, ": ") || !strings.HasPrefix(rest, "hint: ") {
		t.Errorf("status %d: %s%s", code, stdout, stderr)
	}
}
