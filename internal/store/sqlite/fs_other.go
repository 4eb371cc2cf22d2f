//go:build !linux && !darwin && !windows

package sqlite

// networkFS returns the kind of network file system that folder is on, and
// the empty string if it is a local one or not known.
func networkFS(string) string { return "" }
