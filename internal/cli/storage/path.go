package storage

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// pathJSON says where the store is.
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
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runPath(ctx, c)
		}),
	}
}

func runPath(ctx context.Context, c *command.Call) error {
	place, isServer, err := c.StorePlace()
	if err != nil {
		return err
	}
	j := pathJSON{Store: place, Kind: "file", Origin: c.Config.Origin("store").String()}
	if isServer {
		j.Kind = "server"
	}
	switch exists, err := c.HasStore(ctx); {
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
