// Package storage has the commands about the store itself.
package storage

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/store/postgres"
)

// New returns the command group store.
func New(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:   "store",
		Short: "Locate, check, back up, copy, prune or empty the store",
		Long: `The store is one file, or a schema of a PostgreSQL server. It records what was
sent and received. --store, WAYBILL_STORE or "store:" in the configuration select
it.`,
	}
	group.AddCommand(newPath(f), newCheck(f), newBackup(f), newRestore(f), newCopy(f), newPrune(f), newErase(f),
		newReset(f), newSchema(f))
	return group
}

// existing returns the store, or an error if it does not exist.
func existing(ctx context.Context, c *command.Call) (*app.Store, error) {
	db, err := c.ExistingStore(ctx)
	if err == nil && db == nil {
		err = &store.Error{Kind: store.ErrNotThere, Path: c.Config.Store, Op: "open"}
	}
	return db, err
}

// size formats a number of bytes with its unit, such as 12.3 MB.
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

type pathJSON struct {
	Store  string `json:"store"`
	Kind   string `json:"kind"`   // file, server
	Exists *bool  `json:"exists"` // false: the first command that writes creates it; null if the server can't be asked
	Origin string `json:"origin"` // what set it
}

func newPath(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print where the store is",
		Long: `path prints where the store is, on one line: the path of a file, or the URL of a
PostgreSQL server without the password. It creates nothing; a note says if there is
no store yet.`,
		Example: command.Example("waybill store path"),
		RunE:    f.RunE(runPath),
	}
}

func runPath(ctx context.Context, c *command.Call, _ []string) error {
	place, isServer, err := c.StorePlace()
	if err != nil {
		return err
	}
	j := pathJSON{Store: place, Kind: "file", Origin: c.Config.Origin("store").String()}
	if isServer {
		j.Kind = "server"
	}
	switch exists, err := hasStore(ctx, c, place, isServer); {
	case err != nil:
		c.IO.Warning("it is not known whether the store exists: %v", err)
	case !exists:
		c.IO.Note("There is no store yet; `waybill create` and `waybill listen` create it")
		fallthrough
	default:
		j.Exists = &exists
	}
	return c.Out.Result(j, "%s", j.Store)
}

func hasStore(ctx context.Context, c *command.Call, place string, isServer bool) (bool, error) {
	if !isServer {
		_, err := os.Stat(place)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	db, err := c.StoreAt(ctx, c.Config.Store, store.Options{ReadOnly: true})
	switch {
	case errors.Is(err, store.ErrNotThere):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, db.Close()
}

type schemaJSON struct {
	Schema string `json:"schema"`
	Role   string `json:"role,omitempty"`
	SQL    string `json:"sql"`
}

func newSchema(f *command.Factory) *cobra.Command {
	var schema, role string
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the SQL that creates a store on PostgreSQL",
		Long: `schema prints the SQL that creates the tables of a store on a PostgreSQL server,
for an administrator to run, and with --role the rights of the role that waybill
connects as. It is needed only where that role may not create a schema: otherwise
the first command that writes creates it.`,
		Example: command.Example("waybill store schema --role waybill > waybill.sql"),
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			sql, err := postgres.SchemaSQL(schema, role)
			if refused, ok := errors.AsType[*postgres.TargetError](err); ok {
				return command.Usagef(refused.Hint, "--schema: %v", refused)
			}
			if err != nil {
				return err
			}
			if c.Out.Machine() {
				return c.Out.Object(schemaJSON{schema, role, sql})
			}
			return c.Out.Bytes([]byte(sql))
		}),
	}
	cmd.Flags().StringVar(&schema, "schema", "waybill", "`NAME` of the schema")
	cmd.Flags().StringVar(&role, "role", "", "`NAME` of the role that waybill connects as")
	return cmd
}
