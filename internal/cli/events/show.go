package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/term"
)

type showOptions struct{ Raw, Headers, Reveal bool }

func newShow(f *command.Factory) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one event: its delivery, effects and data",
		Long: `show prints when an event was received, whether it verified and why not, what it
changed or repeats, the targets it was forwarded to, and its data. ID is its number
(12, 12.2) in listen and events list, refused:3 for a refused delivery, or its
eventId or the start of it (of UUIDs in any case). Webhook secrets are shown as ***
without --reveal. A terminal shows the start of long data; -o json shows all.

--raw writes the body of the delivery instead, byte for byte; to a terminal with
control characters made visible. --headers writes the delivery's headers in their
order; credentials show as *** without --reveal.`,
		Example: command.Example("waybill events show 12", "waybill events show 12 -o json --jq .data",
			"waybill events show 12 --raw > body.json", "waybill events show 12 --headers"),
		Args: command.Exactly(1, "an event's number or eventId; `waybill events list` shows them"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error { return runShow(ctx, c, args[0], o) }),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Raw, "raw", false, "the body of its delivery, byte for byte")
	flags.BoolVar(&o.Headers, "headers", false, "the headers of its delivery")
	signature.RevealFlag(cmd, &o.Reveal)
	return cmd
}

func runShow(ctx context.Context, c *command.Call, id string, o showOptions) error {
	switch {
	case o.Raw && o.Headers:
		return command.Usagef("use one of them", "--raw and --headers exclude each other")
	case o.Reveal && o.Raw:
		return command.Usagef("leave it out", "--raw hides nothing")
	case o.Raw || o.Headers:
		return showDelivery(ctx, c, id, o)
	}
	return showPage(ctx, c, id, o)
}

// showDelivery prints the body or the headers of a delivery.
func showDelivery(ctx context.Context, c *command.Call, id string, o showOptions) error {
	if o.Raw && (c.Out.Machine() || c.Out.IsCSV()) {
		return command.Usagef("omit --jq and -o; `waybill events export` writes bodies as JSON",
			"--raw writes bytes as they came, in no other form")
	}
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	d, err := replay.Find(ctx, db.Received(), id)
	if err != nil {
		return err
	}
	if d.Body == nil {
		err := fmt.Errorf("event %q: the bytes of its delivery were pruned", id)
		hint := "see the remaining data with `waybill events show ID`"
		return &command.ExitError{Code: command.NotFound, Err: err, Hint: hint}
	}
	if o.Raw {
		return c.Out.Bytes(d.Body)
	}
	headers, err := view.ShownHeaders(c.Session, d.Header, view.HeaderOptions{Reveal: o.Reveal})
	if err != nil {
		return err
	}
	if c.Out.Machine() {
		return c.Out.Object(headers)
	}
	return view.PrintHeaders(c.Out, headers)
}

// Shown is an event with everything the store knows about it, in JSON output.
type Shown struct {
	view.Event

	From       string       `json:"from"` // address of the sender
	Path       string       `json:"path"` // as sent, without the query
	Scheme     string       `json:"scheme"`
	Secret     string       `json:"secret"` // name of the secret that matched
	Events     int          `json:"events"` // in its delivery, anomalies included
	Current    string       `json:"current,omitempty"`
	Repeats    []Repeat     `json:"repeats"`
	Effect     string       `json:"effect,omitempty"`
	Changed    []Changed    `json:"changed"`
	Forwarding []Forwarding `json:"forwarding"`
}

// Repeat is another event with the same eventId.
type Repeat struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// Changed is a tracking whose status comes from an event.
type Changed struct {
	ReferID        string `json:"referId"`
	TrackingNumber string `json:"trackingNumber"`
}

func showPage(ctx context.Context, c *command.Call, id string, o showOptions) error {
	db, err := c.ExistingStore(ctx)
	if err != nil {
		return err
	}
	if strings.HasPrefix(id, replay.RefusedPrefix) {
		d, err := replay.Find(ctx, db.Received(), id)
		if err != nil {
			return err
		}
		if d.Refused {
			return showRefused(c, d, o)
		}
	}
	e, err := replay.FindEvent(ctx, db.Received(), id)
	if err != nil {
		return err
	}
	if c.Out.IsCSV() {
		return eventListing(c, listOptions{}).PrintAll([]inbox.Event{e})
	}
	d, err := db.Inbox.Delivery(ctx, e.Delivery)
	if err != nil {
		return err
	}
	all, err := ShowEvents(ctx, db, d, []inbox.Event{e})
	if err != nil {
		return err
	}
	j := all[0]
	if !o.Reveal {
		e = view.MaskEvent(e, c.SecretMasker())
	}
	j.Data, j.Raw = view.NewEvent(e).Data, e.Raw
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	return printPage(c, e, j)
}

