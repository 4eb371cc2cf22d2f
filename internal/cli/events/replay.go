package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type replayOptions struct {
	sendingOptions

	IDs                            []string
	Since, Filter                  string
	Dead, Resign, Unverified, Edit bool
}

func (o replayOptions) changes() bool { return o.Edit || len(o.Set) > 0 }

func newReplay(f *command.Factory) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay ID...|--since TIME|--filter FILTER|--dead",
		Short: "Send stored deliveries again",
		Long: `replay sends stored deliveries again, byte for byte, in the order in which they
were received, with their headers, ` + forward.HeaderSeq + ` and ` + forward.HeaderAttempt + `
(from 2). They are sent to --to, or without it to each known target of listen
--forward-to whose filter matches. Select them by ID, by --since and --filter, or
with --dead those that were given up; a delivery that its target answers with 2xx
is no longer dead. No listener is needed.

Signatures are sent unchanged; if a target refuses old timestamps, --resign signs
again. --set and --edit change what is sent: --set sets a value in each event, --edit
opens the body of one delivery in $VISUAL or $EDITOR. What was changed is signed again
if there is a scheme, has the header ` + inbox.HeaderSynthetic +
			`, and leaves a dead delivery dead. Only verified deliveries are sent, except those selected by ID or with
--forward-unverified.

` + signature.DeliveryHelp + `

` + sendingHelp,
		Example: command.Example("waybill events replay 12 --to http://127.0.0.1:3000/hook",
			"waybill events replay --since 24h --filter 'event=router.delivered'", "waybill events replay --dead",
			"waybill events replay 12 --to http://127.0.0.1:3000/hook --corrupt-signature --expect-status 401"),
		RunE: f.WithArgs(&o.IDs, func(ctx context.Context, c *command.Call) error { return runReplay(ctx, c, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.To, "to", "", "send to `URL`, or a port of this computer, instead of the known targets")
	sinceFlag(cmd, &o.Since)
	filterFlag(cmd, &o.Filter)
	deadFlag(cmd, &o.Dead)
	ForwardUnverifiedFlag(cmd, &o.Unverified)
	flags.BoolVar(&o.Resign, "resign", false, "sign again, with the current time")
	setFlag(cmd, &o.Set)
	flags.BoolVar(&o.Edit, "edit", false, "edit the body of one delivery before it is sent")
	o.flags(cmd)
	return cmd
}

func (o replayOptions) selection(c *command.Call) (replay.Selection, error) {
	sel := replay.Selection{IDs: o.IDs, Dead: o.Dead, Unverified: o.Unverified}
	named, matching := len(o.IDs) > 0, o.Since != "" || o.Filter != ""
	switch {
	case !named && !matching && !o.Dead:
		return sel, command.Usagef("give IDs, --since, --filter or --dead; `waybill events list` shows events",
			"nothing selects what to replay")
	case named && matching || o.Dead && (named || matching):
		return sel, command.Usagef("use IDs, or --since/--filter, or --dead", "too many ways to select deliveries")
	case o.Scheme != "" && !o.Resign && !o.Corrupt && !o.changes():
		return sel, command.Usagef("add --resign, or leave it out", "--scheme needs --resign or --corrupt-signature")
	case o.Edit && (len(o.IDs) != 1 || len(o.Set) > 0):
		return sel, command.Usagef("give one ID, without --set", "--edit is for one delivery")
	}
	var errs [3]error
	sel.Since, errs[0] = command.ParseSince("--since", o.Since)
	sel.Filter, errs[1] = parseFilter(c, o.Filter)
	sel.To, errs[2] = o.target()
	return sel, cmp.Or(errs[:]...)
}

func runReplay(ctx context.Context, c *command.Call, o replayOptions) error {
	sel, err := o.selection(c)
	if err != nil {
		return err
	}
	k, err := newSending(c, o.sendingOptions)
	if err != nil {
		return err
	}
	defer k.Client.Close()
	signer, err := o.signer(k)
	if err != nil {
		return err
	}
	sender, err := o.newSender(ctx, c, sel)
	if err != nil || len(sender.Items) == 0 {
		return err
	}
	targets := targetsOf(sender.Items)
	sender.Sign, sender.Headers = signer.Sign, map[string][]webhook.Field{}
	if sender.Withhold, err = c.SecretMatcher(); err != nil {
		return err
	}
	if err := o.addEdit(ctx, c, sender, signer); err != nil {
		return err
	}
	if err := AddTargetHeaders(c, o.Headers, targets); err != nil {
		return err
	}
	for _, t := range targets {
		sender.Headers[t.URL.String()] = t.Headers
	}
	k.kind, k.Load, k.several = "replay", sender.Load, len(targets) > 1
	if !k.several {
		c.IO.Note("Replaying to %s", targets[0].Show())
	}
	k.fill = func(j *Sent, i int) {
		item := sender.Items[i]
		if j.DeliveryName = view.NewDeliveryName(item.ID); !o.changes() {
			j.Attempt = item.Attempt + 1 + j.Copy
		}
	}
	if !o.Corrupt {
		k.record = func(res forward.Result) error { return sender.RecordAttempt(ctx, res) }
	}
	k.noteSeed("")
	return k.run(ctx, len(sender.Items))
}

// newSender returns a sender of the selected deliveries, and prints notes about them. It may have nothing to send.
func (o replayOptions) newSender(ctx context.Context, c *command.Call, sel replay.Selection) (*replay.Sender, error) {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return nil, err
	}
	sender := &replay.Sender{Inbox: db.Received()}
	if db != nil {
		sender.Outbox = db.Outbox
	}
	items, left, err := replay.Select(ctx, sender.Inbox, sender.Outbox, sel)
	if err != nil {
		return nil, err
	}
	sender.Items = items
	targets := targetsOf(items)
	if err := o.noteSelection(c.IO, items, left, targets); err != nil || len(items) == 0 {
		return sender, err
	}
	if sel.To == nil {
		if err := requireHere(ctx, db, targets); err != nil {
			return nil, err
		}
	}
	return sender, noteWhole(ctx, c.IO, sender.Inbox, sel.IDs)
}

