package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/term"
)

// AtomicFile is written beside its place and put there when it is whole. What is
// no regular file, such as a device or a pipe, is written to at once: nothing
// may take its place.
type AtomicFile struct {
	f       *os.File
	path    string // its place; empty for what is written to at once
	written bool
	done    bool
}

// NewAtomicFile begins a file. The end of ctx ends the opening of a FIFO that
// nobody reads.
func NewAtomicFile(ctx context.Context, path string) (*AtomicFile, error) {
	w, err := openWhole(ctx, path)
	switch {
	case err == nil:
		return w, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case As[*disk.ForeignError](err):
		return nil, Usagef("use a file in a folder that only you can write to, or remove that file first", "write %s: %w", path, err)
	}
	return nil, Usagef("use a file in a folder that exists and is writable", "write %s: %w", path, err)
}

func openWhole(ctx context.Context, path string) (*AtomicFile, error) {
	target, err := disk.Resolve(path) // a link stays one
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createBeside(target)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder")
	}
	if err := disk.Foreign(target, info); err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return createBeside(target)
	}
	f, err := term.Await(ctx, func() (*os.File, error) { return os.OpenFile(target, os.O_WRONLY, 0) })
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = disk.Foreign(target, info) // what was opened, not what was there before
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &AtomicFile{f: f}, nil
}

// createBeside makes the file that will be target. Its error names the folder.
func createBeside(target string) (*AtomicFile, error) {
	folder := filepath.Dir(target)
	f, err := os.CreateTemp(folder, "."+filepath.Base(target)+".*")
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: fault.Op, Path: folder, Err: fault.Err}
	}
	return &AtomicFile{f: f, path: target}, err
}

// Write appends to what will be the file.
func (w *AtomicFile) Write(p []byte) (int, error) {
	w.written = w.written || len(p) > 0
	return w.f.Write(p)
}

// Name returns the path of what is written, for programs that open it by name.
func (w *AtomicFile) Name() string { return w.f.Name() }

// Commit puts the file in its place; nil is none.
func (w *AtomicFile) Commit() error {
	if w == nil || w.done {
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

// Discard removes what was written, unless it was committed; nil is none.
func (w *AtomicFile) Discard() {
	if w == nil || w.done {
		return
	}
	w.done = true
	_ = w.f.Close()
	if w.path != "" {
		_ = os.Remove(w.f.Name())
	}
}
