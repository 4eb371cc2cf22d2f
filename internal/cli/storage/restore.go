package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/store"
)

type contents struct {
	Rows       int64 `json:"rows"`
	Deliveries int64 `json:"deliveries"`
	Events     int64 `json:"events"`

	account string // empty if the store belongs to no account
}

func (n contents) String() string {
	return cmp.Or(removed(&ledger.Erasure{Rows: n.Rows, Deliveries: n.Deliveries, Events: n.Events}), "nothing")
}

func contentsOf(ctx context.Context, db *store.DB) (n contents, err error) {
	if n.account, err = db.Account(ctx); err != nil {
		return n, err
	}
	i, err := db.Inspect(ctx)
	for _, t := range i.Tables {
		switch t.Name {
		case "rows":
			n.Rows = t.Rows
		case "deliveries":
			n.Deliveries = t.Rows
		case "events":
			n.Events = t.Rows
		}
	}
	return n, err
}

type restoredJSON struct {
	Store    string   `json:"store"`
	File     string   `json:"file"`
	Forgets  contents `json:"forgets"`  // more of each in the store than in the backup
	Replaced string   `json:"replaced"` // where the replaced store is; empty if there was none
}

func newRestore(f *command.Factory) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in place of the store",
		Long: `restore puts FILE, which "waybill store backup" wrote, in place of the store. It says
first how much the store has that the backup has not: the store forgets it. The
replaced store is kept under a name that is printed. restore refuses while
another command uses the store.

What was sent after the backup is still at the service. The next create therefore
asks for its first row before it sends, and stops if the service has it; with
--check-first it asks for every row.

A store on a server is restored with pg_restore; "waybill store backup" prints the
command.`,
		Example: command.Example("waybill store restore waybill-2026-11-22.db"),
		Args:    command.Exactly(1, "the backup to restore"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runRestore(ctx, c, args[0], yes)
		}),
	}
	command.YesFlag(cmd.Flags(), &yes)
	return cmd
}

