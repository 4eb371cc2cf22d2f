//go:build unix

package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/store"
)

// stranger is a user that is not the one who runs the tests.
const stranger = 12345

// A store that others may change is refused, one that a group shares is named.
func TestOpenRefusesWhatOthersMayChange(t *testing.T) {
	for _, tt := range []struct {
		name         string
		side         string // what follows the store's name; empty for itself
		mode, folder os.FileMode
		uid, gid     int // -1 for the user's own
		want, shared string
	}{
		{"own", "", 0o600, 0o755, -1, -1, "", ""},
		{"all may write", "", 0o666, 0o755, -1, -1, "everybody can write to it", ""},
		{"of another user", "", 0o600, 0o755, stranger, -1, "it belongs to user 12345", ""},
		{"shared by a group", "", 0o660, 0o755, -1, stranger, "", "group 12345 can write to it"},
		{"all may write its folder", "", 0o600, 0o777, -1, -1, "", "everybody can write to its folder"},
		{"folder for temporary files", "", 0o600, 0o777 | os.ModeSticky, -1, -1, "", ""},
		{"log of another user", "-journal", 0o600, 0o777 | os.ModeSticky, stranger, -1, "w.db-journal belongs to user 12345", ""},
		{"lock of another user", ".staging.lock", 0o600, 0o777 | os.ModeSticky, stranger, -1, "w.db.staging.lock belongs to user 12345", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "w.db")
			made, err := Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := made.Close(); err != nil {
				t.Fatal(err)
			}
			changed := path + tt.side
			if tt.side != "" {
				if err := os.WriteFile(changed, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chown(changed, tt.uid, tt.gid); errors.Is(err, os.ErrPermission) {
				t.Log("only root can give files away: nothing is shown here")
				return
			} else if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Chmod(changed, tt.mode), os.Chmod(filepath.Dir(path), tt.folder)); err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), path, store.Options{})
			if tt.want != "" {
				var refused *store.Error
				if !errors.Is(err, store.ErrExposed) || !errors.As(err, &refused) || refused.Hint() == "" || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v; want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Shared(); got != tt.shared {
				t.Errorf("shared: %q, want %q", got, tt.shared)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store of another user may be read by whoever can't write it.
func TestStoreOfAnotherUserIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.db")
	if err := opened(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, stranger, -1); errors.Is(err, os.ErrPermission) {
		t.Log("only root can give files away: nothing is shown here")
		return
	} else if err != nil {
		t.Fatal(err)
	}
	if shared, err := whoShares(path, true); err != nil || !strings.Contains(shared, "another user") {
		t.Errorf("%q, %v; want that another user can write to it", shared, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if shared, err := whoShares(path, true); !errors.Is(err, store.ErrExposed) {
		t.Errorf("everybody can write to it: %q, %v; want %v", shared, err, store.ErrExposed)
	}
}

// A link that another user put where others may write is not followed: nothing
// is opened or made where it points. Links of the user's own are.
func TestOpenFollowsNoLinkOfOthers(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSticky} {
		own, folder := t.TempDir(), filepath.Join(t.TempDir(), "shared")
		at := filepath.Join(own, "w.db")
		link, dangling, inner := filepath.Join(folder, "w.db"), filepath.Join(folder, "new.db"), filepath.Join(folder, "inner")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, mode), os.Symlink(at, link),
			os.Symlink(filepath.Join(own, "new.db"), dangling), os.Symlink(own, inner)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{link, filepath.Join(inner, "w.db")} {
			d, err := Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{link, dangling, inner} {
			if err := os.Lchown(path, stranger, stranger); errors.Is(err, os.ErrPermission) {
				t.Log("only root can give links away: nothing is shown here")
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{link, dangling, filepath.Join(inner, "w.db"), filepath.Join(inner, "new", "w.db")} {
			d, err := Open(t.Context(), path, store.Options{})
			if err == nil {
				err = d.Close()
			}
			var refused *store.Error
			if !errors.Is(err, store.ErrExposed) || !errors.As(err, &refused) || refused.Hint() == "" || !strings.Contains(err.Error(), "belongs to user 12345") {
				t.Errorf("mode %v: %s: %v", mode, path, err)
			}
		}
		for _, made := range []string{"new.db", "new"} {
			if _, err := os.Stat(filepath.Join(own, made)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("mode %v: %s was made: %v", mode, made, err)
			}
		}
	}
}
