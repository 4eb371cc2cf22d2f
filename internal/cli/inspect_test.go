//go:build !windows

package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/pgtest"
)

// inspector is a process with a page, and a browser that shows it.
type inspector struct {
	*process
	base    string // URL of the page, with a slash at its end
	token   string
	browser *http.Client
}

func startInspector(t *testing.T, env []string, args ...string) inspector {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "url")
	i := inspector{process: start(t, env, append([]string{"inspect", "--ready-file", ready}, args...)...), browser: &http.Client{}}
	t.Cleanup(i.browser.CloseIdleConnections)
	i.await("page", func() bool {
		text, err := os.ReadFile(ready)
		i.base, i.token, _ = strings.Cut(strings.TrimSpace(string(text)), "#token=")
		return err == nil && i.get("api/v1/session").status == http.StatusOK
	})
	return i
}

func (i inspector) get(path string) answered {
	i.Helper()
	req, err := http.NewRequestWithContext(i.Context(), http.MethodGet, i.base+path, nil)
	if err != nil {
		i.Fatal(err)
	}
	req.Header.Set("Waybill-Token", i.token)
	res, err := i.browser.Do(req)
	if err != nil {
		i.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		i.Fatal(err)
	}
	return answered{status: res.StatusCode, text: string(body)}
}

// The page says what is wrong while its store is away, and goes on by itself.
func TestInspectorGoesOnAfterTheServerWentAway(t *testing.T) {
	t.Parallel()
	server, ok := pgtest.Start(t)
	if !ok {
		return
	}
	env := []string{"WAYBILL_STORE=" + server.NewURL(t), "WAYBILL_BASE_URL=http://127.0.0.1:1"}
	listener := startListener(t, env)
	if got := listener.deliver(1, "N1"); got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	if code := listener.stop(); code != command.OK {
		t.Fatalf("listen ended with %d", code)
	}
	page := startInspector(t, env)
	const path = "api/v1/deliveries"
	if got := page.get(path); got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	if err := server.Stop(t.Context(), "immediate"); err != nil {
		t.Fatal(err)
	}
	var failure struct{ Error, Hint, Code string }
	if got := page.get(path); got.status != http.StatusServiceUnavailable || json.Unmarshal([]byte(got.text), &failure) != nil || failure.Code != "store" || failure.Error == "" || failure.Hint == "" {
		t.Errorf("without its server: %+v", got)
	}
	if got := page.get("api/v1/session"); got.status != http.StatusOK {
		t.Errorf("session without its server: %+v", got)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	page.await("answer of the store", func() bool { return page.get(path).status == http.StatusOK })
	if code := page.stop(); code != command.OK {
		t.Errorf("inspect ended with %d: %s", code, page.errs.String())
	}
}
