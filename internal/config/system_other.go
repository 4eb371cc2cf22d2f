//go:build !windows

package config

import (
	"io/fs"

	"github.com/waybill-cli/waybill/internal/shell"
)

// othersWithAccess describes who besides the owner may read or change the file; empty if nobody may.
func othersWithAccess(_ string, info fs.FileInfo) (string, error) {
	if info.Mode().Perm()&0o077 == 0 {
		return "", nil
	}
	return "others (mode " + info.Mode().Perm().String() + ")", nil
}

func restrictCommand(path string) string { return "chmod 600 " + shell.Word(path) }

// systemListSeparator returns "": the locale in the environment decides.
func systemListSeparator() string { return "" }
