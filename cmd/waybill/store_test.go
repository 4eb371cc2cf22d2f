package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/pgtest"
	"github.com/waybill-cli/waybill/internal/store"
)

// killCopies copies a store and kills the copy again and again, each time a little
// later, until one ends. What a killed one left is removed. It returns how many were killed.
func killCopies(t *testing.T, w *world, from, to string) int {
	t.Helper()
	for kills := 0; ; kills++ {
		cmd := w.command("store", "copy", from, to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(time.Duration(50+75*kills)*time.Millisecond, func() { _ = cmd.Process.Kill() })
		code, err := ended(cmd, patience)
		killer.Stop()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case code == 0, kills > 0 && code == 10 && strings.Contains(fmt.Sprint(cmd.Stderr), store.ErrNotEmpty.Error()):
			return kills // the last one was killed after it had finished: that is compared like others
		case code != -1:
			t.Fatalf("ended with %d after %d kills: %s", code, kills, cmd.Stderr)
		}
		if strings.Contains(to, "://") {
			conn := pgtest.Connect(t, to)
			if _, err := conn.Exec(t.Context(), "DO $$ BEGIN EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', current_setting('search_path')); END $$"); err != nil {
				t.Fatal(err)
			}
			continue
		}
		left, err := filepath.Glob(filepath.Join(w.home, to+".copying*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wantSameStore compares what commands show of two stores.
func wantSameStore(t *testing.T, w *world, a, b string) {
	t.Helper()
	for _, line := range []string{"runs list -o json", "runs rows 1 -o csv", "list -o jsonl", "events list -o json"} {
		_, one, _ := w.run(append(strings.Fields(line), "--store", a)...)
		code, two, stderr := w.run(append(strings.Fields(line), "--store", b)...)
		if code != 0 || len(one) == 0 || !bytes.Equal(one, two) {
			t.Errorf("%s: %d, %d bytes and %d differ: %s", line, code, len(one), len(two), stderr)
		}
	}
	if code, _, stderr := w.run("store", "check", "--store", b); code != 0 {
		t.Errorf("check: %d: %s", code, stderr)
	}
}

func TestStoreCopyIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	input := orders(t, w.home, 8_000, func(n int) string { return fmt.Sprintf("ORDER-%d", n) })
	if code, r := w.create(input, "--store", "from.db"); code != 0 {
		t.Fatalf("create ended with %d: %+v", code, r)
	}
	kills := killCopies(t, w, "from.db", "to.db")
	wantSameStore(t, w, "from.db", "to.db")
	if url, ok := pgtest.URL(t); ok {
		kills += killCopies(t, w, "to.db", url)
		kills += killCopies(t, w, url, "back.db")
		wantSameStore(t, w, "from.db", "back.db")
	}
	if t.Logf("%d kills", kills); kills < 3 {
		t.Errorf("%d copies were killed; want more", kills)
	}
}

// The commands about the store on a server.
func TestStoreOnAServer(t *testing.T) {
	url, ok := pgtest.URL(t)
	if !ok {
		return
	}
	w := newWorld(t)
	for _, tt := range []struct {
		line, stdout string
		code         int
	}{
		{"store path -o json", `"exists": false`, 0},
		{"store check", "", 10},
		{"create --refer-id R --tracking-number N", "", 0},
		{"store path", "postgres://waybill@", 0},
		{"store path -o json", `"exists": true`, 0},
		{"store check", "PostgreSQL", 0},
		{"store check -o json", `"sound": true`, 0},
		{"store backup dump", "pg_dump --format=custom --schema=", 2},
		{"store backup dump -o json", `"backupCommand": "pg_dump --format=custom --schema=`, 2},
		{"store prune --older-than 0s --dry-run", "Would remove 1 run,", 0},
		{"store prune --older-than 0s", "Removed 1 run,", 0},
		{"store prune --older-than 0s -o json", `"freeBytes": null`, 0},
		{"store copy " + url + " " + url, "", 2},
	} {
		code, stdout, stderr := w.run(append(strings.Fields(tt.line), "--store", url)...)
		if code != tt.code || !strings.Contains(string(stdout), tt.stdout) {
			t.Errorf("%s: %d; want %d and %q: %s%s", tt.line, code, tt.code, tt.stdout, stdout, stderr)
		}
	}
}
