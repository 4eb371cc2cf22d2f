package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

type sendOptions struct {
	Target string  `json:"target"` // ID of a target that the command line named
	Sign   *bool   `json:"sign"`   // sign again; null for edited bodies if that is possible, for others not
	Body   *string `json:"body"`   // sent instead of the delivery's own; null for that
}

func readOptions(r *http.Request) (o sendOptions, err error) {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if dec.Decode(&o) != nil {
		err = command.Usagef(`send an object such as {"target":"1","sign":false}`,
			"the request is not a JSON object of target, sign and body")
	}
	return o, err
}

// sentJSON is the result of sending a delivery, as in `events replay -o json`.
type sentJSON struct {
	events.Sent
	Signed    bool     `json:"signed"`    // anew
	Synthetic bool     `json:"synthetic"` // its body was edited: it says that waybill made it up
	Recovered bool     `json:"settled"`   // it had been given up, and is sent now
	Notes     []string `json:"notes"`
}

func targetID(i int) string { return strconv.Itoa(i + 1) }

func (p *Page) target(id string) (forward.Target, error) {
	for i, t := range p.Targets {
		if targetID(i) == id {
			return t, nil
		}
	}
	hint := "use an id of /session"
	if len(p.Targets) == 0 {
		hint = "start the page with a target: `waybill inspect --to URL` or `waybill listen --ui --forward-to URL`"
	}
	return forward.Target{}, command.Usagef(hint, "there is no target %q", id)
}

// send sends a delivery or an edited copy to a target, like `events replay` and `events send`.
func (p *Page) send(r *http.Request) (any, error) {
	o, err := readOptions(r)
	if err != nil {
		return nil, err
	}
	t, err := p.target(o.Target)
	if err != nil {
		return nil, err
	}
	d, err := p.findWhole(r)
	if err != nil {
		return nil, err
	}
	signer, notes, err := p.signer(o)
	if err != nil {
		return nil, err
	}
	withhold, err := p.Call.SecretMatcher()
	if err != nil {
		return nil, err
	}
	kind, item := "replay", replay.Item{ID: d.ID(), To: t.URL, Attempt: 1}
	sender := &replay.Sender{Inbox: d.db.Inbox, Outbox: d.db.Outbox, Withhold: withhold, Sign: signer.Sign}
	sender.Headers = map[string][]webhook.Field{t.URL.String(): t.Headers}
	if o.Body != nil {
		kind, sender.Edit = "send", func(d inbox.Delivery) (inbox.Delivery, error) {
			return signer.WithBody(p.Call.Session, d, []byte(*o.Body)), nil
		}
		if !json.Valid([]byte(*o.Body)) {
			notes = append(notes, "the body is not JSON, and was sent as it is")
		}
	} else if item.Entry, err = p.deadEntry(r.Context(), d, t); err != nil {
		return nil, err
	} else if item.Entry != nil {
		item.Attempt = max(item.Entry.Attempt, item.Entry.Failures, 1)
	}
	if o.Body == nil && d.Verified != inbox.Yes {
		notes = append(notes, "not verified: delivery "+d.ID())
	}
	sender.Items = []replay.Item{item}
	res, err := p.sendOne(r.Context(), sender)
	if err != nil {
		return nil, err
	}
	j := sentJSON{Sent: events.NewSent(kind, res), Signed: signer != nil, Notes: notes}
	j.Synthetic = o.Body != nil || d.IsSynthetic()
	j.Target = t.Show()
	if o.Body == nil {
		j.DeliveryName, j.Attempt = view.NewDeliveryName(d.ID()), item.Attempt+1
		if err := sender.RecordAttempt(r.Context(), res); err != nil {
			j.Notes = append(j.Notes, "the result could not be stored: "+p.explain(err).Message)
		} else {
			j.Recovered = item.Entry != nil && j.Problem == "" && forward.Problem(res.Answer, res.Err) == ""
		}
	}
	return j, nil
}

// sendOne sends one delivery. It returns an error if there was no attempt or ctx has ended.
func (p *Page) sendOne(ctx context.Context, sender *replay.Sender) (result forward.Result, err error) {
	_, err = forward.Series{
		Client: p.client, Gate: pace.New(1, 0), Expect: forward.Statuses{"2xx"}, Load: sender.Load,
		OnResult: func(r forward.Result) error { result = r; return nil },
	}.Run(ctx, ctx, 1)
	if errors.Is(err, forward.ErrForbidden) {
		const hint = "start the page with --allow-target if this is intended"
		err = failure(http.StatusForbidden, command.Usage, err.Error(), hint)
	}
	return result, err
}

// signer returns the signer for a delivery, or nil for no signature, and notes about it.
func (p *Page) signer(o sendOptions) (*events.Signer, []string, error) {
	required := o.Sign != nil && *o.Sign
	if !required && (o.Sign != nil || o.Body == nil) {
		return nil, []string{}, nil
	}
	signer, err := events.NewSigner(p.Call.Session, "")
	if err != nil && !required {
		return nil, []string{"not signed: " + p.explain(err).Message}, nil
	}
	return signer, []string{}, err
}

