package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// wholeFile is written beside its place and put there when it is whole. What is
// no regular file, such as a device or a pipe, is written to at once: nothing
// may take its place.
type wholeFile struct {
	f       *os.File
	path    string // its place; empty for what is written to at once
	written bool
	done    bool
}

func newWholeFile(path string) (*wholeFile, error) {
	w, err := openWhole(path)
	if err != nil {
		return nil, usagef("name a file in a folder that exists and can be written", "write %s: %w", path, err)
	}
	return w, nil
}

func openWhole(path string) (*wholeFile, error) {
	target, err := filepath.EvalSymlinks(path) // a link stays one
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	switch {
	case err == nil && info.IsDir():
		return nil, errors.New("it is a folder")
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(target, os.O_WRONLY, 0)
		return &wholeFile{f: f}, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*")
	return &wholeFile{f: f, path: target}, err
}

// Write appends to what will be the file.
func (w *wholeFile) Write(p []byte) (int, error) {
	w.written = w.written || len(p) > 0
	return w.f.Write(p)
}

// Commit puts the file in its place.
func (w *wholeFile) Commit() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.path == "" {
		return w.f.Close()
	}
	err := errors.Join(w.f.Sync(), w.f.Close())
	if err == nil {
		err = os.Rename(w.f.Name(), w.path)
	}
	if err != nil {
		_ = os.Remove(w.f.Name())
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	return nil
}

// Discard removes what was written, unless it was committed.
func (w *wholeFile) Discard() {
	if w.done {
		return
	}
	w.done = true
	_ = w.f.Close()
	if w.path != "" {
		_ = os.Remove(w.f.Name())
	}
}
