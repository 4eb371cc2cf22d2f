//go:build !windows

package config

import (
	"io/fs"
	"strings"
)

// strangers says who besides the owner may read or change the file; nothing if
// nobody may.
func strangers(_ string, info fs.FileInfo) (string, error) {
	if info.Mode().Perm()&0o077 == 0 {
		return "", nil
	}
	return "others (mode " + info.Mode().Perm().String() + ")", nil
}

// closing is the command that takes the file away from others.
func closing(path string) string { return "chmod 600 " + shellWord(path) }

func shellWord(s string) string {
	odd := func(r rune) bool {
		return !strings.ContainsRune("/._-+=:,@%", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}
	if s != "" && s[0] != '-' && !strings.ContainsFunc(s, odd) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
