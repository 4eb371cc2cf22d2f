//go:build !windows

package config

import (
	"io/fs"

	"github.com/waybill-cli/waybill/internal/shell"
)

// strangers says who besides the owner may read or change the file; nothing if
// nobody may.
func strangers(_ string, info fs.FileInfo) (string, error) {
	if info.Mode().Perm()&0o077 == 0 {
		return "", nil
	}
	return "others (mode " + info.Mode().Perm().String() + ")", nil
}

// closing is the command that takes the file away from others.
func closing(path string) string { return "chmod 600 " + shell.Word(path) }