// ShowEvents returns what the store knows about events of the delivery d. It first applies events to trackings that no
// command has applied yet. Secrets are not masked.
func ShowEvents(ctx context.Context, db *app.Store, d inbox.Delivery, events []inbox.Event) ([]Shown, error) {
	count, err := countEvents(ctx, db.Inbox, d.Seq)
	if err != nil {
		return nil, err
	}
	forwarding, err := ForwardingsOf(ctx, db, d.Seq)
	if err != nil {
		return nil, err
	}
	all := make([]Shown, len(events))
	for i, e := range events {
		all[i] = Shown{
			Event: view.NewEvent(e), From: d.RemoteAddr, Path: d.Path, Scheme: d.Scheme, Secret: d.SecretName,
			Events: count, Repeats: []Repeat{}, Changed: []Changed{}, Forwarding: forwarding,
		}
		if err := all[i].addRepeats(ctx, db, e); err != nil {
			return nil, err
		}
		if err := all[i].addEffect(ctx, db, e); err != nil {
			return nil, err
		}
	}
	return all, nil
}

const maxRepeats = 20

func (j *Shown) addRepeats(ctx context.Context, db *app.Store, e inbox.Event) error {
	if e.EventID == "" {
		return nil
	}
	for _, marks := range [][]inbox.Mark{{inbox.Current}, {inbox.Duplicate, inbox.Conflict, inbox.Superseded}} {
		for other, err := range db.Inbox.Events(ctx, inbox.Query{EventID: e.EventID, Marks: marks}) {
			switch {
			case err != nil:
				return err
			case len(j.Repeats) == maxRepeats:
				return nil
			case other.Synthetic != e.Synthetic || other.ID() == e.ID():
			case other.Mark == inbox.Current:
				j.Current = other.ID()
			default:
				j.Repeats = append(j.Repeats, Repeat{other.ID(), view.EventType(other.Mark)})
			}
		}
	}
	return nil
}

func (j *Shown) addEffect(ctx context.Context, db *app.Store, e inbox.Event) error {
	switch {
	case e.Mark == inbox.Anomaly:
		j.Effect = "nothing: it cannot be read as an event"
	case e.Synthetic:
		j.Effect = "nothing: `waybill events send` made it up"
	case e.Mark != inbox.Current && j.Current != "":
		j.Effect = fmt.Sprintf("nothing: event %s has the same eventId and counts", j.Current)
	case e.Mark != inbox.Current:
		j.Effect = "nothing: another event with the same bytes counts"
	case !e.Verified.Counts():
		j.Effect = "nothing: it is not verified"
	}
	if j.Effect != "" || e.TrackingNumber == "" {
		return nil
	}
	followed, _, err := db.Events.Followed(ctx)
	if err != nil {
		return err
	}
	if followed < e.Seq {
		err := db.Follower().CatchUp(ctx)
		if inbox.IsTemporary(err) {
			j.Effect = "not applied yet; the next show, list or wait applies it"
			return nil
		}
		if err != nil {
			return err
		}
	}
	known, err := db.Trackings.Find(ctx, "", e.TrackingNumber)
	for _, k := range known {
		if k.Sighting != nil && k.Sighting.Event == e.Seq {
			j.Changed = append(j.Changed, Changed{k.Item.ReferID, k.Item.Number})
		}
	}
	switch {
	case err != nil:
	case len(j.Changed) > 0:
		j.Effect = "status of " + changedText(j.Changed)
	case len(known) == 0:
		j.Effect = "nothing: no tracking with its number is known here"
	default:
		j.Effect = "nothing that is still current: " + newerText(known)
	}
	return err
}

func changedText(all []Changed) string {
	return strings.Join(command.Texts(len(all), func(i int) string {
		if all[i].ReferID == "" {
			return all[i].TrackingNumber
		}
		return all[i].ReferID + " (" + all[i].TrackingNumber + ")"
	}), ", ")
}

func newerText(known []ledger.TrackingStatus) string {
	for _, k := range known {
		if k.Sighting != nil {
			return fmt.Sprintf("a %s received %s is newer", view.Source(k.Sighting.Source), render.LocalTime(k.Sighting.Seen))
		}
	}
	return "the tracking has no status yet"
}

func received(out *command.Output, at time.Time, from, path string) string {
	when := render.LocalTime(at)
	if out.Out().IsTerminal() {
		when = render.LocalMinute(at) + " (" + view.Ago(at, time.Now()) + ")"
	}
	if from != "" {
		when += ", from " + from
	}
	if path != "" && path != "/" {
		when += ", path " + path
	}
	return when
}

func verifiedText(e inbox.Event, id, scheme, secret string) (string, term.Style) {
	text, style := view.VerifiedMark(e), term.Caution
	switch e.Verified {
	case inbox.Yes:
		style = term.Good
	case inbox.No:
		style = term.Bad
	case inbox.Unknown:
		return "unknown: no signature scheme was set", style
	case inbox.Unsigned:
		return "unsigned: webhook.verify was off", style
	}
	if scheme != "" {
		text += ", scheme " + scheme
	}
	if secret != "" {
		text += ", secret " + secret
	}
	if e.Verified == inbox.No {
		text += "; `waybill signature explain " + id + "` says more"
	}
	return text, style
}

