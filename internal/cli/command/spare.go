package command

import (
	"bytes"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
)

// Spare returns an error if the file of a flag may not be written: what is there is read
// by the command, is a configuration file, or a store.
func (c *Call) Spare(flag, path string) error { return spare(c.Cmd, c.Sources(), flag, path) }

func spare(cmd *cobra.Command, sources config.Sources, flag, path string) error {
	there, err := os.Stat(path)
	if err != nil || !there.Mode().IsRegular() {
		return nil //nolint:nilerr // nothing is lost
	}
	for _, name := range named(cmd, flag) {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, there) {
			return Usagef("use another file name", "--%s %s is a file that the command line names elsewhere", flag, path)
		}
	}
	if paths, err := config.Locate(sources); err == nil {
		for _, name := range []string{paths.User, paths.Project} {
			if info, err := os.Stat(name); err == nil && os.SameFile(info, there) {
				return Usagef("use another file name", "--%s %s is the configuration", flag, path)
			}
		}
	}
	if isDatabase(path) {
		return Usagef("use another file name", "--%s %s is a database, such as a store", flag, path)
	}
	return nil
}

// named returns all that a command line names but the value of one flag.
func named(cmd *cobra.Command, flag string) []string {
	names := cmd.Flags().Args()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch list, ok := f.Value.(pflag.SliceValue); {
		case f.Name == flag:
		case ok:
			names = append(names, list.GetSlice()...)
		default:
			names = append(names, f.Value.String())
		}
	})
	return names
}

// isDatabase reports whether a file is one of SQLite's.
func isDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	head := make([]byte, 16)
	_, err = f.Read(head)
	return err == nil && bytes.HasPrefix(head, []byte("SQLite format 3\x00"))
}

// RefuseExisting returns an error if there is something at the path.
func RefuseExisting(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Usagef("use another file, or remove that one", "%s exists", path)
	}
	return nil
}
