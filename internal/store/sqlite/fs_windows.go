package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// networkFS returns the kind of network file system that folder is on; "" for a local or unknown one.
func networkFS(folder string) string {
	root, err := windows.UTF16PtrFromString(filepath.VolumeName(folder) + `\`)
	if err != nil || windows.GetDriveType(root) != windows.DRIVE_REMOTE {
		return ""
	}
	return "network drive"
}

func hasHardLinks(path string, _ fs.FileInfo) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &info)
	return info.NumberOfLinks > 1, errors.Join(err, f.Close())
}