func printPage(c *command.Call, e inbox.Event, j Shown) error {
	names := view.NewStatusFormatter(c.Config.Statuses)
	id := e.ID()
	if j.Events > 1 {
		id += fmt.Sprintf(" (event %d of %d in delivery %d)", e.Index+1, j.Events, e.Delivery)
	}
	madeUp := ""
	if e.Synthetic {
		madeUp = "yes, by `waybill events send`"
	}
	targets := slices.DeleteFunc(slices.Clone(j.Forwarding), func(f Forwarding) bool {
		return f.State == notQueued || f.State == unread && j.Events == 1 && e.IsRepeat() // repeats are never queued
	})
	forwarded := ""
	if len(targets) == 0 {
		forwarded = "no"
	}
	repeats := command.Texts(len(j.Repeats), func(i int) string {
		return j.Repeats[i].ID + " (" + j.Repeats[i].Type + ")"
	})
	status, latest, statusStyle := names.EventTexts(e)
	verified, style := verifiedText(e, e.ID(), j.Scheme, j.Secret)
	err := c.Out.Fields([]render.Field{
		{Name: "ID", Value: id},
		{Name: "Event", Value: e.Kind},
		{Name: "Event ID", Value: e.EventID},
		{Name: "Number", Value: e.TrackingNumber},
		{Name: "Status", Value: status, Style: statusStyle},
		{Name: "Latest event", Value: latest},
		{Name: "Event time", Value: e.EventTime},
		{Name: "Received", Value: received(c.Out, e.ReceivedAt, j.From, j.Path)},
		{Name: "Verified", Value: verified, Style: style},
		{Name: "Made up", Value: madeUp, Style: term.Caution},
		{Name: "Type", Value: typeText(e.Mark, j.Current)},
		{Name: "Repeats", Value: strings.Join(repeats, ", ")},
		{Name: "Anomaly", Value: e.Anomaly, Style: term.Caution},
		{Name: "Changed", Value: j.Effect},
		{Name: "Forwarded", Value: forwarded},
	})
	if err == nil && len(targets) > 0 {
		err = printTargets(c, targets)
	}
	if err != nil {
		return err
	}
	if e.Raw == nil {
		c.IO.Note("Its bytes were pruned; this is the rest")
		return nil
	}
	return printBody(c.Out, e.Raw)
}

func printTargets(c *command.Call, targets []Forwarding) error {
	var all []tried
	for _, t := range targets {
		all = append(all, t.History...)
	}
	listing := command.Listing[Forwarding]{Out: c.Out, Columns: forwardingColumns(c.Out, time.Now())}
	err := cmp.Or(c.Out.Line(""), listing.PrintAll(targets))
	if err != nil || len(all) == 0 {
		return err
	}
	attempts := command.Listing[tried]{Out: c.Out, Columns: triedColumns(c.Out)}
	return cmp.Or(c.Out.Line(""), attempts.PrintAll(all))
}

const shownLines = 20

func printBody(out *command.Output, body []byte) error {
	err := out.Line("")
	lines := bytes.Split(render.Indented(body), []byte("\n"))
	if !out.Out().IsTerminal() || !json.Valid(body) || len(lines) <= shownLines+1 {
		return cmp.Or(err, out.Raw(body))
	}
	for _, line := range lines[:shownLines] {
		err = cmp.Or(err, out.Line("%s", term.Styled(term.EscapeJSON(nil, line))))
	}
	return cmp.Or(err, out.Line("… %d more lines: --raw or -o json shows all", len(lines)-shownLines))
}

func typeText(m inbox.Mark, current string) string {
	if m == inbox.Current {
		return ""
	}
	text := view.EventType(m)
	if current != "" {
		text += " of " + current
	}
	return strings.ReplaceAll(text, "superseded of", "superseded by")
}

func showRefused(c *command.Call, d replay.Delivery, o showOptions) error {
	if !o.Reveal {
		d.Body = c.SecretMasker()(d.Body)
	}
	if c.Out.Machine() {
		return c.Out.Object(view.NewRefused(d.Delivery))
	}
	verified, style := verifiedText(inbox.Event{Verified: d.Verified, Reason: d.Reason}, d.ID(), d.Scheme, "")
	effect := "nothing: it was refused and is kept as evidence; `waybill events readmit` verifies it again"
	if err := c.Out.Fields([]render.Field{
		{Name: "ID", Value: d.ID()},
		{Name: "Received", Value: received(c.Out, d.ReceivedAt, d.RemoteAddr, d.Path)},
		{Name: "Verified", Value: verified, Style: style},
		{Name: "Changed", Value: effect},
	}); err != nil || c.Out.IsCSV() {
		return err
	}
	return printBody(c.Out, d.Body)
}
