package sqlite

import (
	"bytes"
	"os"
)

// bootID identifies the current boot of this machine; empty if not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}
