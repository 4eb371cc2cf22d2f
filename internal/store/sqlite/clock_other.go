//go:build !linux

package sqlite

// bootID identifies the current boot of this machine; empty here: it is not known.
func bootID() string { return "" }
