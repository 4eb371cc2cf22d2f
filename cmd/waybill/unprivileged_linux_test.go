package main_test

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// dropPrivileges makes the permissions of files bind root too, in the program
// that this one becomes.
func dropPrivileges() error {
	if os.Geteuid() != 0 {
		return nil
	}
	runtime.LockOSThread() // the bounding set is the thread's
	for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("drop capability %d: %w: run the tests as another user than root", c, err)
		}
	}
	return nil
}
