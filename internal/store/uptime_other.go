//go:build !linux

package store

import "time"

// Uptime returns 0: the time since the boot is not known.
func Uptime() time.Duration { return 0 }
