// Package storage holds the commands about the store itself.
package storage

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/store"
)

// New returns the group of commands about the store.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "store",
		GroupID: command.GroupRest,
		Short:   "Locate, check, back up, copy, prune and erase from the store",
		Long: `The store is one file, or a schema of a PostgreSQL server. It records what was
sent and received. --store, WAYBILL_STORE or "store:" in the configuration select
it.`,
	}
	group.AddCommand(newPath(f), newCheck(f), newBackup(f), newCopy(f), newPrune(f), newErase(f), newSchema(f))
	return group
}

// existing returns the store; one that is not there is an error.
func existing(ctx context.Context, c *command.Call) (*app.Store, error) {
	db, err := c.ExistingStore(ctx)
	if err == nil && db == nil {
		err = &store.Error{Kind: store.ErrNotThere, Path: c.Config.Store, Op: "open"}
	}
	return db, err
}

// size shows a number of bytes with its unit, such as 12.3 MB.
func size(bytes int64) string {
	const kilo = 1000
	if bytes < kilo {
		return command.Plural(bytes, "byte")
	}
	value, unit := float64(bytes)/kilo, 0
	for value >= kilo && unit < 3 {
		value /= kilo
		unit++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + []string{"KB", "MB", "GB", "TB"}[unit]
}
