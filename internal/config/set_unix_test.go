//go:build unix

package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

func TestSetFollowsALink(t *testing.T) {
	src, path := userFile(t, "quiet: true\n")
	target := filepath.Join(t.TempDir(), "dotfiles.yaml")
	if err := os.Rename(path, target); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Set(src, config.DefaultProfile, config.Change{Key: "rate", Value: "2.5"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if data, err := os.ReadFile(target); err != nil || string(data) != "quiet: true\nrate: 2.5\n" {
		t.Errorf("%q, %v", data, err)
	}
}
