package app_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
)

// A store belongs to one account, whose name it keeps. The names of this machine are one.
func TestAStoreBelongsToOneAccount(t *testing.T) {
	const url = "http://127.0.0.1:8080/x"
	tests := []struct {
		name    string
		pinned  string // "-": there is no store, empty: it belongs to none
		setting string
		want    string // empty: the store is refused
	}{
		{"no store", "-", "BASE_URL=" + url, url},
		{"of none", "", "BASE_URL=" + url, url},
		{"the same", url, "BASE_URL=" + url, url},
		{"IPv6", url, "BASE_URL=http://[::1]:8080/x", url},
		{"known by its name", "http://localhost:8080/x", "BASE_URL=" + url, "http://localhost:8080/x"},
		{"a word", "shop", "ACCOUNT=shop", "shop"},
		{"not set", "shop", "OUTPUT=json", "shop"},
		{"another port", "http://localhost:8081/x", "BASE_URL=http://localhost:8080/x", ""},
		{"another path", "http://localhost:8080/y", "BASE_URL=http://localhost:8080/x", ""},
		{"another word", url, "ACCOUNT=shop", ""},
		{"elsewhere", url, "BASE_URL=https://api.example.com", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "waybill.db")
			if tt.pinned != "-" {
				pinStore(t, path, tt.pinned)
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
			if _, err := s.ExistingStore(t.Context()); (err != nil) != (tt.want == "") {
				t.Errorf("reading: %v", err)
			}
			_, err = s.Store(t.Context())
			if err == nil && s.Account(t.Context()) != tt.want {
				t.Errorf("account %q; want %q", s.Account(t.Context()), tt.want)
			}
			if err == nil != (tt.want != "") || err != nil && !strings.Contains(hintOf(err), "--account "+tt.pinned) {
				t.Errorf("%v; want account %q", err, tt.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err == nil && pinStore(t, path, "too late") != tt.want {
				t.Errorf("the store does not belong to %q", tt.want)
			}
		})
	}
}

// pinStore makes a store that belongs to an account, or none. It returns whose it is.
func pinStore(t *testing.T, path, account string) (pinned string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if account != "" {
		if pinned, err = db.Pin(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return pinned
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*config.KeyError](err); ok {
		return e.Hint
	}
	return ""
}
