package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// RemoveAll is [os.RemoveAll] that also works on a Windows without POSIX deletes, such
// as Wine: there that one fails, while [os.Remove] does not.
func RemoveAll(path string) error {
	err := os.RemoveAll(path)
	if err == nil || runtime.GOOS != "windows" {
		return err
	}
	return removeOneByOne(path)
}

// removeOneByOne removes the files and folders below path, and path.
func removeOneByOne(path string) error {
	var all []string
	err := filepath.WalkDir(path, func(found string, _ fs.DirEntry, err error) error {
		all = append(all, found)
		return err
	})
	for _, one := range slices.Backward(all) { // what is in a folder before the folder
		if gone := os.Remove(one); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
