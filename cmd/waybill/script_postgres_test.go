package main_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/shell"
)

// With TEST_STORE=postgres the transcripts run on PostgreSQL: each path of a
// store that a script names, the default one too, stands for a schema.

// fileScripts lists the transcripts that are about a store in a file, and why.
// They run on files alone.
var fileScripts = map[string]string{
	"listen_gone":      "it replaces a file; internal/cli tests a server that lost commits",
	"readonly":         "it takes away the right to write a file",
	"output_members":   "it backs up and copies a file",
	"out_spares_store": "it is about files beside that of the store",
	"store_backup":     "pg_dump backs a server up",
	"store_check":      "it damages a file",
	"store_copy":       "it copies to files; internal/store tests copies to and from servers",
	"store_path":       "it is about paths",
	"store_restore":    "pg_restore restores a server",
}

// serverStores is the environment variable of a script with the URL of the
// schema whose name begins those of its stores.
const serverStores = "TEST_SERVER_STORES"

// onServer reports whether the transcripts run on PostgreSQL.
func onServer() bool { return os.Getenv("TEST_STORE") == "postgres" }

// withoutFileScripts returns the scripts that run on PostgreSQL; nil if it is
// missing.
func withoutFileScripts(t *testing.T, files []string) []string {
	t.Helper()
	if _, ok := pgtest.URL(t); !ok {
		return nil
	}
	for name, reason := range fileScripts {
		i := slices.IndexFunc(files, func(file string) bool { return filepath.Base(file) == name+".txtar" })
		if i < 0 || reason == "" {
			t.Fatalf("%s is no script, or there is no reason why it runs on files alone", name)
		}
		files = slices.Delete(files, i, i+1)
	}
	return files
}

// giveSchemas gives a script schemas of its own.
func giveSchemas(e *testscript.Env) error {
	server, err := pgtest.Shared()
	if err != nil {
		return err
	}
	of, drop, err := server.NewSchema()
	if err != nil {
		return err
	}
	e.Setenv(serverStores, of)
	e.Defer(func() {
		if err := drop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "a schema stays:", err)
		}
	})
	return nil
}

// moveStores puts schemas in the place of the paths of stores, in the arguments
// and in the environment of this process.
func moveStores() {
	base := os.Getenv(serverStores)
	if base == "" {
		return
	}
	for i, arg := range os.Args {
		if path, ok := strings.CutPrefix(arg, "--store="); ok {
			os.Args[i] = "--store=" + placeOf(base, path)
		} else if arg == "--store" && i+1 < len(os.Args) {
			os.Args[i+1] = placeOf(base, os.Args[i+1])
		}
	}
	path := os.Getenv("WAYBILL_STORE")
	if home := os.Getenv("HOME"); path == "" && home != "" {
		path = filepath.Join(home, ".local", "share", "waybill", "waybill.db")
	}
	if err := os.Setenv("WAYBILL_STORE", placeOf(base, path)); err != nil {
		panic(err)
	}
}

// storeFlag is a store as a command line has it.
var storeFlag = regexp.MustCompile(`--store ([\w.]+)`)

// onStore returns a text that a script expects, with what stands for the stores
// that it names.
func onStore(ts *testscript.TestScript, text string) string {
	base := ts.Getenv(serverStores)
	if base == "" {
		return text
	}
	return storeFlag.ReplaceAllStringFunc(text, func(flag string) string {
		return "--store " + shell.Word(placeOf(base, ts.MkAbs(strings.TrimPrefix(flag, "--store "))))
	})
}

// placeOf returns the URL of the schema that stands for the path of a store. What
// is no such path stays, and so does a file that is there: it is no store.
func placeOf(base, path string) string {
	if _, err := os.Stat(path); path == "" || err == nil || config.IsServer(path) || strings.Contains(path, "://") {
		return path
	}
	full, err := filepath.Abs(path)
	u, urlErr := url.Parse(base)
	if err := errors.Join(err, urlErr); err != nil {
		panic(err)
	}
	sum := fnv.New32a()
	_, _ = io.WriteString(sum, full)
	values := u.Query()
	values.Set("schema", fmt.Sprintf("%s_%08x", values.Get("schema"), sum.Sum32()))
	u.RawQuery = values.Encode()
	return u.String()
}

// eventually is exits, but on a server, where a process that was killed is known
// to be dead after seconds, it tries again.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually CODE PROGRAM ARG...")
	}
	if ts.Getenv(serverStores) != "" {
		until(ts, "exit status "+args[0], func() bool { return exitStatus(ts, args[1:]) == args[0] })
		return
	}
	exits(ts, neg, args)
}
