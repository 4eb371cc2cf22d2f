//go:build unix

package edit_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
)

// A user file that is a link stays one, also one to what is not there yet.
func TestSetFollowsALink(t *testing.T) {
	for before, want := range map[string]string{"quiet: true\n": "quiet: true\nrate: 2.5\n", "": "rate: 2.5\n"} {
		src, path := userFile(t, "verbose: true\n")
		target := filepath.Join(t.TempDir(), "dotfiles.yaml")
		if err := errors.Join(os.Remove(path), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
		if before != "" {
			if err := os.WriteFile(target, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := edit.Set(src, config.DefaultProfile, edit.Change{Key: "rate", Value: "2.5"}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("the link is gone: %v, %v", info, err)
		}
		if data, err := os.ReadFile(target); err != nil || string(data) != want {
			t.Errorf("%q, %v", data, err)
		}
		if info, err := os.Stat(target); err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
	}
}
