package store

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// bootID names the time since the machine was started last, as no other boot
// of it or another machine is named; empty if that cannot be told.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}

// uptime is how long ago that was. Nobody sets this clock, and it goes on while
// the machine sleeps.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