// noteWhole prints a note for IDs that name one of several events: the whole delivery is sent.
func noteWhole(ctx context.Context, io *term.IO, in replay.Inbox, ids []string) error {
	for _, id := range ids {
		d, err := replay.Find(ctx, in, id)
		if err != nil {
			return err
		}
		if id == d.ID() || strings.HasPrefix(id, replay.RefusedPrefix) {
			continue
		}
		if n, err := countEvents(ctx, in, d.Seq); err != nil {
			return err
		} else if n > 1 {
			io.Note("%s: replaying all of delivery %s (%s)", id, d.ID(), command.Plural(n, "event"))
		}
	}
	return nil
}

func countEvents(ctx context.Context, in replay.Inbox, delivery int64) (int, error) {
	n := 0
	for e, err := range in.Events(ctx, inbox.Query{Delivery: delivery}) {
		if err != nil {
			return 0, err
		}
		n = max(n, e.Index+1)
	}
	return n, nil
}

func targetsOf(items []replay.Item) []forward.Target {
	var targets []forward.Target
	for _, i := range items {
		if !slices.ContainsFunc(targets, func(t forward.Target) bool { return t.URL.String() == i.To.String() }) {
			targets = append(targets, forward.Target{URL: i.To})
		}
	}
	return targets
}

// noteSelection prints what is not sent, and warns about targets. It returns an error if nothing named is left to send.
func (o replayOptions) noteSelection(io *term.IO, items []replay.Item, left replay.LeftOut, to []forward.Target) error {
	noteSkipped := func(n int, why, remedy string) {
		if n > 0 {
			io.Note("Skipped, %s: %s%s", why, command.Plural(n, "delivery"), remedy)
		}
	}
	noteSkipped(left.Unverified, "not verified", "; --forward-unverified sends them too")
	noteSkipped(left.NotAccepted, "no target matches", "; --to URL sends them")
	noteSkipped(left.Pruned, "pruned", "")
	switch {
	case len(items) == 0 && o.Dead:
		if left.Unverified == 0 {
			io.Note("Nothing was given up; `waybill events list --pending` shows what is still tried")
		}
		return nil
	case len(items) == 0 && left.Pruned > 0:
		return fmt.Errorf("no delivery that matches is whole: %w", replay.ErrPruned)
	case len(items) == 0 && left.NotAccepted > 0:
		return command.Usagef("give --to URL; `waybill listen --forward-to` makes targets known",
			"no known target accepts any of them")
	case len(items) == 0:
		return command.Usagef("`waybill events list --limit 0` shows all events", "no delivery matches")
	}
	if i := slices.IndexFunc(items, func(i replay.Item) bool { return !i.Verified }); i >= 0 && len(o.IDs) > 0 {
		io.Warning("not verified: delivery %s", items[i].ID)
	}
	WarnUnencrypted(io, to)
	if o.Dead && items[0].Entry == nil {
		io.Note("Deliveries that were given up stay in the list until their own target accepts them: " +
			"`waybill events replay --dead`, without --to")
	}
	return nil
}

