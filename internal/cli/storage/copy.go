package storage

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/store"
)

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
	return c.Out.Result(copyJSON{from.Place(), toPlace, rows}, "Copied %s from %s to %s", command.Plural(rows, "row"), from.Place(), toPlace)
}

// inUse adds to an error of a store that is in use the command that lists who uses it.
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
	code, _ := command.CodeAndHint(err)
	return &command.ExitError{Code: code, Err: err, Hint: "remove " + left + ", then copy again", Next: c.Repeat()}
}
