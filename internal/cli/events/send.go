package events

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// mostMade is how many events one command makes up.
const mostMade = 1_000_000

// seededTime is when made-up events happened if a seed is given and no time.
const seededTime = "2026-01-01T00:00:00Z"

type sendOptions struct {
	sendingOptions

	Event, Number, File, At string
	Set                     []string
	Count                   int
}

func newSend(f *command.Factory) *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send --to URL",
		Short: "Send made-up events to an endpoint",
		Long: `send makes up events in the service's form and sends them as deliveries of one each,
signed by the configured scheme or --scheme with the first webhook secret; without
a scheme they go unsigned. With the same --seed and --at they are the same, byte
for byte. The interface shows router.delivered only: what events of another kind
hold is invented, and --set puts what you expect in its place.

--file sends the bytes of a file instead: one body, or captured deliveries as JSON
Lines, which go with their headers and are signed anew if there is a scheme.

` + sendingHelp,
		Example: command.Example("waybill events send --to http://127.0.0.1:3000/hook", "waybill events send --to http://127.0.0.1:3000/hook --tracking-number N1 --set /data/summary/latestEvent=Delivered",
			"waybill events send --to http://127.0.0.1:3000/hook --count 100 --duplicate 1 --reorder --seed 7", "waybill events send --to http://127.0.0.1:3000/hook --file body.json --scheme hmac-body-hex"),
		Args: cobra.NoArgs,
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error {
			return runSend(ctx, c, o)
		}),
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.To, "to", "", "send to `URL`")
	flags.StringVar(&o.Event, "event", webhook.KindDelivered, "events of this `KIND`")
	flags.StringVar(&o.Number, "tracking-number", "", "events of this tracking number `N` (default one of its own for each)")
	flags.StringArrayVar(&o.Set, "set", nil, "set a value in each event, `/POINTER=VALUE`: JSON, else a text; may be repeated")
	flags.StringVar(&o.At, "at", "", "when they happened, a `TIME` in RFC 3339 (default now; with --seed "+seededTime+")")
	flags.IntVar(&o.Count, "count", 1, "make up `N` events")
	flags.StringVar(&o.File, "file", "", "send the bytes of `FILE` (- for standard input): a body, or captured deliveries")
	o.flags(cmd)
	return cmd
}

// made reads what the events are like.
func (o sendOptions) made(cmd *cobra.Command, seed uint64) (webhook.SyntheticEvents, error) {
	m := webhook.SyntheticEvents{Kind: o.Event, Number: o.Number, At: time.Now().Truncate(time.Millisecond), Seed: seed}
	at := o.At
	if at == "" && cmd.Flags().Changed("seed") {
		at = seededTime
	}
	if at != "" {
		var err error
		if m.At, err = time.Parse(time.RFC3339, at); err != nil {
			return m, command.Usagef("write it as "+seededTime, "--at %q is not a time", o.At)
		}
	}
	if o.Count < 1 || o.Count > mostMade {
		return m, command.Usagef(fmt.Sprintf("from 1 to %d", mostMade), "--count %d is out of bounds", o.Count)
	}
	for _, text := range o.Set {
		c, err := webhook.ParseChange(text)
		if err != nil {
			return m, command.Usagef("such as --set '/data/summary/latestEvent=Out for delivery'", "--set: %w", err)
		}
		m.Set = append(m.Set, c)
	}
	if _, err := m.Body(0); err != nil {
		return m, command.Usagef("/data/detail/trackingEvents/0/eventCity is a place in an event", "--set: %w", err)
	}
	return m, nil
}

func runSend(ctx context.Context, c *command.Call, o sendOptions) error {
	to, err := o.target()
	if err != nil {
		return err
	}
	if to == nil {
		return command.Usagef("such as --to http://127.0.0.1:3000/hook", "there is nothing to send to")
	}
	k, err := newSending(c, o.sendingOptions)
	if err != nil {
		return err
	}
	defer k.Client.Close()
	target := []forward.Target{{URL: to}}
	if err := GiveHeaders(c, o.Headers, target); err != nil {
		return err
	}
	p := &posting{to: to, headers: target[0].Headers, count: o.Count}
	if err := p.load(ctx, c.Session, c.Cmd, o, k.Faults.Seed); err != nil {
		return err
	}
	if err := p.signs(c.Session, o.Scheme, o.Corrupt); err != nil {
		return err
	}
	if p.sign != nil {
		k.Scheme = p.sign.scheme
	}
	warnClear(c.Session, []replay.Item{{To: to}})
	k.kind, k.Load = "send", p.parcel
	k.label = func(int) string { return p.label() }
	k.json = func(j *sentJSON, _ int) { j.EventID = p.eventID }
	set := map[string]string{"seed": strconv.FormatUint(k.Faults.Seed, 10)}
	if o.File == "" {
		set["at"] = p.made.At.UTC().Format(time.RFC3339Nano)
	}
	switch chance := o.Reorder || o.Corrupt || k.Faults.Drop > 0 || k.Faults.Delay > 0; {
	case c.Cmd.Flags().Changed("seed"):
	case o.File == "":
		c.IO.Note("--seed %d --at %s repeats this run", k.Faults.Seed, set["at"])
	case chance:
		c.IO.Note("--seed %d repeats this run", k.Faults.Seed)
	}
	k.again = func(next int) string {
		set["skip"] = strconv.Itoa(next)
		return anew(c, nil, set)
	}
	return k.run(ctx, p.count)
}

