package disk

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Foreign returns nil: here access lists say who may write where.
func Foreign(string, fs.FileInfo) error { return nil }

// Resolve returns what a path names, or would name, without symbolic links.
func Resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return target, err
}
