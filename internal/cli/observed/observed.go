// Package observed has the command that lists observed statuses, events and fields of the service.
package observed

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/observed"
)

// New returns the command observed.
func New(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "observed",
		Short: "List what was met of the service, and what is not documented",
		Long: `observed lists what waybill met in responses and deliveries, with the number of
responses and events that held it, when it was met first and last, and whether the
interface document has it.

  status       number and name
  event        kind of event
  field        source and path; [] is an array, * a name that may be an identifier
  header       of a response (answer) or a delivery
  http-status  source and number
  error        source, path and codes of an error that is not null

Sources are create-v1, create-v2, query, api (your own requests) and delivery.
Standard headers and the status 200 count as documented.

Values of shipments are not kept. Of each kind there are at most 500 entries of
responses, as many of verified deliveries and as many of deliveries that no scheme
verified. Deliveries whose signature is wrong, and made-up events, do not count.

Responses are recorded while a command runs that has a store, deliveries when this
command or a prune runs.`,
		Example: command.Example("waybill observed",
			"waybill observed -o json --jq '.[] | select(.documented | not) | .value'"),
		RunE: f.RunE(run),
	}
	command.ColumnsFlag(cmd, columns())
	return cmd
}

func run(ctx context.Context, c *command.Call, _ []string) error {
	l := command.Listing[observed.Entry]{
		Out: c.Out, Columns: columns(),
		Empty: "Nothing observed yet: run a command that sends requests, or receive deliveries",
		JSON: func(e observed.Entry) any {
			e.First, e.Last = e.First.UTC(), e.Last.UTC()
			return e
		},
	}
	db, err := c.StoreToList(ctx, "value")
	if err != nil {
		return err
	}
	if db == nil {
		return l.PrintAll(nil)
	}
	progress := c.IO.Progress("Reading deliveries")
	err = db.Observer().CatchUp(ctx)
	progress.Stop()
	if errors.Is(err, inbox.ErrReadOnly) {
		c.IO.Note("Store %s is read-only: deliveries since the last `waybill observed` are missing", db.Path)
	} else if err != nil {
		return err
	}
	origins := []observed.Origin{observed.Responses, observed.Verified, observed.Unverified}
	registers := make([][]observed.Entry, len(origins))
	for i, of := range origins {
		if registers[i], err = db.Observed.Observed(ctx, of); err != nil {
			return err
		}
	}
	all, notKept := observed.Sum(registers...)
	for _, kind := range observed.Kinds() {
		if n := notKept[kind]; n > 0 {
			c.IO.Warning("%s of kind %s not kept: there are %d entries of it already",
				command.Plural(n, "observation"), kind, observed.MaxEntries)
		}
	}
	return l.PrintAll(all)
}

func columns() []command.Column[observed.Entry] {
	return []command.Column[observed.Entry]{
		{Name: "KIND", Cell: func(e observed.Entry) string { return string(e.Kind) }},
		{Name: "VALUE", Flex: true, Cell: func(e observed.Entry) string { return e.Value }},
		{Name: "COUNT", Right: true, Count: func(e observed.Entry) int64 { return e.Count }},
		{Name: "FIRST", Rank: 2, Time: func(e observed.Entry) time.Time { return e.First }},
		{Name: "LAST", Rank: 1, Time: func(e observed.Entry) time.Time { return e.Last }},
		command.YesNo("DOCUMENTED", func(e observed.Entry) bool { return e.Documented }),
	}
}