// deadEntry returns the outbox entry of a delivery that was given up at a target, or nil. A new attempt updates it.
func (p *Page) deadEntry(ctx context.Context, d found, t forward.Target) (*inbox.OutboxEntry, error) {
	if d.Refused || d.Verified != inbox.Yes {
		return nil, nil //nolint:nilnil // nothing to update
	}
	all, err := d.db.Forwardings.ForwardingsOf(ctx, d.Seq)
	for _, f := range all {
		if f.Sink.Name == forward.SinkName && f.Sink.URL == t.URL.String() && f.Waiting != nil &&
			!f.Waiting.GivenUpAt.IsZero() {
			return &f.Waiting.OutboxEntry, err
		}
	}
	return nil, err
}

// maxInlineBody is the maximum size of a body within a command. Linux allows 128 KiB, and a quote takes four bytes.
const maxInlineBody = 32 << 10

type curlJSON struct {
	Command string   `json:"command"`
	File    string   `json:"file"` // name of the download that it reads the body from; empty if it has the body
	Notes   []string `json:"notes"`
}

type curlCommand struct {
	words []string
	curlJSON
}

func (p *Page) curl(r *http.Request) (any, error) {
	d, err := p.findWhole(r)
	if err != nil {
		return nil, err
	}
	c := curlCommand{curlJSON: curlJSON{Notes: []string{}}}
	var t forward.Target
	if id := r.URL.Query().Get("target"); id != "" {
		t, err = p.target(id)
	} else if t.URL, err = forward.ParseURL("3000"); err == nil {
		c.note("replace http://127.0.0.1:3000 by the address of your endpoint")
	}
	if err != nil {
		return nil, err
	}
	withhold, err := p.Call.SecretMatcher()
	if err != nil {
		return nil, err
	}
	plain := d.Delivery.Delivery
	plain.Seq = 0 // omits the headers that waybill adds
	m, err := forward.BuildMessage(plain, t.URL, 0, withhold)
	if err != nil {
		return nil, err
	}
	c.words = []string{"curl", "--request", m.Method}
	c.addHeaders(curlHeaders(d, m, t, withhold))
	c.addBody(d)
	c.addURL(d, t, m)
	c.Command = shell.Line(c.words...)
	return c.curlJSON, nil
}

func (c *curlCommand) note(text string) {
	if !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

// curlHeaders returns the headers of a message and those withheld from the target, credentials masked.
func curlHeaders(d found, m webhook.Request, t forward.Target, withhold func(webhook.Field) bool) []webhook.Field {
	fields := m.Header
	for _, f := range d.Header {
		if strings.EqualFold(f.Name, "Authorization") || strings.EqualFold(f.Name, "Cookie") || withhold(f) {
			fields = append(fields, webhook.Field{Name: f.Name, Value: webhook.Mask})
		}
	}
	own := slices.Clone(t.Headers)
	for i := range own {
		own[i].Value = webhook.Mask
	}
	fields = forward.ReplaceHeaders(webhook.Request{Header: fields}, own).Header
	return d.mask.Headers(fields)
}

func (c *curlCommand) addHeaders(headers []webhook.Field) {
	for _, name := range []string{"Accept", "Content-Type", "User-Agent"} {
		if !slices.ContainsFunc(headers, func(h webhook.Field) bool { return strings.EqualFold(h.Name, name) }) {
			c.words = append(c.words, "--header", name+":")
		}
	}
	for _, h := range headers {
		switch {
		case term.Visible(h.Value) != h.Value:
			c.note("left out: " + h.Name + ", which has characters that can't be typed")
			continue
		case h.Value == "":
			c.words = append(c.words, "--header", h.Name+";")
			continue
		case strings.Contains(h.Value, webhook.Mask):
			c.note("replace " + webhook.Mask + " by what is masked")
		}
		c.words = append(c.words, "--header", h.Name+": "+h.Value)
	}
}

func (c *curlCommand) addBody(d found) {
	text := string(d.Body)
	switch hidden := string(d.mask.JSON(json.RawMessage(d.Body))) != text || d.mask.Text(text) != text; {
	case hidden, len(text) > maxInlineBody, strings.Contains(text, "\t"), term.VisibleText(text) != text,
		runtime.GOOS == "windows": // PowerShell changes quotes in words of programs
		c.File = bodyFile(d.Delivery)
		c.words = append(c.words, "--header", "Expect:", "--data-binary", "@"+c.File)
		c.note("download the body first: the command reads it from " + c.File)
	case strings.HasPrefix(text, "@"):
		c.words = append(c.words, "--data-raw", text) // like --data-binary, but a leading @ names no file
	default:
		c.words = append(c.words, "--data-binary", text)
	}
}

// addURL adds the target's URL, with possible tokens masked.
func (c *curlCommand) addURL(d found, t forward.Target, m webhook.Request) {
	address := forward.ShowURL(t.URL)
	if t.URL.EscapedPath() == "" {
		address += d.mask.Text(m.Path)
	}
	var queries []string
	if t.URL.RawQuery != "" {
		queries = append(queries, webhook.Mask)
	}
	if d.RawQuery != "" {
		queries = append(queries, d.mask.Query(d.RawQuery))
	}
	if len(queries) > 0 {
		address += "?" + strings.Join(queries, "&")
	}
	if strings.Contains(address, webhook.Mask) {
		c.note("replace " + webhook.Mask + " by what is masked")
	}
	if strings.ContainsAny(address, "[]{}") {
		c.words = append(c.words, "--globoff")
	}
	if strings.Contains(address, "/.") {
		c.words = append(c.words, "--path-as-is")
	}
	c.words = append(c.words, term.Visible(address))
}
