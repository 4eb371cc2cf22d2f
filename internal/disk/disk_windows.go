package disk

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// TempVariable is the environment variable that names the folder of temporary files.
const TempVariable = "TMP"

// Free returns how many bytes the user may still write in folder, and false if the system does not report it.
func Free(folder string) (int64, bool) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(free), true
}

// Writable reports whether a file's mode allows writing. It opens nothing.
func Writable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.IsDir() || info.Mode()&0o200 != 0)
}

// Temp returns a new file in the user's own folder for temporary files. It disappears once it is closed, however the
// process ends.
func Temp() (*os.File, error) {
	path := filepath.Join(os.TempDir(), "waybill-"+rand.Text())
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const access = windows.GENERIC_READ | windows.GENERIC_WRITE | windows.DELETE
	h, err := windows.CreateFile(name, access, windows.FILE_SHARE_DELETE, nil,
		windows.CREATE_NEW, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &TempError{&os.PathError{Op: "create", Path: path, Err: err}}
	}
	return os.NewFile(uintptr(h), path), nil
}

// Foreign returns nil: on Windows, access lists control who may write.
func Foreign(string, fs.FileInfo) error { return nil }

// Resolve returns the target of a path, existing or not, without symbolic links.
func Resolve(path string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return target, err
}

// Open opens a file for reading.
func Open(path string) (*os.File, error) { return os.Open(path) }

// ChangersOf returns nobody: on Windows, access lists control who may write.
func ChangersOf(string, fs.FileInfo) Changers { return Changers{} }

// ForeignOwner returns nobody: on Windows, access lists control who may write.
func ForeignOwner(string, fs.FileInfo) Changers { return Changers{} }
