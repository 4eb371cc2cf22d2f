package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/store"
)

type backupJSON struct {
	Store string `json:"store"`
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func newBackup(f *command.Factory) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a copy of the store to a file",
		Long: `backup writes a copy of the store, as it is at one moment, to FILE and checks the
copy. Other commands continue to run meanwhile. FILE is readable by you alone and
has no unused space. An existing file is replaced only with --force.

"waybill store restore" puts it back. A restored backup does not know what was sent
after it was made: "waybill create --check-first" then checks rows with the service
before it sends them.

PostgreSQL has programs of its own for backups: for a store on a server, backup
prints the commands of pg_dump and pg_restore, does nothing, and ends with exit
status 2.`,
		Example: command.Example("waybill store backup waybill-2026-11-22.db"),
		Args:    command.Exactly(1, "the file to write"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runBackup(ctx, c, args[0], force)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace FILE if it exists")
	return cmd
}

func runBackup(ctx context.Context, c *command.Call, file string, force bool) error {
	if file == command.StdinName {
		return command.NoFile("")
	}
	place, isServer, err := c.StorePlace()
	if err != nil {
		return err
	}
	if isServer {
		return printDump(c, place, file)
	}
	db, err := existing(ctx, c)
	if err != nil {
		return err
	}
	if err := checkTarget(file, db.Path, force); err != nil {
		return err
	}
	written, err := command.NewAtomicFile(ctx, file)
	if err != nil {
		return err
	}
	defer written.Discard()
	progress := c.IO.Progress("Copying")
	err = db.DB.WriteBackup(ctx, written.Name())
	progress.Stop()
	if err != nil {
		return fmt.Errorf("back up to %s: %w", file, err)
	}
	info, err := os.Stat(written.Name())
	if err != nil {
		return err
	}
	if err := checkTarget(file, db.Path, force); err != nil { // another program may have created it
		return err
	}
	if err := written.Commit(); err != nil {
		return err
	}
	c.IO.Note("Rows that are sent from now on are not in the backup")
	return c.Out.Result(backupJSON{db.Path, file, info.Size()}, "Backed up %s to %s (%s, checked)", db.Path, file,
		size(info.Size()))
}

type dumpJSON struct {
	Store   string `json:"store"`
	Backup  string `json:"backupCommand"`
	Restore string `json:"restoreCommand"`
}

// printDump prints how to back up a store on a server. It returns a usage error, since nothing was backed up.
func printDump(c *command.Call, place, file string) error {
	u, err := url.Parse(place)
	if err != nil {
		return err
	}
	query := u.Query()
	schema := query.Get("schema")
	query.Del("schema")
	u.RawQuery = strings.ReplaceAll(query.Encode(), "%2F", "/")
	j := dumpJSON{
		Store:   place,
		Backup:  shell.Line("pg_dump", "--format=custom", "--schema="+schema, "--file="+file, "--dbname="+u.String()),
		Restore: shell.Line("pg_restore", "--single-transaction", "--exit-on-error", "--dbname="+u.String(), file),
	}
	if err := c.Out.Result(j, "%s\n# restores it, where there is no schema %s:\n%s", j.Backup, schema,
		j.Restore); err != nil {
		return err
	}
	return &command.ExitError{
		Code: command.Usage, Err: errors.New("nothing was backed up: `waybill store backup` copies files, " +
			"and pg_dump backs up a store on a server"),
		Hint: "run the next command, with pg_dump of the server's version or later", Next: j.Backup,
	}
}

// checkTarget returns an error if file must not be replaced by a copy of the store: because it exists or is in use.
func checkTarget(file, path string, force bool) error {
	target, err := disk.Resolve(file)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = file, nil
	}
	if err != nil {
		return command.Usagef("use another file", "write %s: %w", file, err)
	}
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return command.Usagef("use another file", "write %s: %w", file, err)
	case !info.Mode().IsRegular():
		return command.Usagef("use another file", "%s is not a regular file", file)
	case isFile(path, info):
		return command.Usagef("use another file", "%s is the store itself", file)
	case !force:
		return command.Existsf("use another file, or --force to replace it", "%s exists", file)
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(target + suffix); !errors.Is(err, fs.ErrNotExist) {
			return command.Usagef("use another file, or end the program that uses it",
				"%s belongs to a database in use at that place", filepath.Base(target)+suffix)
		}
	}
	return nil
}