// posting makes up deliveries, or takes them from a file.
type posting struct {
	to       *url.URL
	headers  []webhook.Field // that the target gets
	sign     *signer
	made     webhook.SyntheticEvents
	given    []webhook.Sample // instead of made ones
	count    int
	withhold func(webhook.Field) bool

	eventID string // of the first event of what was sent last
}

// load reads what is to be sent.
func (p *posting) load(ctx context.Context, s *app.Session, cmd *cobra.Command, o sendOptions, seed uint64) error {
	var err error
	if p.withhold, err = s.SecretMatcher(); err != nil {
		return err
	}
	if o.File == "" {
		p.made, err = o.made(cmd, seed)
		if err == nil && p.made.Kind != webhook.KindDelivered {
			s.IO.Note("the interface shows %s only: the status and names in these events are invented; --set replaces them", webhook.KindDelivered)
		}
		return err
	}
	for _, name := range []string{"event", "tracking-number", "set", "at", "count"} {
		if cmd.Flags().Changed(name) {
			return command.Usagef("leave one of them out; --duplicate sends a file's deliveries several times", "--file sends what it holds, and --%s makes events up", name)
		}
	}
	data, err := signature.ReadDeliveryFile(ctx, s, o.File)
	if err != nil {
		return err
	}
	if p.given, err = webhook.ParseCaptures(data); err == nil && len(p.given) > 0 {
		p.count = len(p.given)
		s.IO.Note("%s holds %s captured before", o.File, view.Deliveries(p.count))
		return nil
	}
	if len(bytes.TrimSpace(data)) == 0 {
		s.IO.Warning("%s is empty, and so is the body", o.File)
	}
	p.given, p.count = []webhook.Sample{{Request: webhook.Request{Method: "POST", Header: plainHeader(), Body: data}}}, 1
	if data == nil {
		p.given[0].Body = []byte{}
	}
	return nil
}

// plainHeader is what a delivery has beside its signature.
func plainHeader() []webhook.Field {
	return []webhook.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "User-Agent", Value: buildinfo.UserAgent()}}
}

// signs sets the signer; without a scheme deliveries go as they are, and that
// is said.
func (p *posting) signs(s *app.Session, named string, corrupt bool) error {
	if named == "" && s.Config.Webhook.Scheme == "" {
		if corrupt {
			return command.Usagef("give --scheme NAME; `waybill signature schemes list` shows what there is", "no signature scheme is set, so there is nothing to corrupt")
		}
		s.IO.Note("no signature scheme is set: nothing is signed; --scheme NAME signs")
		return nil
	}
	var err error
	p.sign, err = newSigner(s, named)
	return err
}

// parcel makes one delivery.
func (p *posting) parcel(_ context.Context, step forward.Sending) (forward.Request, error) {
	parcel := forward.Request{URL: p.to}
	d := inbox.Delivery{Method: "POST", Header: plainHeader()}
	if p.given != nil {
		g := p.given[step.Index]
		d = inbox.Delivery{Method: g.Method, Path: g.Path, RawQuery: g.RawQuery, Header: g.Header, Body: g.Body}
	} else {
		var err error
		if d.Body, err = p.made.Body(step.Index); err != nil {
			return parcel, err
		}
	}
	p.eventID = ""
	if b := webhook.Decode(d.Body); len(b.Events) > 0 {
		p.eventID = b.Events[0].ID
	}
	if d.Path == "" {
		d.Path = "/"
	}
	m, err := forward.BuildMessage(d, p.to, 0, p.withhold)
	if err != nil {
		return parcel, err
	}
	m, err = p.sign.sign(m)
	parcel.Message = forward.ReplaceHeaders(m, p.headers)
	return parcel, err
}

// label is what was sent last, for people.
func (p *posting) label() string {
	if p.eventID == "" {
		return "a body"
	}
	return "event " + p.eventID
}
