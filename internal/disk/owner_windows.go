package disk

import (
	"errors"
	"io/fs"
	"os"
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

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return os.Open(path) }

// ChangersOf returns nobody: here access lists say who may write where.
func ChangersOf(string, fs.FileInfo) Changers { return Changers{} }

// ForeignOwner returns nobody: here access lists say who may write where.
func ForeignOwner(string, fs.FileInfo) Changers { return Changers{} }
