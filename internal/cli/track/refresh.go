package track

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/query"
)

func refreshFlag(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "refresh", false, "query every tracking first, whatever is known of it")
}

// refresh asks the service about the trackings that are to be listed, so that the list is
// of now. An interrupted one continues where it stopped. The error says why not all were
// asked about.
func (l *listing) refresh(ctx context.Context, name string) (err error) {
	c := l.call
	if l.db, err = c.ExistingStore(ctx); err != nil || l.db == nil {
		return err
	}
	whole := context.WithoutCancel(ctx)
	var all targets
	if l.file != nil {
		all = l.createdTargets(whole)
	} else if all, err = selected(whole, c, l.db, l.filter); err != nil {
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