func isFile(path string, info fs.FileInfo) bool {
	own, err := os.Stat(path)
	return err == nil && os.SameFile(own, info)
}

type copyJSON struct {
	From string `json:"from"`
	To   string `json:"to"`
	Rows int64  `json:"rows"`
}

func newCopy(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Copy a store to another file or server",
		Long: `copy copies everything from one store to another, from a file to a PostgreSQL
server, back, or to another file, and compares the numbers of rows at the end. FROM and
TO are paths or postgres://USER@HOST/DATABASE. TO must not exist, or be empty.

Stop what uses FROM before: while a process sends or receives, copy refuses, and
while it copies, other commands can't write to FROM. TO can't be used until the copy is
complete. After an interruption, remove what is there (TO.copying, or the schema) and
copy again. FROM is not changed.

Use TO afterwards, and FROM no more: neither knows what is sent from the other, so
rows would be sent twice.`,
		Example: command.Example("waybill store copy waybill.db postgres://waybill@db.example.com/waybill",
			"waybill store copy postgres://waybill@db.example.com/waybill waybill.db"),
		Args: command.Exactly(2, "the stores to copy from and to"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runCopy(ctx, c, args[0], args[1])
		}),
	}
}

func runCopy(ctx context.Context, c *command.Call, fromPlace, toPlace string) (err error) {
	if fromPlace == "" || toPlace == "" {
		return command.Usagef("name two stores; an unset shell variable may be the cause", "the name of a store is empty")
	}
	from, err := c.StoreAt(ctx, fromPlace, store.Options{MustExist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if err := from.RequireUnused(ctx); err != nil {
		return inUse(c, fromPlace, err)
	}
	to, finish, err := c.CopyAt(ctx, toPlace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if from.Place() == to.Place() {
		return command.Usagef("name two stores", "%s would be copied to itself", from.Place())
	}
	var bar *command.Progress
	rows, err := store.Copy(ctx, from, to, store.CopyProgress{
		Begin: func(rows int64) { bar = command.NewProgress(c.IO, "Copying", "rows", rows) },
		Add:   func(rows int64) { bar.Add(rows) },
	})
	if bar != nil {
		bar.Stop()
	}
	if err == nil {
		err = finish()
	}
	if err != nil {
		return broken(c, fromPlace, to.Place(), err)
	}
	c.IO.Warning("do not use %s any more: it does not know what is sent from %s", from.Place(), toPlace)
	c.IO.Hint("use the copy with --store, WAYBILL_STORE, or \"store:\" in the configuration (`waybill config path`)")
	return c.Out.Result(copyJSON{from.Place(), toPlace, rows}, "Copied %s from %s to %s", command.Plural(rows, "row"),
		from.Place(), toPlace)
}

func inUse(c *command.Call, from string, err error) error {
	if !errors.Is(err, store.ErrInUse) {
		return err
	}
	return &command.ExitError{Code: command.Failed, Err: err, Next: c.CommandLine("store", "check", "--store", from)}
}

func broken(c *command.Call, from, to string, err error) error {
	if errors.Is(err, store.ErrInUse) || errors.Is(err, store.ErrNotEmpty) {
		return inUse(c, from, err)
	}
	left := to + ", and " + to + "-wal and -shm if they exist"
	if config.IsServer(to) {
		left = "the schema of " + to
	}
	hint := "remove " + left + ", then copy again"
	return &command.ExitError{Code: command.CodeOf(err), Err: err, Hint: hint, Next: c.Repeat()}
}
