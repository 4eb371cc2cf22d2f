package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// whole writes text through an AtomicFile, and commits it or not.
func whole(t *testing.T, path, text string, commit bool) {
	t.Helper()
	w, err := NewAtomicFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if commit {
		err = w.Commit()
	}
	w.Discard()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAtomicFileTakesItsPlaceWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "a.csv"), filepath.Join(dir, "link.csv")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := func(text string) {
		t.Helper()
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q, %v; want %q", b, err, text)
		}
	}
	whole(t, path, "half", false)
	want("before")
	whole(t, path, "after", true)
	want("after")
	if err := os.Symlink(path, link); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		link = path
	}
	whole(t, link, "through the link", true)
	want("through the link")
	if files, err := os.ReadDir(dir); err != nil || len(files) > 2 {
		t.Errorf("left behind: %v, %v", files, err)
	}
	for _, folder := range []string{dir, filepath.Join(dir, "missing", "x")} {
		if w, err := NewAtomicFile(t.Context(), folder); err == nil {
			w.Discard()
			t.Errorf("%s can be written to", folder)
		}
	}
}

// Nothing takes the place of a device: as root that would be the end of it.
func TestAtomicFileLeavesDevicesInPlace(t *testing.T) {
	before, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, os.DevNull, "nothing", true)
	if after, err := os.Stat(os.DevNull); err != nil || after.Mode() != before.Mode() || after.Mode().IsRegular() {
		t.Errorf("%s was %v and is %v, %v", os.DevNull, before.Mode(), after, err)
	}
}

// An error names what the user knows, not the file that is made meanwhile.
func TestAtomicFileNamesTheFolderThatIsMissing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "none")
	_, err := NewAtomicFile(t.Context(), filepath.Join(folder, "out.csv"))
	if err == nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), ".out.csv.") || !strings.Contains(err.Error(), "open "+folder+":") {
		t.Errorf("error %v; want one about %s", err, folder)
	}
}
