package events

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type replayOptions struct {
	sendingOptions

	Since, Filter            string
	Until                    int64
	Dead, Resign, Unverified bool
}

func newReplay(f *command.Factory) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay [ID…]",
		Short: "Send stored deliveries again",
		Long: `replay sends stored deliveries once more, whole and byte for byte, in the order in
which they were received, with their headers, ` + forward.HeaderSeq + ` and ` + forward.HeaderAttempt + `
(from 2). They go to --to, or without it to each known target of listen --forward-to
whose filter they match. Name them by ID, by --since and --filter, or take with
--dead what was given up: that needs no listener, and what its target now takes
with a 2xx is no longer dead.

Signatures go as they are; one with a timestamp may be too old by now: --resign signs
anew. Only verified deliveries go, but for those named by ID, or with
--forward-unverified.

` + signature.DeliveryHelp + `

` + sendingHelp,
		Example: command.Example("waybill events replay 12 --to http://127.0.0.1:3000/hook", "waybill events replay --since 24h --filter 'event=router.delivered'",
			"waybill events replay --dead", "waybill events replay 12 --to http://127.0.0.1:3000/hook --corrupt-signature --expect-status 401"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			return runReplay(ctx, c, o, args)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.To, "to", "", "send to `URL` instead of the known targets")
	flags.StringVar(&o.Since, "since", "", "those received since a `TIME`: RFC 3339, a date, or an age")
	flags.StringVar(&o.Filter, "filter", "", "those with an event that matches `KEY=VALUE[,KEY=VALUE]`; keys event, status, statusTrack, number or a JSON pointer, a * may end VALUE")
	flags.Int64Var(&o.Until, "until", 0, "of these, up to delivery number `N`")
	flags.BoolVar(&o.Dead, "dead", false, "those that were given up")
	flags.BoolVar(&o.Unverified, "forward-unverified", false, "those that did not verify too")
	flags.BoolVar(&o.Resign, "resign", false, "sign anew, at the time of now")
	o.flags(cmd)
	return cmd
}

// selection reads which deliveries are meant.
func (o replayOptions) selection(ids []string) (replay.Selection, error) {
	sel := replay.Selection{IDs: ids, Dead: o.Dead, Until: o.Until, Unverified: o.Unverified}
	matching := o.Since != "" || o.Filter != "" || o.Until != 0
	ways := 0
	for _, way := range []bool{len(ids) > 0, o.Dead, matching} {
		if way {
			ways++
		}
	}
	switch {
	case ways == 0:
		return sel, command.Usagef("give IDs, --since, --filter or --dead; `waybill events list` shows what there is", "nothing says what to replay")
	case ways > 1:
		return sel, command.Usagef("choose one of them", "deliveries are named by ID, by --since, --filter and --until, or by --dead")
	case o.Until < 0:
		return sel, command.Usagef("give a delivery's number", "--until %d is negative", o.Until)
	case o.Scheme != "" && !o.Resign && !o.Corrupt:
		return sel, command.Usagef("add --resign, or leave it out", "--scheme says how to sign anew or what to corrupt, and neither is asked for")
	}
	var err error
	if sel.Since, err = command.ParseSince("--since", o.Since); err != nil {
		return sel, err
	}
	if sel.Filter, err = forward.ParseFilter(o.Filter); err != nil {
		return sel, command.Usagef("such as --filter event=router.delivered", "--filter: %w", err)
	}
	sel.To, err = o.target()
	return sel, err
}

