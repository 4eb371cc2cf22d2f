//go:build !linux

package store

import "time"

// Uptime returns 0: the time since boot is unknown.
func Uptime() time.Duration { return 0 }
