//go:build !windows

package sqlite

import (
	"io/fs"
	"syscall"
)

func hasHardLinks(_ string, info fs.FileInfo) (bool, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink > 1, nil
}
