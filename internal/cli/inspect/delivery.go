package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Limits of a response about a delivery.
const (
	maxBodyText = 512 << 10 // bytes of a text body
	maxBodyHex  = 16 << 10  // bytes of any other body
	shownEvents = 50        // events
)

// deliveryJSON is a delivery with everything known about it.
type deliveryJSON struct {
	headJSON
	Refused bool   `json:"refused"`
	Query   string `json:"query"`
	Bytes   int    `json:"bytes"`  // of the body
	Pruned  bool   `json:"pruned"` // headers and body are gone
	Scheme  string `json:"scheme"`
	Secret  string `json:"secret"` // name of the secret that matched
	Single  bool   `json:"single"` // the body was one object instead of an array

	Headers    []webhook.Field      `json:"headers"`
	Body       *bodyJSON            `json:"body"` // null once pruned
	Signature  *signatureJSON       `json:"signature"`
	Forwarding []events.Forwarding  `json:"forwarding"`
	Commands   deliveryCommandsJSON `json:"commands"`
	eventsJSON
}

type bodyJSON struct {
	contentJSON
	JSON bool `json:"json"` // it is valid JSON
}

type eventsJSON struct {
	Events     []deliveryEventJSON `json:"events"`
	EventCount int                 `json:"eventCount"` // of the delivery, anomalies included
	Next       *int                `json:"next"`       // where the rest begins, null for none
}

// deliveryEventJSON is an event as in `events show -o json`, without the members of its delivery.
type deliveryEventJSON struct {
	events.Shown
	Data       *struct{} `json:"data,omitempty"`
	Raw        *struct{} `json:"raw,omitempty"`
	Forwarding *struct{} `json:"forwarding,omitempty"`

	Place      int    `json:"place"` // in the body, from 1
	StatusText string `json:"statusText"`
	Tone       string `json:"tone"`
}

type deliveryCommandsJSON struct {
	Show    string         `json:"show"`
	Raw     string         `json:"raw"`
	Explain string         `json:"explain"`
	Readmit string         `json:"readmit,omitempty"` // of a refused delivery
	Learn   string         `json:"learn,omitempty"`   // finds a scheme and writes it to the configuration
	Send    []sendCommands `json:"send"`              // by target
}

type sendCommands struct {
	Target string `json:"target"` // its ID
	Replay string `json:"replay"` // as it came
	Resign string `json:"resign"` // signed anew
	Edited string `json:"edited"` // a copy that was edited and saved as a file
}

type found struct {
	replay.Delivery
	db   *app.Store
	mask view.Masker
}

func (p *Page) find(r *http.Request) (found, error) {
	db, err := p.Call.ExistingStore(r.Context())
	if err != nil {
		return found{}, err
	}
	d, err := replay.Find(r.Context(), db.Received(), r.PathValue("id"))
	if err != nil {
		return found{}, err
	}
	mask, err := view.NewMasker(p.Call.Session)
	return found{d, db, mask}, err
}

func (p *Page) findWhole(r *http.Request) (found, error) {
	f, err := p.find(r)
	if err == nil && f.Body == nil {
		message := fmt.Sprintf("delivery %s: %s", f.ID(), replay.ErrPruned)
		err = failure(http.StatusGone, command.NotFound, message, "its events are still known")
	}
	return f, err
}

func (p *Page) showDelivery(r *http.Request) (any, error) {
	d, err := p.find(r)
	if err != nil {
		return nil, err
	}
	j := deliveryJSON{
		headJSON: newHead(d.Delivery, d.mask), Refused: d.Refused, Query: d.mask.Query(d.RawQuery), Bytes: len(d.Body),
		Pruned: d.Body == nil, Scheme: d.Scheme, Secret: d.SecretName, Single: d.Single,
		Headers: d.mask.Headers(d.Header), Forwarding: []events.Forwarding{}, Commands: p.deliveryCommands(d.Delivery),
		eventsJSON: eventsJSON{Events: []deliveryEventJSON{}},
	}
	if d.Body != nil {
		j.Body = &bodyJSON{content(d.mask, d.Body, maxBodyText, maxBodyHex), json.Valid(d.Body)}
		j.Signature = p.signature(d)
	}
	if d.Refused {
		return j, nil
	}
	if j.Forwarding, err = events.ForwardingsOf(r.Context(), d.db, d.Seq); err != nil {
		return nil, err
	}
	j.eventsJSON, err = p.events(r.Context(), d, 0)
	return j, err
}

func bodyFile(d replay.Delivery) string {
	name := "delivery-"
	if d.Refused {
		name = "refused-"
	}
	name += strconv.FormatInt(d.Seq, 10)
	if json.Valid(d.Body) {
		return name + ".json"
	}
	return name + ".bin"
}

// showEvents returns events of a delivery, starting after the first ?from=N.
func (p *Page) showEvents(r *http.Request) (any, error) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // number of events that the page has already
	d, err := p.find(r)
	if err != nil || d.Refused {
		return eventsJSON{Events: []deliveryEventJSON{}}, err
	}
	return p.events(r.Context(), d, max(from, 0))
}

func (p *Page) events(ctx context.Context, d found, from int) (eventsJSON, error) {
	j := eventsJSON{Events: []deliveryEventJSON{}}
	var rows []inbox.Event
	left := from
	for e, err := range replay.LatestRows(ctx, d.db.Inbox, inbox.Query{Delivery: d.Seq}) {
		if err != nil {
			return j, err
		}
		if left > 0 {
			left--
			continue
		}
		if len(rows) == shownEvents {
			j.Next = new(from + shownEvents)
			break
		}
		rows = append(rows, e)
	}
	all, err := events.ShowEvents(ctx, d.db, d.Delivery.Delivery, rows)
	if err != nil {
		return j, err
	}
	names := view.NewStatusFormatter(p.Call.Config.Statuses)
	for i, shown := range all {
		e := rows[i]
		shown.Path = d.mask.Text(shown.Path)
		j.EventCount = shown.Events
		j.Events = append(j.Events, deliveryEventJSON{
			Shown: shown, Place: e.Index + 1,
			StatusText: names.Status(e.Status, e.StatusLabel, e.StatusTrack),
			Tone:       view.Tone(names.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack)),
		})
	}
	return j, nil
}

func (p *Page) deliveryCommands(d replay.Delivery) deliveryCommandsJSON {
	id := d.ID()
	j := deliveryCommandsJSON{
		Send: []sendCommands{},
		Show: p.Call.CommandLine("events", "show", id), Raw: p.Call.CommandLine("events", "show", id, "--raw"),
		Explain: p.Call.CommandLine("signature", "explain", id),
	}
	if d.Refused {
		j.Readmit = p.Call.CommandLine("events", "readmit", id)
	}
	if d.Verified != inbox.Yes {
		j.Learn = p.learnCommand()
	}
	headers, _ := p.Call.Cmd.Flags().GetStringArray("target-header") // none for a command without the flag
	for i, t := range p.Targets {
		line := func(words ...string) string {
			words = append(words, "--to", forward.ShowAddress(t.URL.String()))
			if p.AllowTarget {
				words = append(words, "--allow-target")
			}
			for _, value := range events.TargetHeadersOf(t, headers) {
				words = append(words, "--target-header", value)
			}
			return p.Call.CommandLine(words...)
		}
		j.Send = append(j.Send, sendCommands{
			targetID(i), line("events", "replay", id), line("events", "replay", id, "--resign"),
			line("events", "send", "--file", "edited.json"),
		})
	}
	return j
}

func (p *Page) learnCommand() string {
	return p.Call.CommandLine("signature", "learn", "--pin", "learned")
}
