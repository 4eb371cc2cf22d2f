//go:build !linux && !darwin && !windows

package sqlite

// networkFS is not known here.
func networkFS(string) string { return "" }
