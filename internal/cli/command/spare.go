package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
)

// writing lists the flags of which each names a file that a command writes.
var writing = []string{"out", "ready-file", "ui-file", "rejects"}

// Spare returns an error if the file of a flag may not be written: what is there is read
// by the command, is written for another flag, is a configuration file, or a store.
func (c *Call) Spare(flag, path string) error { return spare(c.Cmd, c.Sources(), flag, path) }

// SparePage is [Call.Spare] for an HTML page that is an argument: it takes the place of no
// other kind of file.
func (c *Call) SparePage(path string) error {
	if err := spare(c.Cmd, c.Sources(), "", path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !isPage(path) {
		return Usagef("use another file name, or remove that file", "%s is a file that is not HTML", path)
	}
	return nil
}

// spareReady is [Call.Spare] for the files with the URL of a server or a page.
func spareReady(cmd *cobra.Command, sources config.Sources) error {
	for _, flag := range []string{"ready-file", "ui-file"} {
		path := valueOf(cmd, flag)
		if path == "" {
			continue
		}
		if err := spare(cmd, sources, flag, path); err != nil {
			return err
		}
	}
	return nil
}

// spare is [Call.Spare]. An empty flag means that an argument names the path.
func spare(cmd *cobra.Command, sources config.Sources, flag, path string) error {
	file, shown := path, path
	if flag != "" {
		file = "--" + flag
		shown = file + " " + path
	}
	if path == StdinName {
		return NoFile("--" + flag + " ")
	}
	there, err := os.Stat(path)
	exists := err == nil
	if exists && !there.Mode().IsRegular() {
		return nil // nothing is lost
	}
	for _, other := range writing {
		if name := valueOf(cmd, other); other != flag && name != "" && isSame(name, path) {
			return Usagef("use another file name", "%s and --%s are the same file", file, other)
		}
	}
	refuse := func(what string) error { return Usagef("use another file name", "%s is %s", shown, what) }
	if exists && slices.ContainsFunc(named(cmd, flag), func(name string) bool { return isSame(name, path) }) {
		return refuse("a file that the command line names elsewhere")
	}
	if paths, err := config.Locate(sources); err == nil && (isSame(paths.User, path) || isSame(paths.Project, path)) {
		return refuse("the configuration")
	}
	own := ""
	if c, err := config.Load(sources); err == nil {
		own = c.Store
	}
	if base := sqlite.Beside(resolve(path)); base != "" && (exists || isSame(own, base) || sqlite.IsDatabase(base)) {
		return Usagef("use another file name", "%s belongs to the database %s", shown, filepath.Base(base))
	}
	switch {
	case isSame(own, path):
		return refuse("the store")
	case sqlite.IsDatabase(path):
		return refuse("a database, such as a store")
	}
	return nil
}

// NoFile says that "-", after the flag that has it, names no file and is not standard
// output there.
func NoFile(flag string) error {
	return Usagef("use the name of a file; "+flag+"./- is one", "%s%s is not a file name", flag, StdinName)
}

func valueOf(cmd *cobra.Command, flag string) string {
	if f := cmd.Flags().Lookup(flag); f != nil {
		return f.Value.String()
	}
	return ""
}

func isSame(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return resolve(a) == resolve(b)
}

// resolve returns the absolute path of what a path names, or would name.
func resolve(path string) string {
	if target, err := disk.Resolve(path); err == nil {
		path = target
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// named returns all that a command line names but the value of one flag, without a flag
// but the arguments.
func named(cmd *cobra.Command, flag string) (names []string) {
	if flag != "" {
		names = cmd.Flags().Args()
	}
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

// isPage reports whether a file is empty or begins as an HTML page does.
func isPage(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	head, err := io.ReadAll(io.LimitReader(f, 512))
	text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(head), "\ufeff")))
	return err == nil && (text == "" || strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html"))
}

// RefuseExisting returns an error if there is something at the path.
func RefuseExisting(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Usagef("use another file, or remove that one", "%s exists", path)
	}
	return nil
}
