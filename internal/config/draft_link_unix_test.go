//go:build unix

package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

// A user file that is a link to what is not there yet stays a link.
func TestSetMakesWhatALinkNames(t *testing.T) {
	src, path := userFile(t, "quiet: false\n")
	target := filepath.Join(t.TempDir(), "of-mine.yaml")
	if err := errors.Join(os.Remove(path), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "quiet", Value: "true"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "quiet: true\n" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(target); err == nil && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}
