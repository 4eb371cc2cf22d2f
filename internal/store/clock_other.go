//go:build !linux

package store

import "time"

// bootID names the time since the machine was started last; empty if that
// cannot be told, as here.
func bootID() string { return "" }

// uptime is how long ago that was.
func uptime() time.Duration { return 0 }
