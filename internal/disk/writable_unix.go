//go:build unix

package disk

import "golang.org/x/sys/unix"

// Writable reports whether the user may write a file, or make files in a folder.
// It opens nothing.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
