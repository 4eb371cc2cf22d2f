package store

import (
	"path/filepath"

	"golang.org/x/sys/windows"
)

// networkFS returns the kind of network file system that folder is on, and
// the empty string if it is a local one or cannot be told.
func networkFS(folder string) string {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(folder) + `\`)
	if err != nil || windows.GetDriveType(root) != windows.DRIVE_REMOTE {
		return ""
	}
	return "network drive"
}
