package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// A key never seen on an account that has runs sends nothing before its user
// has said whose it is, and then nothing twice.
func TestTortureNewKey(t *testing.T) {
	t.Parallel()
	n := either(200, 20_000)
	w := newWorld(t, "--processing", "0s")
	rows := append(pairs(n, parcels), w.control())
	file := orders(t, w.home, n, parcels)
	if code, r := w.create(file); code != 0 || r.Accepted != n {
		t.Fatalf("ended with %d: %+v", code, r)
	}
	asked := w.stats("?rows=0").Requests["createV2"]
	w.env = append(w.env, "WAYBILL_API_KEY=k2")
	code, _, stderr := w.run("create", file, "-o", "json")
	if code != 2 || !strings.Contains(string(stderr), "--same-account") || !strings.Contains(string(stderr), "--account") {
		t.Errorf("a new key ended with %d, and what to do is not said: %s", code, stderr)
	}
	for _, flags := range [][]string{{"--same-account"}, nil} {
		if code, r := w.create(file, flags...); code != 0 || r.Accepted != n || r.Already != n {
			t.Errorf("with the new key and %q it ended with %d: %+v", flags, code, r)
		}
	}
	if now := w.stats("?rows=0").Requests["createV2"]; now != asked {
		t.Errorf("%d creates more than before", now-asked)
	}
	w.whole(rows, 0)
}

// Two accounts of one host: each has a store of its own and gets every row once. The store of
// one is refused to the other.
func TestTortureTwoAccounts(t *testing.T) {
	t.Parallel()
	n := either(200, 20_000)
	boxes := map[string]*sandbox.Server{}
	counts := map[string]*world{}
	for _, key := range []string{"k1", "k2"} {
		box, err := sandbox.New(sandbox.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = box.Close() })
		boxes[key], counts[key] = box, &world{tb: t, url: listenAt(t, "127.0.0.1:0", box).URL}
	}
	w := newHome(t)
	w.at(listenAt(t, "127.0.0.1:0", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		box := boxes[r.Header.Get("Authorization")]
		if box == nil {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		box.ServeHTTP(rw, r)
	})).URL)
	rows := pairs(n, parcels)
	file := orders(t, w.home, n, parcels)
	account := map[string][]string{"k1": {"--account", "one"}, "k2": {"--account", "two", "--store", filepath.Join(w.home, "two.db")}}
	for _, key := range []string{"k1", "k2", "k1", "k2"} {
		w.env = append(w.env, "WAYBILL_API_KEY="+key)
		if code, r := w.create(file, account[key]...); code != 0 || r.Accepted != n {
			t.Errorf("%s ended with %d: %+v", key, code, r)
		}
	}
	for _, flags := range [][]string{{"--account", "one"}, {"--account", "two"}} { // the key of two, or its name
		if code, _, _ := w.run(append([]string{"create", file, "-o", "json"}, flags...)...); code != 2 {
			t.Errorf("%q ended with %d; want 2", flags, code)
		}
	}
	for key, count := range counts {
		if made := count.service(rows); len(made) != n {
			t.Errorf("%s has %d trackings; want %d", key, len(made), n)
		}
		if states := w.ledger(account[key]...); len(states) != n {
			t.Errorf("%s: the ledger holds %d rows; want %d", key, len(states), n)
		}
	}
}

// Wherever a command is typed, and by whichever name the file is called, what
// was sent is known.
func TestTortureOtherFolder(t *testing.T) {
	t.Parallel()
	n := either(200, 20_000)
	w := newWorld(t, "--processing", "0s")
	rows := append(pairs(n, parcels), w.control())
	file := orders(t, w.home, n, parcels)
	other := filepath.Join(w.home, "other", "folder")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, other, "copy.csv", string(text))
	for _, c := range []struct{ dir, name string }{
		{w.home, file}, {other, file}, {other, filepath.Join("..", "..", filepath.Base(file))}, {other, "copy.csv"}, {w.home, filepath.Base(file)},
	} {
		cmd := w.command("create", c.name, "-o", "json")
		cmd.Dir = c.dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if code, err := ended(cmd, allowed()); code != 0 || err != nil {
			t.Errorf("%s in %s ended with %d: %v: %s", c.name, c.dir, code, err, cmd.Stderr)
		}
	}
	if asked, want := w.stats("?rows=0").Requests["createV2"], 3+(n-1)/1000; asked > want {
		t.Errorf("%d creates; want at most %d", asked, want)
	}
	w.whole(rows, 0)
}
