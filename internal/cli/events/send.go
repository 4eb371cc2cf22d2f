package events

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const (
	maxSynthetic = 1_000_000
	setHint      = "/data/detail/trackingEvents/0/eventCity is a place in an event"
)

// seededTime is the time of made-up events if --seed is given and --at is not.
const seededTime = "2026-01-01T00:00:00Z"

type sendOptions struct {
	sendingOptions

	Event, Number, File, At string
	Count                   int
}

func newSend(f *command.Factory) *cobra.Command {
	const toHook = "waybill events send --to http://127.0.0.1:3000/hook"
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send",
		Short: "Send made-up events to an endpoint",
		Long: `send makes up events in the service's form and sends each as a delivery, signed by
the configured scheme or --scheme with the first webhook secret; without a scheme
they are not signed. They are sent to --to, or without it to the listener that runs
on this store and this computer. The same --seed and --at make the same bytes. The
interface shows router.delivered only: the data of other kinds is invented, and
--set replaces it.

Deliveries of send have the header ` + inbox.HeaderSynthetic + `, also with --file. A
waybill that receives them marks their events as made up: they change no tracking,
and neither wait nor events wait counts them.

--file sends the bytes of a file instead: one body, or captured deliveries as JSON
Lines, which are sent with their headers and signed again if there is a scheme. With
--set their events are changed.

` + sendingHelp,
		Example: command.Example("waybill events send", toHook,
			toHook+" --tracking-number N1 --set /data/summary/latestEvent=Delivered",
			toHook+" --count 100 --duplicate 1 --reorder --seed 7", toHook+" --file body.json --scheme hmac-body-hex"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runSend(ctx, c, o) }),
	}
	flags := cmd.Flags()
	const toUsage = "send to `URL`, or a port of this computer (default the listener that runs on this store)"
	flags.StringVar(&o.To, "to", "", toUsage)
	flags.StringVar(&o.Event, "event", webhook.KindDelivered, "events of this `KIND`")
	const numberUsage = "events of this tracking number `N` (default one of its own for each)"
	flags.StringVar(&o.Number, "tracking-number", "", numberUsage)
	setFlag(cmd, &o.Set)
	flags.StringVar(&o.At, "at", "", "event `TIME` in RFC 3339 (default now; with --seed "+seededTime+")")
	flags.IntVar(&o.Count, "count", 1, "make up `N` events")
	flags.StringVar(&o.File, "file", "", "send the bytes of `FILE` (- for standard input): a body, or captured deliveries")
	o.flags(cmd)
	return cmd
}

func (o sendOptions) synthetic(cmd *cobra.Command, seed uint64) (m webhook.SyntheticEvents, err error) {
	m = webhook.SyntheticEvents{Kind: o.Event, Number: o.Number, At: time.Now().Truncate(time.Millisecond), Seed: seed}
	at := o.At
	if at == "" && cmd.Flags().Changed("seed") {
		at = seededTime
	}
	if at != "" {
		if m.At, err = time.Parse(time.RFC3339, at); err != nil {
			return m, command.Usagef("write it as "+seededTime, "--at %q is not a time", o.At)
		}
	}
	if o.Count < 1 || o.Count > maxSynthetic {
		return m, command.Usagef(fmt.Sprintf("from 1 to %d", maxSynthetic), "--count %d is out of bounds", o.Count)
	}
	if m.Set, err = o.parseSet(); err != nil {
		return m, err
	}
	if _, err := m.Body(0); err != nil {
		return m, command.Usagef(setHint, "--set: %w", err)
	}
	return m, nil
}

func runSend(ctx context.Context, c *command.Call, o sendOptions) error {
	to, err := o.target()
	if err != nil {
		return err
	}
	if to == nil {
		if to, err = runningListener(ctx, c); err != nil {
			return err
		}
	}
	k, err := newSending(c, o.sendingOptions)
	if err != nil {
		return err
	}
	defer k.Client.Close()
	targets := []forward.Target{{URL: to}}
	if err := AddTargetHeaders(c, o.Headers, targets); err != nil {
		return err
	}
	headers := map[string][]webhook.Field{to.String(): targets[0].Headers}
	p := &sample{to: to, count: o.Count, sender: replay.Sender{Headers: headers}}
	if err := p.load(ctx, c, o, k.Faults.Seed); err != nil {
		return err
	}
	signer, err := k.signerIfAny()
	if err != nil {
		return err
	}
	p.sender.Sign = signer.Sign
	if o.To != "" {
		c.IO.Note("Sending to %s", targets[0].Show())
	}
	WarnUnencrypted(c.IO, targets)
	k.kind, k.Load = "send", p.request
	k.fill = func(j *Sent, _ int) { j.EventID = p.eventID }
	at := ""
	if o.File == "" {
		at = p.synthetic.At.UTC().Format(time.RFC3339Nano)
	}
	k.noteSeed(at)
	return k.run(ctx, p.count)
}

