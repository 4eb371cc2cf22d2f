package store

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime returns the time since boot, 0 if unknown. This clock can't be set, and runs while the machine sleeps.
func Uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
