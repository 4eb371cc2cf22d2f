package main_test

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/sandbox"
)

// target counts what a redirect brought to it.
type target struct {
	mu   sync.Mutex
	came []string
}

func (g *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.came = append(g.came, fmt.Sprint(r.Method, r.URL, r.Header))
	_, _ = fmt.Fprint(w, `{"message":"accepted"}`)
}

// No redirect is followed, wherever it leads: nothing arrives at its target, no
// row is accepted, and when the service is itself again nothing was doubled.
func TestTortureRedirects(t *testing.T) {
	t.Parallel()
	for i, code := range []int{301, 302, 303, 307, 308} {
		for j, to := range []string{"same host", "other port", "other host", "http"} {
			if !full() && (i+j)%2 > 0 {
				continue // every code and every target, but not every pair of them
			}
			t.Run(fmt.Sprint(code, " ", to), func(t *testing.T) { redirect(t, code, to) })
		}
	}
}

func redirect(t *testing.T, code int, to string) {
	var g target
	var on atomic.Bool
	var place string
	box, err := sandbox.New(sandbox.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/elsewhere"):
			g.ServeHTTP(w, r)
		case on.Load() && !strings.HasPrefix(r.URL.Path, "/_"):
			w.Header().Set("Location", place+"/elsewhere"+r.URL.Path)
			w.WriteHeader(code)
		default:
			box.ServeHTTP(w, r)
		}
	})
	w := newHome(t)
	if to == "http" { // from https
		s := httptest.NewTLSServer(handler)
		defer s.Close()
		w.at(s.URL)
		ca := filepath.Join(w.home, "ca.pem")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		if err := os.WriteFile(ca, block, 0o600); err != nil {
			t.Fatal(err)
		}
		w.env = append(w.env, "WAYBILL_CA_FILE="+ca)
	} else {
		w.at(listenAt(t, "127.0.0.1:0", handler).URL)
	}
	switch to {
	case "same host":
		place = w.url
	case "other host":
		place = listenAt(t, "127.0.0.2:0", &g).URL
	default:
		place = listenAt(t, "127.0.0.1:0", &g).URL
	}
	count := &world{tb: t, url: listenAt(t, "127.0.0.1:0", box).URL} // without TLS
	redirected(t, w, count, &on, &g)
}

// redirected runs what speaks to the service while it redirects, and then goes
// on when it does not.
func redirected(t *testing.T, w, count *world, on *atomic.Bool, g *target) {
	const n = 5
	w.env = append(w.env, "WAYBILL_API_KEY=s3cr3t-of-this-test")
	rows := append(pairs(n, parcels), w.control())
	file := orders(t, w.home, n, parcels)
	on.Store(true)
	for _, flags := range [][]string{{"--sync"}, nil} {
		code, r := w.create(file, append(flags, "--settle", "0s", "--timeout", "4s")...)
		if code != 7 || r.Accepted != 0 || r.Unknown != n {
			t.Errorf("create %v ended with %d: %+v; want 7, no row accepted and all unknown", flags, code, r)
		}
	}
	code, stdout, stderr := w.run("show", "CONTROL-1", "--debug", "--timeout", "1s")
	if code == 0 || len(stdout) > 0 {
		t.Errorf("show ended with %d: %s", code, stdout)
	}
	if strings.Contains(string(stderr), "s3cr3t") {
		t.Errorf("the key is in what show said: %s", stderr)
	}
	on.Store(false)
	if made := len(count.service(rows)); made != 1 {
		t.Errorf("%d trackings were made behind redirects", made-1)
	}
	w.finish(3, "create", file, "-o", "json", "--settle", "0s")
	if states := w.ledger(); len(states) != len(rows) {
		t.Errorf("the ledger holds %d rows; want %d", len(states), len(rows))
	}
	if made := len(count.service(rows)); made != len(rows) {
		t.Errorf("the service has %d trackings; want %d", made, len(rows))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.came) > 0 {
		t.Errorf("a redirect was followed: %q", g.came)
	}
}
