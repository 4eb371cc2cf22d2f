package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/store/sqlite"
	"github.com/waybill-cli/waybill/internal/term"
)

// AtomicFile is a file that is written under a temporary name and renamed once complete. A device or a pipe is written
// to directly, since no file may replace it.
type AtomicFile struct {
	f       *os.File
	path    string // final path; empty if written to directly
	written bool
	done    bool
}

// NewAtomicFile creates the temporary file. When ctx ends, it stops waiting for a FIFO that nobody reads.
func NewAtomicFile(ctx context.Context, path string) (*AtomicFile, error) {
	w, err := openWhole(ctx, path)
	switch {
	case err == nil:
		return w, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case As[*disk.ForeignError](err):
		return nil, Usagef("use a file in a folder that only you can write to, or remove that file first", "write %s: %w",
			path, err)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && filepath.Dir(e.Path) == filepath.Dir(path) {
		err = e.Err // the message names the path already
	}
	return nil, Usagef("use a file in a folder that exists and is writable", "%s can't be created there: %w", path, err)
}

func openWhole(ctx context.Context, path string) (*AtomicFile, error) {
	target, err := disk.Resolve(path) // a symbolic link stays a link
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createBeside(target)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a folder")
	}
	if err := disk.Foreign(target, info); err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return createBeside(target)
	}
	f, err := term.Await(ctx, func() (*os.File, error) { return os.OpenFile(target, os.O_WRONLY, 0) })
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = disk.Foreign(target, info) // the opened file may be another one by now
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &AtomicFile{f: f}, nil
}

// createBeside creates the temporary file for target in target's folder. Its error names the folder.
func createBeside(target string) (*AtomicFile, error) {
	folder := filepath.Dir(target)
	f, err := os.CreateTemp(folder, "."+filepath.Base(target)+".*")
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		err = &fs.PathError{Op: fault.Op, Path: folder, Err: fault.Err}
	}
	return &AtomicFile{f: f, path: target}, err
}

// Write appends to the file.
func (w *AtomicFile) Write(p []byte) (int, error) {
	w.written = w.written || len(p) > 0
	return w.f.Write(p)
}

// Name returns the path of the temporary file, for programs that open it by name.
func (w *AtomicFile) Name() string { return w.f.Name() }

// Commit syncs the file and renames it to its final path. On a nil AtomicFile it does nothing.
func (w *AtomicFile) Commit() error {
	if w == nil || w.done {
		return nil
	}
	w.done = true
	if w.path == "" {
		return w.f.Close()
	}
	err := errors.Join(w.f.Sync(), w.f.Close())
	if err == nil {
		err = os.Rename(w.f.Name(), w.path)
	}
	if err != nil {
		_ = os.Remove(w.f.Name())
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	return nil
}

// Discard removes the temporary file unless it was committed. On a nil AtomicFile it does nothing.
func (w *AtomicFile) Discard() {
	if w == nil || w.done {
		return
	}
	w.done = true
	_ = w.f.Close()
	if w.path != "" {
		_ = os.Remove(w.f.Name())
	}
}

// Spare returns an error if the file of flag is also an input, another flag's file, a configuration or a store.
func (c *Call) Spare(flag, path string) error { return spare(c.Cmd, c.Sources(), flag, path) }

// SparePage is [Call.Spare] for an HTML page named by an argument, which may only replace another HTML page.
func (c *Call) SparePage(path string) error {
	if err := spare(c.Cmd, c.Sources(), "", path); err != nil {
		return err
	}
	return RequirePage(path)
}

// RequirePage returns an error if path is an existing file that is not HTML.
func RequirePage(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !isPage(path) {
		return Usagef("use another file name, or remove that file", "%s is a file that is not HTML", path)
	}
	return nil
}

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

// spare is [Call.Spare]. An empty flag says that an argument names the path.
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
		return nil // a device or a pipe: nothing is overwritten
	}
	for _, other := range []string{"out", "ready-file", "ui-file", "ui-token-file", "rejects"} { // their files are written
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
	own, _ := config.Load(sources) // broken settings name no store
	if base := sqlite.Beside(resolve(path)); base != "" && (exists || isSame(own.Store, base) || sqlite.IsDatabase(base)) {
		return Usagef("use another file name", "%s belongs to the database %s", shown, filepath.Base(base))
	}
	switch {
	case isSame(own.Store, path):
		return refuse("the store")
	case sqlite.IsDatabase(path):
		return refuse("a database, such as a store")
	}
	return nil
}

// NoFile returns the error for "-" as the value of flag, which takes no standard output.
func NoFile(flag string) error {
	return Usagef("use the name of a file; "+flag+"./- is one", "%s%s is not a file name", flag, StdinName)
}

// valueOf returns the value of a flag, or "" if the command does not have it.
func valueOf(cmd *cobra.Command, flag string) string {
	if f := cmd.Flags().Lookup(flag); f != nil {
		return f.Value.String()
	}
	return ""
}

func isSet(cmd *cobra.Command, flag string) bool { return valueOf(cmd, flag) == "true" }

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

// resolve returns the absolute path of the file that path names or would create.
func resolve(path string) string {
	if target, err := disk.Resolve(path); err == nil {
		path = target
	}
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	return path
}

// named returns the arguments and flag values of a command line except those of flag; of the flags alone if flag is "".
func named(cmd *cobra.Command, flag string) (names []string) {
	if flag != "" {
		names = cmd.Flags().Args()
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != flag {
			names = append(names, FlagValues(f)...)
		}
	})
	return names
}

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

// Editor returns $VISUAL, $EDITOR, or the system's editor, which needs a terminal; else its error suggests instead.
func Editor(io *term.IO, getenv func(string) string, instead string) (string, error) {
	switch named := cmp.Or(getenv("VISUAL"), getenv("EDITOR")); {
	case named != "":
		return named, nil
	case !io.Interactive():
		return "", Usagef("set VISUAL or EDITOR, or "+instead, "there is no terminal for an editor")
	case runtime.GOOS == "windows":
		return "notepad", nil
	}
	return "vi", nil
}

// EditorError says that an editor failed. rest follows the cause.
func EditorError(editor string, err error, rest string) error {
	return Usagef("set VISUAL or EDITOR to another editor", "editor %s: %w%s", editor, err, rest)
}
