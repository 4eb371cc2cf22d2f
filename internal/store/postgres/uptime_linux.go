package postgres

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is the time since the boot. Nobody sets this clock, and it runs while the
// machine sleeps.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return elapsed()
	}
	return time.Duration(t.Nano())
}