func runRestore(ctx context.Context, c *command.Call, file string, yes bool) (err error) {
	place, isServer, err := c.StorePlace()
	if err != nil {
		return err
	}
	if isServer {
		return &command.ExitError{
			Code: command.Usage, Err: errors.New("nothing was restored: pg_restore restores a store on a server"),
			Hint: "the next command prints how", Next: c.CommandLine("store", "backup", file),
		}
	}
	if info, err := os.Stat(file); err == nil && isFile(place, info) {
		return command.Usagef("name the backup", "%s is the store itself", file)
	}
	backup, err := c.StoreAt(ctx, file, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	kept, err := contentsOf(ctx, backup)
	if err != nil {
		return err
	}
	if err := c.CheckAccount(file, kept.account); err != nil {
		return err
	}
	known, exists, err := unused(ctx, c, place)
	if err != nil {
		return err
	}
	j := restoredJSON{Store: place, File: file, Forgets: contents{
		Rows: max(known.Rows-kept.Rows, 0), Events: max(known.Events-kept.Events, 0),
		Deliveries: max(known.Deliveries-kept.Deliveries, 0),
	}}
	if j.Forgets != (contents{}) {
		c.IO.Note("The store forgets what it has more than the backup: %s", j.Forgets)
	}
	if !yes {
		if err := command.Confirm(ctx, c, "restore", "nothing was restored", "Replace "+place+"?"); err != nil {
			return err
		}
	}
	if exists {
		j.Replaced = place + ".replaced-" + time.Now().Format("20060102-150405")
	}
	if err := replace(ctx, backup, place, j.Replaced); err != nil {
		return fmt.Errorf("restore %s: %w", file, err)
	}
	c.IO.Note("The next create asks the service for its first row before it sends; --check-first asks for every row")
	if exists {
		return c.Out.Result(j, "Restored %s to %s (%s)\nThe replaced store is %s", file, place, kept, j.Replaced)
	}
	return c.Out.Result(j, "Restored %s to %s (%s)", file, place, kept)
}

// replace puts a copy of the backup in the store's place, after renaming the store to kept unless that is "".
func replace(ctx context.Context, backup *store.DB, place, kept string) error {
	written, err := command.NewAtomicFile(ctx, place)
	if err != nil {
		return err
	}
	defer written.Discard()
	if err := backup.WriteBackup(ctx, written.Name()); err != nil {
		return err
	}
	if kept == "" {
		return written.Commit()
	}
	if err := os.Rename(place, kept); err != nil {
		return err
	}
	if err := written.Commit(); err != nil {
		return errors.Join(err, os.Rename(kept, place))
	}
	return nil
}

// unused returns the contents of the store in a file. Its error matches [store.ErrInUse] if another process has the
// store open. A damaged store is no error, since a backup is to replace it.
func unused(ctx context.Context, c *command.Call, place string) (n contents, exists bool, err error) {
	db, err := c.StoreAt(ctx, place, store.Options{MustExist: true})
	switch {
	case errors.Is(err, store.ErrNotThere):
		return n, false, nil
	case errors.Is(err, store.ErrCorrupt):
		c.IO.Warning("the store is damaged; what it has is not known")
		return n, true, nil
	case err != nil:
		return n, false, err
	}
	used := db.RequireUnused(ctx)
	if fault, ok := errors.AsType[*store.Error](used); ok {
		fault.Op = "replace"
	}
	if n, err = contentsOf(ctx, db); errors.Is(err, store.ErrCorrupt) {
		c.IO.Warning("the store is damaged; what it has is not known")
		err = nil
	}
	if err = errors.Join(used, err, db.Close()); err != nil {
		return n, true, inUse(c, place, err)
	}
	if _, err := os.Lstat(place + "-wal"); !errors.Is(err, fs.ErrNotExist) { // the last one to close it removes it
		return n, true, inUse(c, place, &store.Error{Kind: store.ErrInUse, Path: place, Op: "replace"})
	}
	return n, true, nil
}

type resetJSON struct {
	Store   string   `json:"store"`
	Removed contents `json:"removed"`
}

func newReset(f *command.Factory) *cobra.Command {
	var confirm string
	cmd := &cobra.Command{
		Use:   "reset",
		Short: "Empty the store of a sandbox or test account",
		Long: `reset removes the store with all that it knows, for a new start with a sandbox or a
test account. It asks for the name of the store's account; --confirm NAME gives it
where there is no terminal. It can't be undone: "waybill store backup" first.

The service keeps its trackings: a file that was sent before is sent again. reset
refuses while another command uses the store. A store on a server is removed by
dropping its schema.`,
		Example: command.Example("waybill store reset", "waybill store reset --confirm http://127.0.0.1:8640"),
		RunE:    f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runReset(ctx, c, confirm) }),
	}
	cmd.Flags().StringVar(&confirm, "confirm", "", "`NAME` of the store's account, in place of a question")
	return cmd
}

func runReset(ctx context.Context, c *command.Call, confirm string) error {
	place, isServer, err := c.StorePlace()
	if err != nil {
		return err
	}
	if isServer {
		return command.Usagef("have the owner of the schema run: DROP SCHEMA waybill CASCADE, "+
			"or the name that the schema has; "+
			"the next command that writes makes it again",
			"nothing was removed: store reset empties files, not a store on a server")
	}
	had, exists, err := unused(ctx, c, place)
	name := cmp.Or(had.account, place)
	switch {
	case err != nil:
		return err
	case !exists:
		return &store.Error{Kind: store.ErrNotThere, Path: place, Op: "open"}
	case confirm == "" && !c.IO.Interactive():
		return command.Usagef("add --confirm '"+name+"' to empty it without a question", "nothing was removed")
	case confirm == "":
		confirm, err = c.IO.Ask(ctx, "This removes %s from %s and can't be undone. Type the name of the account, %s:", had,
			place, name)
		if err != nil {
			return err
		}
	}
	if confirm != name {
		return command.Usagef("", "nothing was removed: the account of the store is %s, not %s",
			command.Quoted(name), command.Quoted(confirm))
	}
	if err := errors.Join(os.Remove(place), disk.RemoveAll(place+".owners")); err != nil {
		return err
	}
	return c.Out.Result(resetJSON{place, had}, "Removed %s: %s", place, had)
}