func (o replayOptions) signer(k *sending) (signer *Signer, err error) {
	switch {
	case o.Resign:
		return k.signer()
	case o.changes():
		return k.signerIfAny()
	case o.Corrupt:
		_, err = k.signer()
	}
	return nil, err
}

// addEdit makes the sender edit deliveries before it sends them, if --edit or --set is given. It opens the editor.
func (o replayOptions) addEdit(ctx context.Context, c *command.Call, sender *replay.Sender, signer *Signer) error {
	set, err := o.parseSet()
	if err != nil || !o.changes() {
		return err
	}
	change := func(body []byte) ([]byte, error) { return webhook.SetMembers(body, set) }
	if o.Edit {
		d, err := replay.FindWhole(ctx, sender.Inbox, o.IDs[0])
		if err != nil {
			return err
		}
		edited, err := editBody(ctx, c, d.Body)
		if err != nil {
			return err
		}
		change = func([]byte) ([]byte, error) { return edited, nil } //nolint:unparam // the signature of SetMembers
	}
	sender.Edit = func(d inbox.Delivery) (inbox.Delivery, error) {
		body, err := change(d.Body)
		return signer.WithBody(c.Session, d, body), err
	}
	return nil
}

// editBody returns a body after the user has edited it. An unchanged body is an error.
func editBody(ctx context.Context, c *command.Call, body []byte) ([]byte, error) {
	editor, err := command.Editor(c.IO, c.Getenv, "use --set /POINTER=VALUE")
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "waybill.*.json") // 0600
	if err != nil {
		return nil, &disk.TempError{Err: err}
	}
	defer func() { _ = os.Remove(f.Name()) }()
	shown := append(render.Indented(body), '\n')
	_, err = f.Write(shown)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = c.IO.Edit(ctx, editor, f.Name())
	}
	if err != nil {
		return nil, command.EditorError(editor, err, "; nothing was sent")
	}
	edited, err := os.ReadFile(f.Name())
	if err == nil && bytes.Equal(edited, shown) {
		err = command.Usagef("leave --edit out to send it as it came", "the body is unchanged: nothing was sent")
	}
	if !json.Valid(edited) {
		c.IO.Warning("the body is not JSON, and is sent as it is")
	}
	return bytes.TrimSuffix(edited, []byte("\n")), err
}

// WithBody returns d with another body. Unless g signs it again, it has no digests, and no signatures of the scheme in
// force and of the scheme that d was verified by: they do not fit the body.
func (g *Signer) WithBody(s *app.Session, d inbox.Delivery, body []byte) inbox.Delivery {
	if d.Body = body; g != nil {
		return d
	}
	headers, parameters := []string{"Digest", "Content-Digest", "Repr-Digest", "Content-MD5"}, []string{}
	for _, name := range []string{s.Config.Webhook.Scheme, d.Scheme} {
		scheme, err := s.Scheme(name)
		if err != nil {
			continue // unknown scheme: its signature is unknown too
		}
		switch kind, at, _ := strings.Cut(scheme.WithDefaults().Signature.From, ":"); kind {
		case "header":
			headers = append(headers, at)
		case "query":
			parameters = append(parameters, at)
		}
	}
	d.Header = slices.DeleteFunc(slices.Clone(d.Header), func(f webhook.Field) bool {
		return slices.ContainsFunc(headers, func(name string) bool { return strings.EqualFold(name, f.Name) })
	})
	d.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(d.RawQuery, "&"), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		return err == nil && slices.Contains(parameters, name)
	}), "&")
	return d
}
