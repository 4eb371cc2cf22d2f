package track

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/ledger"
)

// filterOptions are the flags that say which trackings of the store are meant.
type filterOptions struct {
	Status, State, Run, Stale string
}

func (o *filterOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Run, "run", "", "trackings of run `ID`")
	f.StringVar(&o.Status, "status", "", "trackings whose last known status is `STATUS`: number, label or track")
	command.Choice(f, &o.State, "state", "", "trackings whose row is in `STATE`", states()...)
	f.StringVar(&o.Stale, "stale", "", "trackings accepted an `AGE` such as 48h ago or earlier, not delivered and not heard of since")
}

// states are the words of --state.
func states() []string {
	return []string{string(ledger.Accepted), string(ledger.Rejected), string(ledger.Unknown), string(ledger.Pending), string(ledger.Sending)}
}

func (o *filterOptions) used() bool { return *o != (filterOptions{}) }

// words are the flags as they were typed.
func (o *filterOptions) words() (words []string) {
	for _, f := range []struct{ name, value string }{{"--status", o.Status}, {"--state", o.State}, {"--run", o.Run}, {"--stale", o.Stale}} {
		if f.value != "" {
			words = append(words, f.name, f.value)
		}
	}
	return words
}

func (o *filterOptions) String() string {
	return fmt.Sprintf("run=%q status=%q state=%q stale=%q", o.Run, o.Status, o.State, o.Stale)
}

// filter reads the flags. The store is nil if there is none yet.
func (o *filterOptions) filter(ctx context.Context, c *command.Call) (*app.Store, ledger.Filter, error) {
	f := ledger.Filter{Status: o.Status, State: ledger.State(o.State)}
	var err error
	if f.StaleSince, err = command.ParseSince("--stale", o.Stale); err != nil {
		return nil, f, err
	}
	if o.Run != "" {
		db, run, err := command.OpenOwnRun(ctx, c.Session, o.Run)
		f.Run = run.ID
		return db, f, err
	}
	db, err := c.ExistingStore(ctx)
	return db, f, err
}
