package cli_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	page "github.com/waybill-cli/waybill/internal/cli/inspect"
	"github.com/waybill-cli/waybill/internal/inspect"
)

// askPage opens the page of a command, and checks all that it answers: every
// route, about everything that the store has.
func (c *canaryTest) askPage(folder string, way func() ([]string, string), flags ...string) {
	c.Helper()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != c.key.secret {
			c.Errorf("the target got %q as its header", r.Header.Get("X-Token"))
		}
		w.Header().Set("X-Echo", r.Header.Get("X-Token"))
		_, _ = io.WriteString(w, "not found: "+r.Header.Get("X-Token"))
	}))
	defer target.Close()
	file := filepath.Join(folder, "page.url")
	args := append(append([]string{}, flags...), "--debug", "-v", "-o", "jsonl", "--timeout", "20s")
	header := []string{"--target-header", "X-Token=env:WAYBILL_API_KEY"}
	switch {
	case flags[0] == "listen":
		args = append(append(args, "--ui", "--ui-file", file, "--forward-to", target.URL, "--from", "beginning"), header...)
	case len(flags) == 1:
		args = append(append(args, "--ready-file", file, "--to", target.URL), header...)
	default:
		args = append(args, "--ready-file", file)
	}
	var asked atomic.Int64
	c.runUntil(func() {
		text, err := os.ReadFile(file)
		if err := errors.Join(err, os.Remove(file)); err != nil {
			c.Error(err)
			return
		}
		browser := &http.Client{}
		defer browser.CloseIdleConnections()
		base, token, _ := strings.Cut(strings.TrimSpace(string(text)), "/#token=")
		ask := func(method, address, body string) []byte {
			asked.Add(1)
			req, err := http.NewRequestWithContext(c.Context(), method, address, strings.NewReader(body))
			if err != nil {
				c.Error(err)
				return nil
			}
			req.Header.Set("Waybill-Token", token)
			req.Header.Set("Content-Type", "application/json")
			resp, err := browser.Do(req)
			if err != nil {
				c.Error(err)
				return nil
			}
			defer resp.Body.Close()
			var answer []byte
			if resp.Header.Get("Content-Type") == "text/event-stream" {
				lines := bufio.NewScanner(resp.Body)
				lines.Buffer(nil, 1<<20)
				for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
				}
				answer = lines.Bytes()
			} else if answer, err = io.ReadAll(resp.Body); err != nil {
				c.Error(err)
			}
			if resp.StatusCode >= 500 {
				c.Errorf("%s %s: %d %s", method, address, resp.StatusCode, answer)
			}
			if resp.Header.Get("Content-Disposition") == "" { // the bytes that came are those that came
				c.check(strings.Join(args, " ")+": "+method+" "+address, answer)
			}
			return answer
		}
		var all errgroup.Group // as browsers do, several at once
		all.SetLimit(4)
		askLater := func(method, address, body string) {
			all.Go(func() error {
				ask(method, address, body)
				return nil
			})
		}
		defer func() { _ = all.Wait() }() // it has no errors
		get := func(pattern string) inspect.Route { return inspect.Route{Method: "GET", Pattern: pattern} }
		for _, route := range append((&page.Page{}).Routes(), get("/session"), get("/stream")) {
			ids, queries := []string{""}, []string{"", "?refused=1", "?referId=ORD-1&trackingNumber=1Z999AA10123456784", "?search=" + url.QueryEscape("event=*"), "?search=delivered"}
			if strings.Contains(route.Pattern, "{id}") {
				ids, queries = []string{"1", "2", "refused:1", "99"}, []string{"?target=1&from=0"}
			}
			for _, id := range ids {
				address := base + "/api/v1" + strings.ReplaceAll(route.Pattern, "{id}", id)
				if route.Method == http.MethodPost {
					askLater(http.MethodPost, address, `{"target":"1","sign":false}`)
					askLater(http.MethodPost, address, `{"target":"1","sign":true,"body":"{}"}`)
					askLater(http.MethodPost, address, `{"target":"9"}`)
					continue
				}
				for _, query := range queries {
					askLater("GET", address+query, "")
				}
			}
		}
	}, folder, way, nil, args...)
	if n := asked.Load(); n < 5 {
		c.Errorf("%v: %d requests to the page", flags, n)
	}
}

// The page shows no secret, and every route answers, whatever the store.
func TestPageShowsNoSecret(t *testing.T) {
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	c := &canaryTest{T: t, key: newCanary("key"), hook: newCanary("hook"), password: newCanary("password"), home: t.TempDir(), docs: docs}
	service := httptest.NewServer(c.echo())
	defer service.Close()
	c.service = service.URL
	way := c.ways()[0]
	folder := c.prepare(way)
	c.askPage(folder, way, "inspect")
	c.askPage(folder, way, "inspect", "--read-only")
	c.askPage(folder, way, "listen")
	c.checkFolder("the page", folder)
	c.askPage(t.TempDir(), way, "inspect") // where there is no store
}
