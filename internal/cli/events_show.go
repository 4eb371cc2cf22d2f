package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type showEventOptions struct {
	Raw, Headers, Reveal bool
}

func (r *runner) shownEvent() *cobra.Command {
	var o showEventOptions
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one event with all its data",
		Long: `ID is an event's seq or eventId, as events list shows them. A text of the event
that holds a webhook secret shows as *** without --reveal.

--raw writes the body of the delivery it came with, byte for byte; to a
terminal with control characters made visible. --headers writes the delivery's
headers in their order; credentials show as *** without --reveal. With these
two, refused:N names a refused delivery.`,
		Example: example("waybill events show 12", "waybill events show 12 -o json --jq .data", "waybill events show 12 --raw > body.json", "waybill events show 12 --headers"),
		Args:    exactly(1, "an event's seq or eventId; `waybill events list` shows them"),
		RunE: r.run(func(ctx context.Context, s *app.Session, args []string) error {
			switch {
			case o.Raw && o.Headers:
				return usagef("ask for one after the other", "--raw and --headers exclude each other")
			case o.Reveal && o.Raw:
				return usagef("leave it out", "--raw hides nothing")
			case o.Raw:
				return r.showBody(ctx, s, args[0])
			case o.Headers:
				return r.showHeaders(ctx, s, args[0], o.Reveal)
			}
			return r.showEvent(ctx, s, args[0], o.Reveal)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Raw, "raw", false, "the body of its delivery, byte for byte")
	f.BoolVar(&o.Headers, "headers", false, "the headers of its delivery")
	f.BoolVar(&o.Reveal, "reveal", false, "show credentials in clear")
	return cmd
}

// shownStored returns the delivery of an event, or a refused one.
func shownStored(ctx context.Context, s *app.Session, id string) (app.Stored, error) {
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return app.Stored{}, err
	}
	if strings.HasPrefix(id, app.RefusedPrefix) {
		return app.NamedDelivery(ctx, db, id)
	}
	e, err := shownIn(ctx, db, id)
	if err != nil {
		return app.Stored{}, err
	}
	d, err := db.Delivery(ctx, e.Delivery)
	if err == nil && d.Body == nil {
		err = &outcomeError{code: NotFound, err: fmt.Errorf("event %q: the bytes of its delivery were pruned", id), hint: "`waybill events show` tells what was kept"}
	}
	return app.Stored{Delivery: d}, err
}

// shownIn finds an event that is to be shown in a store that may be missing.
func shownIn(ctx context.Context, db *store.DB, id string) (inbox.Event, error) {
	err := inbox.ErrNoEvent
	var e inbox.Event
	if db != nil {
		e, err = findEvent(ctx, db, id)
	}
	if err != nil {
		if errors.Is(err, inbox.ErrNoEvent) {
			err = inbox.ErrNoEvent // the ID is said already
		}
		return e, fmt.Errorf("event %q: %w", id, err)
	}
	return e, nil
}

func (r *runner) showBody(ctx context.Context, s *app.Session, id string) error {
	if r.out.machine() || r.out.csv() {
		return usagef("ask with -o table and without --jq; `waybill events export` writes bodies as JSON", "--raw writes bytes as they came, in no other form")
	}
	d, err := shownStored(ctx, s, id)
	if err != nil {
		return err
	}
	return r.out.bytes(d.Body)
}

func (r *runner) showHeaders(ctx context.Context, s *app.Session, id string, reveal bool) error {
	d, err := shownStored(ctx, s, id)
	if err != nil {
		return err
	}
	headers, err := maskedHeaders(s, d.Header, reveal)
	if err != nil {
		return err
	}
	if r.out.machine() {
		return r.out.object(headers)
	}
	return r.out.headers(headers)
}

// maskedHeaders returns headers with credentials hidden, unless revealed: known
// secrets wherever they are, what a scheme of tokens reads, and what is named
// like a credential. Of schemes the one in force is taken, and others.
func maskedHeaders(s *app.Session, header []webhook.Field, reveal bool, others ...webhook.Scheme) ([]headerJSON, error) {
	if reveal {
		return mask(header, nil, true), nil
	}
	secrets, err := knownSecrets(s)
	if err != nil {
		return nil, err
	}
	if name := s.Config.Webhook.Scheme; name != "" {
		if scheme, err := s.Scheme(name); err == nil {
			others = append(others, scheme)
		}
	}
	tokens := map[string]bool{}
	for _, scheme := range others {
		secrets = scheme.InClear(secrets)
		if scheme.Kind == webhook.KindToken {
			tokens[strings.ToLower(strings.TrimPrefix(scheme.Signature.From, "header:"))] = true
		}
	}
	shown := mask(header, secrets, false)
	for i, h := range shown {
		if credential(h.Name) || tokens[strings.ToLower(h.Name)] {
			shown[i].Value = webhook.Masked
		}
	}
	return shown, nil
}

// knownSecrets returns the webhook secrets and the API key, as far as there
// are any.
func knownSecrets(s *app.Session) ([]webhook.Secret, error) {
	all, err := s.AnyWebhookSecrets()
	if err != nil {
		return nil, err
	}
	if key, ok := s.APIKeySecret(); ok {
		all = append(all, key)
	}
	return all, nil
}

// credential reports whether a header is named like one that holds a credential.
func credential(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func (r *runner) showEvent(ctx context.Context, s *app.Session, id string, reveal bool) error {
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return err
	}
	e, err := shownIn(ctx, db, id)
	if err != nil {
		return err
	}
	if !reveal {
		e = hidden(e, s.Hide())
	}
	if r.out.machine() {
		j := newEventJSON(e)
		j.Raw = e.Raw
		return r.out.object(j)
	}
	if r.out.csv() {
		return r.eventListing(s, "").print(s.IO, func(yield func(inbox.Event, error) bool) { yield(e, nil) })
	}
	err = r.out.fields([]render.Field{
		{Name: "Seq", Value: fmt.Sprint(e.Seq)},
		{Name: "Delivery", Value: fmt.Sprint(e.Delivery)},
		{Name: "Event ID", Value: e.EventID},
		{Name: "Event", Value: e.Kind},
		{Name: "Number", Value: e.TrackingNumber},
		{Name: "Status", Value: newNames(s.Config.Statuses).status(e.Status, e.StatusLabel, e.StatusTrack)},
		{Name: "Event time", Value: e.EventTime},
		{Name: "Received", Value: render.LocalTime(e.ReceivedAt)},
		{Name: "Verified", Value: verifiedMark(e)},
		{Name: "Mark", Value: markType(e.Mark)},
		{Name: "Anomaly", Value: e.Anomaly},
	})
	if err != nil {
		return err
	}
	if e.Raw == nil {
		s.IO.Note("its bytes were pruned; this is what was kept")
		return nil
	}
	if err := r.out.line(""); err != nil {
		return err
	}
	return r.out.raw(e.Raw)
}