func runReplay(ctx context.Context, c *command.Call, o replayOptions, ids []string) error {
	sel, err := o.selection(ids)
	if err != nil {
		return err
	}
	k, err := newSending(c, o.sendingOptions)
	if err != nil {
		return err
	}
	defer k.Client.Close()
	var sign *signer
	if o.Resign || o.Corrupt {
		if sign, err = newSigner(c.Session, o.Scheme); err != nil {
			return err
		}
		k.Scheme = sign.scheme
	}
	if !o.Resign {
		sign = nil
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	var in replay.Inbox = replay.Empty{}
	var out replay.Outbox
	if db != nil {
		in, out = db.Inbox, db.Outbox
	}
	all, left, err := replay.Select(ctx, in, out, sel)
	if err != nil {
		return err
	}
	if err := saySelection(c.Session, sel, all, left); err != nil || len(all) == 0 {
		return err
	}
	withhold, err := c.SecretMatcher()
	if err != nil {
		return err
	}
	headers, err := headersOf(c, o.Headers, all)
	if err != nil {
		return err
	}
	sender := &replay.Sender{Inbox: in, Outbox: out, Items: all, Headers: headers, Sign: sign.sign, Withhold: withhold}
	k.kind, k.Load = "replay", sender.Load
	k.label = func(i int) string { return "delivery " + all[i].ID }
	k.json = func(j *sentJSON, i int) { j.Delivery, j.Attempt = all[i].ID, all[i].Attempt+1+j.Copy }
	if !o.Corrupt {
		k.after = func(res forward.Result) error { return sender.Settle(ctx, res) }
	}
	k.again = func(next int) string { return replayAgain(c, sel, all, k.Faults, next) }
	if !c.Cmd.Flags().Changed("seed") && (o.Reorder || k.Faults.Drop > 0 || k.Faults.Delay > 0 || o.Corrupt) {
		c.IO.Note("--seed %d repeats this run", k.Faults.Seed)
	}
	return k.run(ctx, len(all))
}

// headersOf returns what each target of the deliveries gets, by its URL.
func headersOf(c *command.Call, values []string, all []replay.Item) (map[string][]webhook.Field, error) {
	var targets []forward.Target
	for _, e := range all {
		if !slices.ContainsFunc(targets, func(t forward.Target) bool { return t.URL.String() == e.To.String() }) {
			targets = append(targets, forward.Target{URL: e.To})
		}
	}
	headers := map[string][]webhook.Field{}
	err := GiveHeaders(c, values, targets)
	for _, t := range targets {
		headers[t.URL.String()] = t.Headers
	}
	return headers, err
}

// saySelection says what of the deliveries that were asked for is not sent, and
// what is odd about the others.
func saySelection(s *app.Session, sel replay.Selection, all []replay.Item, left replay.LeftOut) error {
	if left.Unverified > 0 {
		s.IO.Note("left out, because not verified: %s; --forward-unverified sends them too", view.Deliveries(left.Unverified))
	}
	if left.Unwanted > 0 {
		s.IO.Note("left out, because for no known target: %s; --to URL sends them", view.Deliveries(left.Unwanted))
	}
	switch {
	case len(all) == 0 && sel.Dead:
		if left.Unverified == 0 {
			s.IO.Note("nothing was given up")
		}
		return nil
	case len(all) == 0 && left.Unwanted > 0:
		return command.Usagef("give --to URL; `waybill listen --forward-to` makes targets known", "no known target takes any of them")
	case len(all) == 0:
		return command.Usagef("`waybill events list --limit 0` shows what there is", "no delivery matches")
	}
	if i := slices.IndexFunc(all, func(i replay.Item) bool { return !i.Verified }); i >= 0 && len(sel.IDs) > 0 {
		s.IO.Warning("not verified: delivery %s", all[i].ID)
	}
	warnClear(s, all)
	if sel.Dead && all[0].Letter == nil {
		s.IO.Note("what was given up stays so until its own target takes it: `waybill events replay --dead`, without --to")
	}
	return nil
}

// replayAgain is the command that goes on behind so many sendings. Letters that
// were taken are no longer dead, so that the same command goes on with the others.
func replayAgain(c *command.Call, sel replay.Selection, all []replay.Item, f forward.Faults, next int) string {
	set := map[string]string{"seed": strconv.FormatUint(f.Seed, 10), "skip": strconv.Itoa(next)}
	switch {
	case sel.Dead && all[0].Letter != nil:
		set["skip"] = "0"
	case len(sel.IDs) == 0:
		set["until"] = all[len(all)-1].ID
		if !sel.Since.IsZero() {
			set["since"] = sel.Since.UTC().Format(time.RFC3339Nano)
		}
	}
	return anew(c, sel.IDs, set)
}
