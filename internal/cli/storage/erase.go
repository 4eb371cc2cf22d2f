package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/tracking"
)

const eraseAtOnce = 10_000

type eraseOptions struct {
	ReferIDs, Numbers []string
	Run               string
	Forget            bool
	Yes               bool
}

type erasedJSON struct {
	Store    string `json:"store"`
	Asked    int64  `json:"asked"` // shipments
	NotFound int64  `json:"notFound"`
	Complete bool   `json:"complete"` // nothing of them is left in the store
	ledger.Erasure
	SharedNumbers int64    `json:"sharedNumbers"` // kept: another shipment has them
	Left          []string `json:"left"`          // commands to run
}

func newErase(f *command.Factory) *cobra.Command {
	var o eraseOptions
	cmd := &cobra.Command{
		Use:   "erase --refer-id R|--tracking-number N|--run ID",
		Short: "Erase what is stored of shipments",
		Long: `erase removes shipments: rows, responses, trackings and events, the
bytes of every delivery that names one of their numbers, and all that from unused
space of the store too. It can't be undone. Other events of such a delivery stay, but
it can't be replayed, nor forwarded if it was not yet.

The store keeps a keyed hash of each: the same file sends nothing for it again, and
later responses and deliveries about it are not kept. With --forget it keeps none. If
another order has a number too, what is known of the number stays until that is
erased.

erase refuses while another process sends a row. After an interruption, re-run the
same command.

The service keeps its data. So do backups, and the write-ahead log and the backups of
a PostgreSQL server. docs/privacy.md says what is kept where.`,
		Example: command.Example("waybill store erase --refer-id ORD-1001", "waybill store erase --run 12 --yes"),
		RunE:    f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runErase(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.ReferIDs, "refer-id", nil, "erase the order `R` with all its numbers; may be repeated")
	flags.StringArrayVar(&o.Numbers, "tracking-number", nil, "erase the shipments with number `N`; may be repeated")
	flags.StringVar(&o.Run, "run", "", "erase the shipments that the input of run `ID` names")
	flags.BoolVar(&o.Forget, "forget", false, "keep no hash: the shipments may be sent and stored again")
	command.YesFlag(flags, &o.Yes)
	return cmd
}

func runErase(ctx context.Context, c *command.Call, o eraseOptions) error {
	db, err := existing(ctx, c)
	if err != nil {
		return err
	}
	e := &erasing{call: c, options: ledger.EraseOptions{Forget: o.Forget}, db: db}
	if e.queries, err = o.queries(ctx, c); err != nil {
		return err
	}
	if !o.Yes {
		question := fmt.Sprintf("Erase %s from %s? This can't be undone.", command.Plural(len(e.queries), "shipment"),
			db.Path)
		if err := command.Confirm(ctx, c, "erase", "what is erased can't be restored", question); err != nil {
			return err
		}
	}
	return e.run(ctx)
}

func (o *eraseOptions) queries(ctx context.Context, c *command.Call) (qs []tracking.Query, err error) {
	names := slices.Concat(o.ReferIDs, o.Numbers)
	switch {
	case len(names) == 0 && o.Run == "":
		return nil, command.Usagef("waybill store erase --refer-id R, --tracking-number N or --run ID",
			"nothing to erase is named")
	case slices.Contains(names, ""):
		return nil, command.Usagef("remove the empty value; an unset shell variable may be the cause", "a name is empty")
	}
	for _, r := range o.ReferIDs {
		qs = append(qs, tracking.Query{ReferID: r})
	}
	for _, n := range o.Numbers {
		qs = append(qs, tracking.Query{Number: n})
	}
	if o.Run == "" {
		return qs, nil
	}
	db, run, err := command.OpenRun(ctx, c.Session, o.Run)
	if err != nil {
		return nil, err
	}
	err = command.Each(db.History.Rows(ctx, run), func(r ledger.Row) error {
		if !r.Repeat {
			qs = append(qs, tracking.Query{ReferID: r.Item.ReferID, Number: r.Item.Number})
		}
		return nil
	})
	return qs, err
}

type erasing struct {
	call    *command.Call
	db      *app.Store
	queries []tracking.Query
	options ledger.EraseOptions

	missing []string // REFs that the store does not know
	done    ledger.Erasure
	left    []string
}

func (e *erasing) run(ctx context.Context) error {
	err := e.erase(ctx)
	if err != nil && removed(&e.done) == "" {
		return e.explain(err)
	}
	return errors.Join(e.report(err == nil), e.explain(err), e.outcome())
}

func (e *erasing) erase(ctx context.Context) (err error) {
	progress := e.call.IO.Progress("Erasing")
	defer progress.Stop()
	for some := range slices.Chunk(e.queries, eraseAtOnce) {
		done, err := e.db.Eraser.Erase(ctx, some, e.options)
		e.done.Add(done)
		if err != nil {
			return err
		}
		for _, i := range done.Unknown {
			e.missing = append(e.missing, command.Quoted(some[i].Ref()))
		}
	}
	if len(e.missing) < len(e.queries) || len(e.queries) == 0 { // an interrupted erase had erased the run
		e.left, err = e.db.Eraser.Compact(ctx)
	}
	return err
}

func (e *erasing) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrBeingSent):
		return &command.ExitError{Code: command.Failed, Err: err, Hint: "wait for that command or stop it, " +
			"then re-run this one", Next: e.call.Repeat()}
	}
	code, hint := command.CodeAndHint(err)
	hint = cmp.Or(hint, "not everything is erased yet: re-run the same command to continue")
	return &command.ExitError{Code: code, Err: err, Hint: hint, Next: e.call.Repeat()}
}

