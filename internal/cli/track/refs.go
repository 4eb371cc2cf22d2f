package track

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// refOptions say which trackings a command is about.
type refOptions struct {
	Refs []string
	Run  string
	By   string
}

func (o *refOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.Run, "run", "", "all trackings of run `ID`")
	cmd.Flags().StringVar(&o.By, "by", "refer-id", "what a REF is: refer-id or tracking-number")
}

// check refuses a line that names no tracking, or names them in two ways.
func (o *refOptions) check() error {
	switch {
	case o.By != "refer-id" && o.By != "tracking-number":
		return command.Usagef("use --by refer-id or --by tracking-number", "--by %q is neither", o.By)
	case o.Run != "" && len(o.Refs) > 0:
		return command.Usagef("give REFs or --run", "REFs and --run exclude each other")
	case o.Run == "" && len(o.Refs) == 0:
		return command.Usagef("name one or more of your identifiers, or --run ID; `waybill list` shows them", "no REF given")
	case slices.Contains(o.Refs, ""):
		return command.Usagef("", "a REF is empty")
	}
	return nil
}

// single reports whether exactly one tracking was asked for by name.
func (o *refOptions) single() bool { return o.Run == "" && len(o.Refs) == 1 }

// query is the question for one REF.
func (o *refOptions) query(ref string) tracking.Query {
	if o.By == "tracking-number" {
		return tracking.Query{Number: ref}
	}
	return tracking.Query{ReferID: ref}
}

// queries returns the questions in order, each once.
func (o *refOptions) queries(ctx context.Context, c *command.Call) ([]tracking.Query, error) {
	var qs []tracking.Query
	if o.Run == "" {
		for _, ref := range o.Refs {
			if q := o.query(ref); !slices.Contains(qs, q) {
				qs = append(qs, q)
			}
		}
		return qs, nil
	}
	db, id, err := command.OpenRun(ctx, c.Session, o.Run)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for row, err := range db.History.Rows(ctx, id) {
		if err != nil {
			return nil, err
		}
		ref := row.Item.ReferID
		if o.By == "tracking-number" {
			ref = row.Item.Number
		}
		if (row.State == ledger.Accepted || row.State == ledger.Unknown) && !seen[ref] {
			seen[ref] = true
			qs = append(qs, o.query(ref))
		}
	}
	return qs, nil
}
