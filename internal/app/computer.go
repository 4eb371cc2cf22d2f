package app

import (
	"os"
	"strings"
)

// Computer returns what tells this computer from others: its name and, where the
// system has one, a part of the identifier of its last start.
func Computer() string {
	name, _ := os.Hostname() // without it, computers are told apart by their start
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id, _, ok := strings.Cut(string(boot), "-"); ok {
		name += "/" + id
	}
	return name
}

// IsThisComputer reports whether a name that a listener recorded is that of this
// computer. Listeners of older versions recorded none.
func IsThisComputer(name string) bool { return name == "" || name == Computer() }