func (e *erasing) report(ended bool) error {
	if n := len(e.missing); n > 0 && n == len(e.queries) {
		return nil
	}
	d, c := &e.done, e.call
	asked, missing := int64(len(e.queries)), int64(len(e.missing))
	j := erasedJSON{e.db.Path, asked, missing, ended && len(e.left) == 0, *d, d.Shared, append([]string{}, e.left...)}
	if d.UnknownRows > 0 {
		c.IO.Warning("Of the erased rows, %s had an unknown outcome: the service may have them",
			command.Plural(d.UnknownRows, "row"))
	}
	if d.Shared > 0 {
		c.IO.Note("Kept: what is known of %s shared with another shipment; --tracking-number erases all with a number",
			command.Plural(d.Shared, "number"))
	}
	c.IO.Note("The service keeps its data, and so do backups of the store")
	if config.IsServer(e.db.Path) {
		c.IO.Note("The server's write-ahead log, its archive, replicas and backups " +
			"hold what was erased until they are recycled")
	}
	if parts := removed(d); parts != "" {
		return c.Out.Result(j, "Erased %s: %s of %s found", parts, command.Number(asked-missing),
			command.Plural(asked, "shipment"))
	}
	return c.Out.Result(j, "Already erased: %s", command.Plural(asked-missing, "shipment"))
}

// removed returns the counts of an erasure, such as "1 row, 2 events", or "" if nothing was removed.
func removed(d *ledger.Erasure) string {
	var parts []string
	for _, count := range []struct {
		n    int64
		noun string
	}{
		{d.Rows, "row"},
		{d.Trackings, "tracking"},
		{d.Responses, "response"},
		{d.Events, "event"},
		{d.Deliveries, "delivery"},
		{d.Refused, "refused delivery"},
		{d.Texts, "text"},
	} {
		if count.n > 0 {
			parts = append(parts, command.Plural(count.n, count.noun))
		}
	}
	return strings.Join(parts, ", ")
}

func (e *erasing) outcome() error {
	const shownMissing = 3
	var errs []error
	if n := len(e.missing); n > 0 {
		names := strings.Join(e.missing[:min(n, shownMissing)], ", ")
		if n > shownMissing {
			names += " and others"
		}
		code := command.Partial
		if n == len(e.queries) {
			code = command.NotFound
		}
		err := fmt.Errorf("the store holds nothing of %s", names)
		hint := "check the names and --account; list created trackings with `waybill list`"
		errs = append(errs, &command.ExitError{Code: code, Err: err, Hint: hint})
	}
	if len(e.left) > 0 {
		err := fmt.Errorf("erased data may remain: %s", strings.Join(e.left, "; "))
		hint := "run these commands as the owner of the tables, " +
			"or re-run this one when no other program has a transaction open"
		errs = append(errs, &command.ExitError{Code: command.Partial, Err: err, Hint: hint})
	}
	return errors.Join(errs...)
}
