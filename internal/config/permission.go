package config

import "os"

// Exposed returns who else than its owner may read or change a file, in words, and the
// command that restricts it to the owner. who is empty if nobody may, or if that is not
// known.
func Exposed(path string) (who, command string) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return "", ""
	}
	who, err = othersWithAccess(path, info)
	if err != nil {
		return "", ""
	}
	return who, restrictCommand(path)
}
