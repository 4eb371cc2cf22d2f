package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// On a terminal, a request that may change data is sent after a yes alone. A response
// that repeats the key is shown without it, and nothing of it steers the terminal.
func TestAPIAsksAndMasks(t *testing.T) {
	const key = "a-key-of-the-user"
	var sent atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("\x1b[2Jkey " + r.Header.Get("Authorization")))
	}))
	defer service.Close()
	for typed, want := range map[string]int32{"n\n": 0, "\n": 0, "y\n": 1} {
		var out, errs bytes.Buffer
		home := t.TempDir()
		a := &app.App{
			IO:     term.New(strings.NewReader(typed), &out, &errs, term.Facts{InTerminal: true, OutTerminal: true, ErrTerminal: true}),
			Getenv: func(string) string { return "" },
			Sources: func(flags []config.Flag) config.Sources {
				return config.Sources{Flags: flags, Env: []string{"WAYBILL_BASE_URL=" + service.URL, "WAYBILL_API_KEY=" + key}, WorkDir: home, Home: home}
			},
		}
		sent.Store(0)
		code := cli.Run(t.Context(), a, []string{"api", "put", "/x", "-f", "a=b", "--include"})
		if sent.Load() != want || (code == command.OK) != (want == 1) || !strings.Contains(errs.String(), "Send PUT /x to ") {
			t.Errorf("%q: %d sent, status %d: %s", typed, sent.Load(), code, errs.String())
		}
		if want == 1 && (strings.Contains(out.String(), key) || strings.Contains(out.String(), "session=1") || strings.Contains(out.String(), "\x1b[2J") ||
			!strings.Contains(out.String(), "key ***") || !strings.Contains(out.String(), "X-Echo: ***")) {
			t.Errorf("printed %q", out.String())
		}
	}
}
