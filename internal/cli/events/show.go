package events

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/replay"
)

type showOptions struct {
	ID                   string // of an event, or of a refused delivery
	Raw, Headers, Reveal bool
}

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
		Example: command.Example("waybill events show 12", "waybill events show 12 -o json --jq .data", "waybill events show 12 --raw > body.json", "waybill events show 12 --headers"),
		Args:    command.Exactly(1, "an event's number or eventId; `waybill events list` shows them"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.ID = args[0]
			return runShow(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Raw, "raw", false, "the body of its delivery, byte for byte")
	flags.BoolVar(&o.Headers, "headers", false, "the headers of its delivery")
	signature.RevealFlag(cmd, &o.Reveal)
	return cmd
}

func runShow(ctx context.Context, c *command.Call, o showOptions) error {
	switch {
	case o.Raw && o.Headers:
		return command.Usagef("use one of them", "--raw and --headers exclude each other")
	case o.Reveal && o.Raw:
		return command.Usagef("leave it out", "--raw hides nothing")
	case o.Raw:
		return showBody(ctx, c, o.ID)
	case o.Headers:
		return showHeaders(ctx, c, o.ID, o.Reveal)
	}
	return showPage(ctx, c, o.ID, o.Reveal)
}

// findShown returns the delivery of an event, or a refused one.
func findShown(ctx context.Context, s *app.Session, id string) (replay.Delivery, error) {
	in, err := s.Received(ctx)
	if err != nil {
		return replay.Delivery{}, err
	}
	d, err := replay.Find(ctx, in, id)
	if err == nil && d.Body == nil {
		err = &command.ExitError{Code: command.NotFound, Err: fmt.Errorf("event %q: the bytes of its delivery were pruned", id), Hint: "see the remaining data with `waybill events show ID`"}
	}
	return d, err
}

func showBody(ctx context.Context, c *command.Call, id string) error {
	if c.Out.Machine() || c.Out.IsCSV() {
		return command.Usagef("omit --jq and -o; `waybill events export` writes bodies as JSON", "--raw writes bytes as they came, in no other form")
	}
	d, err := findShown(ctx, c.Session, id)
	if err != nil {
		return err
	}
	return c.Out.Bytes(d.Body)
}

func showHeaders(ctx context.Context, c *command.Call, id string, reveal bool) error {
	d, err := findShown(ctx, c.Session, id)
	if err != nil {
		return err
	}
	headers, err := view.MaskedHeaders(c.Session, d.Header, reveal)
	if err != nil {
		return err
	}
	if c.Out.Machine() {
		return c.Out.Object(headers)
	}
	return view.PrintHeaders(c.Out, headers)
}
