//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TempVariable is the environment variable that names the folder of temporary files.
const TempVariable = "TMPDIR"

// Temp returns a new file in the folder for temporary ones that only the user
// can read. It is gone once it is closed, however the process ends.
func Temp() (*os.File, error) {
	f, err := os.CreateTemp("", "waybill-*") // 0600
	if err != nil {
		return nil, &TempError{err}
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, &TempError{errors.Join(err, f.Close())}
	}
	return f, nil
}

// Writable reports whether the user may write a file, or make files in a folder. It opens nothing.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
