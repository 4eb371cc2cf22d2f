package track

import (
	"context"
	"fmt"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
)

// refresh asks the service about the trackings of a filter, so that a list of
// them is of now. An interrupted one continues where it stopped. The error says
// why not all were asked about.
func refresh(ctx context.Context, c *command.Call, f ledger.Filter, name string) error {
	db, err := c.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	all, err := selected(context.WithoutCancel(ctx), db, c.Account(ctx), f)
	if err != nil {
		return err
	}
	a, err := newAsking(ctx, c, all, func(query.Ending) error { return nil })
	if err != nil {
		return err
	}
	a.progress = command.NewProgress(c.IO, "Checking", "trackings", all.total)
	s := a.scheduler(ctx)
	s.Patience = patience(c)
	done, err := a.beginSweep(ctx, s, "list "+name, false)
	if err != nil {
		return err
	}
	stop := a.run(ctx, s, all)
	if stop == nil {
		return done()
	}
	return a.exitError(stop, func(stop error) string {
		return fmt.Sprintf("%v; %s", stop, a.tally.checked())
	}, c.Repeat())
}
