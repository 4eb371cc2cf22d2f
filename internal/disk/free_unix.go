//go:build linux || darwin || freebsd

package disk

import "golang.org/x/sys/unix"

// Free returns how many bytes the user may still write in folder, and false if the system does not say.
func Free(folder string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(folder, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:unconvert // their types differ by system
}
