package app_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
)

// The names of this machine are one account, and keep the name that the store
// has for it.
func TestLoopbackNamesAreOneAccount(t *testing.T) {
	const url = "http://127.0.0.1:8080/x"
	tests := []struct {
		name    string
		has     []string // accounts with runs
		setting string
		want    string
	}{
		{"no store", nil, "BASE_URL=http://localhost:8080/x", url},
		{"an address", nil, "BASE_URL=http://127.8.0.1:8080/x", url},
		{"IPv6", []string{url}, "BASE_URL=http://[::1]:8080/x", url},
		{"known by its name", []string{"http://localhost:8080/x"}, "BASE_URL=" + url, "http://localhost:8080/x"},
		{"known by both", []string{"http://localhost:8080/x", url}, "BASE_URL=" + url, url},
		{"another port", []string{"http://localhost:8081/x"}, "BASE_URL=http://localhost:8080/x", url},
		{"another path", []string{"http://localhost:8080/y"}, "BASE_URL=http://localhost:8080/x", url},
		{"said so", []string{url}, "ACCOUNT=http://localhost:8080/x", url},
		{"a word", []string{url}, "ACCOUNT=shop", "shop"},
		{"elsewhere", []string{url}, "BASE_URL=https://api.example.com", "https://api.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "waybill.db")
			if tt.has != nil {
				withRuns(t, path, tt.has...)
			}
			a := &app.App{
				IO: term.New(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, term.Facts{}),
				Sources: func([]config.Flag) config.Sources {
					return config.Sources{Env: []string{"WAYBILL_" + tt.setting, "WAYBILL_STORE=" + path}, WorkDir: home, Home: home}
				},
			}
			s, err := a.Session(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Account(t.Context()); got != tt.want {
				t.Errorf("account %q; want %q", got, tt.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// withRuns makes a store of accounts that have a run each.
func withRuns(t *testing.T, path string, accounts ...string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range accounts {
		staging, err := db.Stage(t.Context(), ledger.Plan{Account: name, Files: []string{"x"}, Mode: ledger.Async, BatchSize: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := staging.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
