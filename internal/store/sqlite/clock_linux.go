package sqlite

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// bootID identifies the current boot of this machine; empty if not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}

// uptime is the time since the boot. Nobody sets this clock, and it runs while the
// machine sleeps.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
