package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRemoveAll(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a")
	outside := filepath.Join(t.TempDir(), "kept")
	err := errors.Join(
		os.MkdirAll(filepath.Join(root, "b", "c"), 0o700),
		os.WriteFile(filepath.Join(root, "b", "c", "file"), nil, 0o600),
		os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
		os.WriteFile(outside, nil, 0o600),
		os.Symlink(outside, filepath.Join(root, "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"a folder", "what is gone"} {
		if err := RemoveAll(root); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Lstat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link names was removed: %v", err)
	}
}