type sample struct {
	to        *url.URL
	sender    replay.Sender
	synthetic webhook.SyntheticEvents
	captured  []webhook.Sample // sent instead of made-up events
	count     int

	eventID string // of the first event of the last delivery sent
}

func (p *sample) load(ctx context.Context, c *command.Call, o sendOptions, seed uint64) (err error) {
	if p.sender.Withhold, err = c.SecretMatcher(); err != nil {
		return err
	}
	if o.File == "" {
		p.synthetic, err = o.synthetic(c.Cmd, seed)
		if err == nil && p.synthetic.Kind != webhook.KindDelivered {
			c.IO.Note("The interface shows %s only: the status and names in these events are invented; --set changes them",
				webhook.KindDelivered)
		}
		return err
	}
	for _, name := range []string{"event", "tracking-number", "at", "count"} {
		if c.Cmd.Flags().Changed(name) {
			return command.Usagef("leave one of them out; --duplicate sends a file's deliveries several times",
				"--file can't be combined with --%s, which makes up events", name)
		}
	}
	data, err := signature.ReadDeliveryFile(ctx, c.Session, o.File)
	if err != nil {
		return err
	}
	if p.captured, err = webhook.ParseCaptures(data); err == nil && len(p.captured) > 0 {
		name := strings.Replace(o.File, command.StdinName, "standard input", 1)
		c.IO.Note("%s: %s", name, command.Plural(len(p.captured), "captured delivery"))
	} else {
		if len(bytes.TrimSpace(data)) == 0 {
			c.IO.Warning("%s is empty, and so is the body", o.File)
		}
		body := append([]byte{}, data...) // not nil, which would mean a pruned body
		single := webhook.Request{Method: "POST", Header: defaultHeader(), Body: body}
		p.captured = []webhook.Sample{{Request: single}}
	}
	p.count = len(p.captured)
	set, err := o.parseSet()
	if err != nil || len(set) == 0 {
		return err
	}
	for i := range p.captured {
		if p.captured[i].Body, err = webhook.SetMembers(p.captured[i].Body, set); err != nil {
			return command.Usagef(setHint, "%s: --set: %w", o.File, err)
		}
	}
	return nil
}

func defaultHeader() []webhook.Field {
	agent := webhook.Field{Name: "User-Agent", Value: buildinfo.UserAgent()}
	return []webhook.Field{{Name: "Content-Type", Value: "application/json"}, agent}
}

// signer returns the signer, and sets the scheme whose signatures --corrupt-signature alters.
func (k *sending) signer() (*Signer, error) {
	g, err := NewSigner(k.call.Session, k.options.Scheme)
	if err == nil {
		k.Scheme = g.scheme
	}
	return g, err
}

// signerIfAny is signer, but without a scheme it prints a note and returns nil, which leaves deliveries as they are.
func (k *sending) signerIfAny() (*Signer, error) {
	switch {
	case k.options.Scheme != "" || k.call.Config.Webhook.Scheme != "":
		return k.signer()
	case k.Faults.Corrupt:
		return nil, command.Usagef("give --scheme NAME; `waybill signature schemes` shows what there is",
			"no signature scheme is set, so there is nothing to corrupt")
	}
	k.call.IO.Note("No signature scheme is set: nothing is signed; --scheme NAME signs")
	return nil, nil //nolint:nilnil // nil leaves deliveries as they are
}

func (p *sample) request(_ context.Context, step forward.Sending) (forward.Request, error) {
	d := inbox.Delivery{Method: "POST", Header: defaultHeader()}
	if p.captured != nil {
		g := p.captured[step.Index]
		d = inbox.Delivery{Method: g.Method, Path: g.Path, RawQuery: g.RawQuery, Header: g.Header, Body: g.Body}
	} else {
		var err error
		if d.Body, err = p.synthetic.Body(step.Index); err != nil {
			return forward.Request{URL: p.to}, err
		}
	}
	p.eventID = ""
	rows := webhook.Decode(d.Body).Rows
	if i := slices.IndexFunc(rows, func(r webhook.Row) bool { return !r.Part }); i >= 0 {
		p.eventID = rows[i].EventID
	}
	d.Path = cmp.Or(d.Path, "/")
	return p.sender.Build(d.MadeUp(), p.to, 0)
}
