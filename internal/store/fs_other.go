//go:build !linux && !darwin && !windows

package store

// networkFS returns the kind of network file system that folder is on, and
// the empty string if it is a local one or cannot be told.
func networkFS(string) string { return "" }

// isFileMount reports whether the file is mounted without its folder. It cannot be told
// here.
func isFileMount(string) (bool, error) { return false, nil }
