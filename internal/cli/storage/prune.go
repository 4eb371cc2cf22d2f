package storage

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/store"
)

type pruneJSON struct {
	DryRun     bool   `json:"dryRun"` // nothing was removed
	Runs       int64  `json:"runs"`
	Deliveries int64  `json:"deliveries"`
	Bytes      int64  `json:"bytes"` // of headers and bodies of deliveries
	Refused    int64  `json:"refused"`
	Dead       int64  `json:"dead"`       // of deliveries that had been given up forwarding
	Unfinished int64  `json:"unfinished"` // old runs that were kept, since not every row has an outcome
	Waiting    int64  `json:"waiting"`    // old deliveries that were kept, since they are not forwarded yet
	FreeBytes  *int64 `json:"freeBytes"`  // in the file, for reuse; null of a PostgreSQL store
}

func newPrune(f *command.Factory) *cobra.Command {
	var age string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "prune --older-than AGE",
		Short: "Remove what is old and not needed",
		Long: `prune removes of what is older than AGE:

  - runs: files, line numbers, requests and responses
  - headers and bodies of deliveries, and refused deliveries

It keeps rows with their states, the last response about each tracking, and the
IDs and contents of events: no row is sent twice, and no event counts twice. Runs
with pending, sending or unknown rows and deliveries that are not forwarded yet
are kept too.

A store file does not shrink: its free space is reused, so that a file of orders
that is created every day does not make it grow. To make it smaller, stop every
command that uses it, make a backup, and "waybill store restore" it. A
PostgreSQL server reuses the space after its next autovacuum.`,
		Example: command.Example("waybill store prune --older-than 90d --dry-run", "waybill store prune --older-than 90d"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runPrune(ctx, c, age, dryRun)
		}),
	}
	cmd.Flags().StringVar(&age, "older-than", "",
		"remove what is older than `AGE`, such as 30d, or a day, such as 2026-11-01")
	command.DryRunFlag(cmd.Flags(), &dryRun)
	return cmd
}

func runPrune(ctx context.Context, c *command.Call, age string, dryRun bool) error {
	const hint = "such as --older-than 30d"
	before, err := command.ParseSince("--older-than", age)
	switch {
	case age == "":
		return command.Usagef(hint, "--older-than AGE is missing")
	case before.After(time.Now()):
		return command.Usagef(hint, "--older-than %s is in the future", age)
	case err != nil:
		return err
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var p store.PrunePlan
	j := pruneJSON{DryRun: dryRun}
	switch {
	case db == nil:
	case dryRun:
		p, err = db.DB.PlanPrune(ctx, before)
	default:
		p, err = prune(ctx, db, before)
	}
	j.Runs, j.Unfinished = p.Runs.Runs, p.Runs.Unfinished
	j.Deliveries, j.Bytes, j.Refused = p.Inbox.Deliveries, p.Inbox.Bytes, p.Inbox.Refused
	j.Dead, j.Waiting = p.Inbox.Dead, p.Inbox.Waiting
	if err != nil && j.Runs+j.Deliveries == 0 {
		return err
	}
	if err == nil && db != nil {
		j.FreeBytes, err = db.DB.FreeBytes(ctx)
	}
	noteKept(c, j)
	removed := "Removed"
	if j.DryRun {
		removed = "Would remove"
	}
	return errors.Join(err, c.Out.Result(j, "%s %s, %s (%s) and %s", removed, command.Plural(j.Runs, "run"),
		command.Plural(j.Deliveries, "delivery"), size(j.Bytes), command.Plural(j.Refused, "refused delivery")))
}

func prune(ctx context.Context, db *app.Store, before time.Time) (p store.PrunePlan, err error) {
	if p.Runs, err = db.History.PruneRuns(ctx, before); err != nil {
		return p, err
	}
	if err := db.Observer().CatchUp(ctx); err != nil { // before the bytes are removed
		return p, err
	}
	p.Inbox, err = db.Retention.Prune(ctx, before)
	return p, err
}

func noteKept(c *command.Call, j pruneJSON) {
	if j.Unfinished > 0 {
		c.IO.Note("Kept %s with unfinished rows; list them with `waybill runs list`, "+
			"continue one with `waybill runs resume ID`", command.Plural(j.Unfinished, "run"))
	}
	if j.Waiting > 0 {
		c.IO.Note("Kept, not forwarded yet: %s; `waybill listen` with the same --forward-to sends them, "+
			"--skip-backlog drops them", command.Plural(j.Waiting, "delivery"))
	}
	if j.Dead > 0 && !j.DryRun {
		c.IO.Note("Pruned after forwarding was given up, can't be sent any more: %s", command.Plural(j.Dead, "delivery"))
	}
	if j.FreeBytes != nil && *j.FreeBytes > 0 && !j.DryRun {
		c.IO.Note("%s in the file are free for reuse; the file does not shrink", size(*j.FreeBytes))
	}
}
