package events

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type exportOptions struct {
	IDs                     []string // empty for all that match
	Since, Filter, Verified string
	After                   string
}

func newExport(f *command.Factory) *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export [ID...]",
		Short: "Write deliveries as JSON Lines",
		Long: `export writes stored deliveries as JSON Lines, oldest first: time of receipt,
method, path, query, headers in their order, and body (binary bodies as base64).
"waybill events import" and "waybill signature learn --from" read them. Without an
ID, export writes all deliveries that were not pruned; with --filter, those with a
matching event. --after ID reads on from the last delivery that was exported before:
ID is the "delivery" of its line. Headers are written as the sender sent them, including tokens.

` + signature.DeliveryHelp,
		Example: command.Example("waybill events export --out captures.jsonl", "waybill events export 3 refused:1", "waybill events export --since 24h --filter event=router.delivered > fixture.jsonl"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, args []string) error {
			o.IDs = args
			return runExport(ctx, c, o)
		}),
	}
	sinceFlag(cmd, &o.Since)
	afterFlag(cmd, &o.After)
	filterFlag(cmd, &o.Filter)
	verifiedFlag(cmd, &o.Verified)
	return cmd
}

type exporter struct {
	in       replay.Inbox
	since    time.Time
	after    int64 // number of the last delivery that is left out
	filter   forward.Filter
	filtered bool
	verified inbox.Verified
	write    func(webhook.Capture) error

	written, pruned int64
}

func runExport(ctx context.Context, call *command.Call, o exportOptions) error {
	if call.Out.IsCSV() {
		return command.Usagef("omit -o "+string(call.Out.Format()), "deliveries are exported as JSON Lines")
	}
	if len(o.IDs) > 0 && (o.Since != "" || o.After != "" || o.Filter != "" || o.Verified != "") {
		return command.Usagef("choose one of them", "IDs and --since, --after, --filter or --verified exclude each other")
	}
	e := exporter{filtered: o.Filter != "", verified: inbox.Verified(o.Verified)}
	var err error
	if e.since, err = command.ParseSince("--since", o.Since); err != nil {
		return err
	}
	if e.after, _, err = parseAfter(o.After); err != nil {
		return err
	}
	if e.filter, err = parseFilter(call, o.Filter); err != nil {
		return err
	}
	if e.in, err = call.Received(ctx); err != nil {
		return err
	}
	call.Out.Whole()
	list := call.Out.BeginList()
	e.write = func(c webhook.Capture) error { return list.Add(c) }
	if err := errors.Join(e.exportAll(ctx, o.IDs), list.Close()); err != nil {
		return err
	}
	if e.pruned > 0 {
		call.IO.Warning("%s skipped: bytes were pruned", command.Plural(e.pruned, "delivery"))
	}
	call.IO.Note("%s exported", command.Plural(e.written, "delivery"))
	return nil
}

func (e *exporter) exportAll(ctx context.Context, ids []string) error {
	if len(ids) > 0 {
		for _, id := range ids {
			d, err := replay.FindWhole(ctx, e.in, id)
			if err != nil {
				return err
			}
			if err := e.export(d); err != nil {
				return err
			}
		}
		return nil
	}
	return command.Each(replay.Deliveries(ctx, e.in, false), func(d replay.Delivery) error {
		if d.Seq <= e.after || d.ReceivedAt.Before(e.since) || e.verified != "" && d.Verified != e.verified {
			return nil
		}
		if e.filtered {
			if ok, err := e.matches(ctx, d.Seq); err != nil || !ok {
				return err
			}
		}
		return e.export(d)
	})
}

func (e *exporter) matches(ctx context.Context, delivery int64) (bool, error) {
	for ev, err := range e.in.Events(ctx, inbox.Query{Delivery: delivery}) {
		if err != nil || ev.Mark != inbox.Anomaly && e.filter.Match(ev) {
			return err == nil, err
		}
	}
	return false, nil
}

func (e *exporter) export(d replay.Delivery) error {
	if d.Body == nil {
		e.pruned++
		return nil
	}
	e.written++
	return e.write(d.Capture())
}
