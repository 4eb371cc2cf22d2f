//go:build !linux

package sqlite

import "time"

// bootID identifies the current boot of this machine; empty here: it is not known.
func bootID() string { return "" }

// uptime is the time since the boot; 0 if not known.
func uptime() time.Duration { return 0 }
