package storage

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/store/postgres"
)

// schemaJSON is the SQL that makes a schema.
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
		Args:    cobra.NoArgs,
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
