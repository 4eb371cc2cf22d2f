package create

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/send"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/sandbox"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
)

// changingStore changes something when staging begins, or when the first rows
// are staged.
type changingStore struct {
	ledger.Stager
	begins, adds func()
}

func (c changingStore) Stage(ctx context.Context, plan ledger.Plan) (ledger.Staging, error) {
	c.begins()
	s, err := c.Stager.Stage(ctx, plan)
	return changingStaging{s, c.adds}, err
}

type changingStaging struct {
	ledger.Staging
	adds func()
}

func (c changingStaging) Add(ctx context.Context, entries []ledger.Entry) ([]ledger.Conflict, error) {
	c.adds()
	return c.Staging.Add(ctx, entries)
}

// A file that changes after it was opened is refused, whenever that is, and
// nothing of it is staged.
func TestInputThatChangesIsRefused(t *testing.T) {
	const text = "referId,trackingNumber\nA1,1Z999AA10123456784\nA2,1Z999AA10123456785\n"
	write := func(path, text string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		if _, err := f.WriteString(text); err != nil {
			return err
		}
		return f.Close()
	}
	changes := map[string]func(path string) error{
		"rewritten": func(path string) error {
			if err := write(path, strings.Replace(text, "A2", "B2", 1)); err != nil {
				return err
			}
			later := time.Now().Add(time.Minute) // a clock too coarse to tell is no matter of this test
			return os.Chtimes(path, later, later)
		},
		"cut":         func(path string) error { return write(path, text[:50]) },
		"unreadable":  func(path string) error { return write(path, "referId\n\"") },
		"appended to": func(path string) error { return write(path, text+"A3,1Z999AA10123456786\n") },
		"replaced": func(path string) error {
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"removed": os.Remove,
	}
	if runtime.GOOS == "windows" { // an open file stays where it is
		delete(changes, "replaced")
		delete(changes, "removed")
	}
	for name, change := range changes {
		for _, when := range []string{"before it is checked", "before it is staged", "while it is staged", "never"} {
			t.Run(name+" "+when, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "orders.csv")
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				at := func(now string) func() {
					return func() {
						if now != when {
							return
						}
						if err := change(path); err != nil {
							t.Error(err)
						}
					}
				}
				rows, err := createChanging(t, path, at)
				code, hint := command.CodeAndHint(err)
				switch {
				case when == "never":
					if err != nil || rows != 2 {
						t.Errorf("%v, %d rows; want both", err, rows)
					}
				case code != command.Usage || !strings.Contains(err.Error(), "orders.csv") || !strings.Contains(err.Error(), "changed while it was read") || hint == "":
					t.Errorf("status %d: %v; hint %q", code, err, hint)
				case rows != 0:
					t.Errorf("%d rows are in the store", rows)
				}
			})
		}
	}
}

// createChanging opens, judges and stages a file, and returns how many rows are
// in the store then.
func createChanging(t *testing.T, path string, at func(when string) func()) (rows int64, err error) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &app.Session{IO: term.New(os.Stdin, os.Stdout, os.Stderr, term.Facts{})}
	in, err := input.NewOpener(s).Open(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	call := &command.Call{Session: s}
	c := &creation{Execution: send.Execution{Call: call}, in: in, plan: ledger.Plan{Files: in.Names(), Mode: ledger.Async, BatchSize: 10}}
	at("before it is checked")()
	if err = c.check(t.Context()); err == nil {
		_, err = c.stage(t.Context(), changingStore{db, at("before it is staged"), at("while it is staged")})
	}
	for run, err := range db.Runs(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows += run.Tally.New
	}
	return rows, err
}

// A file that changes once its rows are sent ends the run with a result whose
// counts add up.
func TestInputThatChangesWhileItIsSent(t *testing.T) {
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	srv := httptest.NewServer(box)
	defer srv.Close()
	path := filepath.Join(t.TempDir(), "orders.csv")
	text := "referId,trackingNumber\n"
	for i := range 20 {
		text += fmt.Sprintf("A%d,1Z999AA101234567%02d\n", i, i)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	call, stdout, _ := clitest.Call(t, "WAYBILL_BASE_URL="+srv.URL, "WAYBILL_API_KEY=k", "WAYBILL_OUTPUT=json", "WAYBILL_BATCH_SIZE=2")
	db, err := call.Store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	db.Stager = changingStore{db.Stager, func() {}, sync.OnceFunc(func() {
		if err := os.WriteFile(path, []byte(text+"A99,1Z999AA10123456799\n"), 0o600); err != nil {
			t.Error(err)
		}
	})}
	err = runCreate(t.Context(), call, createOptions{
		Files: []string{path}, Flags: input.Flags{Format: "auto"},
		Options: send.Options{Unknown: "reconcile", RecheckDelay: "2m"},
	})
	code, hint := command.CodeAndHint(err)
	var res send.Result
	if err := json.Unmarshal(stdout.Bytes(), &res); err != nil {
		t.Fatal(err)
	}
	if want := command.Quoted(path) + " changed while it was read; rows of its first version may have been sent"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "nothing was sent") {
		t.Errorf("%v; want %s", err, want)
	}
	if code != command.Partial || !strings.Contains(hint, "send the remaining rows") || !res.Partial {
		t.Errorf("status %d: %v; hint %q; result %+v", code, err, hint, res)
	}
	if res.Read == 0 || res.Read != res.New || res.New != res.Accepted+res.Pending {
		t.Errorf("the counts do not add up: %+v", res)
	}
}
