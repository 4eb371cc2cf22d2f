//go:build unix

package listen

import "syscall"

// descriptors returns how many file descriptors this process may have, 0 if unknown. Package os raised the soft limit
// to the hard one when the program started.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
