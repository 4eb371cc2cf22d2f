//go:build !linux && !darwin && !windows

package sqlite

// networkFS returns the kind of network file system that folder is on, and
// the empty string if it is a local one or not known.
func networkFS(string) string { return "" }

// isFileMount reports whether the file is mounted without its folder. It is not known
// here.
func isFileMount(string) (bool, error) { return false, nil }
