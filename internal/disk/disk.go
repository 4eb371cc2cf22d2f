// Package disk says what the file system knows and the standard library does
// not show: how much room is left, who besides the user may change a file. It
// makes files that leave nothing behind.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ForeignError says that another user put a file where others may write.
type ForeignError struct {
	Path  string
	Owner string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s belongs to %s, in a folder that other users can write to", e.Path, e.Owner)
}

// TempError says that a temporary file or folder could not be made.
type TempError struct{ Err error }

func (e *TempError) Error() string { return "temporary file: " + e.Err.Error() }
func (e *TempError) Unwrap() error { return e.Err }

// Changers says who besides the user and root can change a file or put another
// in its place. The zero value stands for nobody.
type Changers struct {
	Text   string // such as `everybody may write it`
	Group  bool   // they are a group that the user belongs to
	Owner  bool   // another user owns it
	Folder bool   // it is about the file's folder
}

// RemoveAll removes path and all below it. Unlike [os.RemoveAll] it does so one by one: on a Windows without
// POSIX deletes, such as Wine, that one fails.
func RemoveAll(path string) (err error) {
	var found []string
	_ = filepath.WalkDir(path, func(name string, _ fs.DirEntry, _ error) error {
		found = append(found, name)
		return nil
	})
	for _, name := range slices.Backward(found) {
		if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
