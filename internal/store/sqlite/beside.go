package sqlite

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// besideName matches the name of what SQLite and this package put beside a database: its
// logs, locks and copies.
var besideName = regexp.MustCompile(`(?i)^(.+?)(-wal|-shm|-journal|\.staging\.lock|\.owners(/[^/]+)?|\.copying)$`)

// Beside returns the path of the database that a file belongs to, by the file's name;
// empty if its name is not that of a file beside a database.
func Beside(path string) string {
	parts := besideName.FindStringSubmatch(filepath.ToSlash(path))
	if parts == nil {
		return ""
	}
	return filepath.FromSlash(parts[1])
}

// IsDatabase reports whether the content of a file is a database or a write-ahead log.
func IsDatabase(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // opening a FIFO waits
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 16)
	n, _ := f.Read(head)
	begin := string(head[:n])
	return begin == "SQLite format 3\x00" || strings.HasPrefix(begin, "\x37\x7f\x06\x82") || strings.HasPrefix(begin, "\x37\x7f\x06\x83")
}
