package inspect

import (
	"bytes"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/pace"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Rows of a response: default and maximum.
const (
	defaultRows = 100
	maxRows     = 500
)

// headJSON holds the members that a row of the list and a delivery share.
type headJSON struct {
	ID            string         `json:"id"`       // refused:N of a refused one
	Delivery      int64          `json:"delivery"` // its number
	ReceivedAt    time.Time      `json:"receivedAt"`
	From          string         `json:"from"`
	Method        string         `json:"method"`
	Path          string         `json:"path"`
	Verified      inbox.Verified `json:"verified"`
	Authenticated bool           `json:"bodyAuthenticated"` // verified, and the signature covers the body
	Reason        webhook.Reason `json:"reason"`
	Synthetic     bool           `json:"synthetic"` // made up by `events send`
	Anomaly       string         `json:"anomaly"`
}

func newHead(d replay.Delivery, mask view.Masker) headJSON {
	return headJSON{
		ID: d.ID(), Delivery: d.Seq, ReceivedAt: d.ReceivedAt.UTC(), From: d.RemoteAddr, Method: d.Method,
		Path: mask.Text(d.Path), Verified: d.Verified, Authenticated: d.BodyAuthenticated, Reason: d.Reason,
		Synthetic: d.IsSynthetic(), Anomaly: d.Anomaly,
	}
}

type rowJSON struct {
	headJSON
	Events     []rowEventJSON      `json:"events"` // the first ones
	EventCount int                 `json:"eventCount"`
	Forwarding []events.Forwarding `json:"forwarding"` // without reply, noListener and history
}

type rowEventJSON struct {
	ID             string `json:"id"`
	Type           string `json:"type"`
	Event          string `json:"event"`
	TrackingNumber string `json:"trackingNumber"`
	StatusText     string `json:"statusText"` // as tables show it
	Tone           string `json:"tone"`
	LatestEvent    string `json:"latestEvent"`
	Anomaly        string `json:"anomaly,omitempty"`
}

func (p *Page) rows(m matcher, all []inbox.Overview) ([]rowJSON, error) {
	mask, err := view.NewMasker(p.Call.Session)
	if err != nil {
		return nil, err
	}
	names := view.NewStatusFormatter(p.Call.Config.Statuses)
	rows := make([]rowJSON, len(all))
	for i, o := range all {
		j := rowJSON{
			headJSON: newHead(replay.Delivery{Delivery: o.Delivery, Refused: m.refused}, mask),
			Events:   make([]rowEventJSON, len(o.Events)), EventCount: o.EventCount,
			Forwarding: make([]events.Forwarding, len(o.Forwardings)),
		}
		for n, e := range o.Events {
			j.Synthetic = j.Synthetic || e.Synthetic
			j.Events[n] = rowEventJSON{
				ID: e.ID(), Type: view.EventType(e.Mark), Event: e.Kind, TrackingNumber: e.TrackingNumber,
				StatusText:  names.Status(e.Status, e.StatusLabel, e.StatusTrack),
				Tone:        view.Tone(names.StatusStyle(e.Status, e.StatusLabel, e.StatusTrack)),
				LatestEvent: e.LatestEvent, Anomaly: e.Anomaly,
			}
		}
		for n, f := range o.Forwardings {
			j.Forwarding[n] = events.NewForwarding(o.Seq, f, nil)
			j.Forwarding[n].Reply, j.Forwarding[n].NoListener, j.Forwarding[n].History = "", false, nil
		}
		rows[i] = j
	}
	return rows, nil
}

type listJSON struct {
	Deliveries []rowJSON `json:"deliveries"` // newest first
	First      int64     `json:"first"`      // the smallest number there is, 0 if there is none
	Last       int64     `json:"last"`       // the largest
	Next       *int64    `json:"next"`       // what before must be to continue; null at the end
	Examined   int       `json:"examined"`   // deliveries
}

type listQuery struct {
	inbox.DeliveryRange
	matcher
}

func (p *Page) parseListQuery(v url.Values) (listQuery, error) {
	m, err := p.parseMatcher(v)
	number := func(name string, none int64) int64 {
		if n, err := strconv.ParseInt(v.Get(name), 10, 64); err == nil {
			return n
		}
		return none
	}
	q := listQuery{matcher: m, DeliveryRange: inbox.DeliveryRange{Refused: m.refused, Limit: defaultRows}}
	q.From, q.To = max(number("from", 1), 1), min(number("to", math.MaxInt64), number("before", math.MaxInt64)-1)
	if v.Get("from") != "" && v.Get("to") != "" {
		q.Limit = maxRows
	}
	q.Limit = int(min(max(number("limit", int64(q.Limit)), 1), maxRows))
	return q, err
}

// parseMatcher parses which deliveries are searched for: search is a filter or a text, of refused deliveries a text.
func (p *Page) parseMatcher(v url.Values) (m matcher, err error) {
	m.refused = v.Get("refused") == "1"
	text, err := m.cutStates(v.Get("search"))
	if err != nil {
		return m, err
	}
	if m.filtered = forward.IsFilter(text) && !m.refused; !m.filtered {
		m.text = bytes.ToLower([]byte(text))
		return m, nil
	}
	if m.filter, err = events.ParseFilter(view.NewStatusFormatter(p.Call.Config.OwnStatuses), text); err != nil {
		err = command.Usagef("such as event=router.delivered,number=1Z*", "%w", err)
	}
	return m, err
}

func (p *Page) listDeliveries(r *http.Request) (listJSON, error) {
	j := listJSON{Deliveries: []rowJSON{}}
	q, err := p.parseListQuery(r.URL.Query())
	if err != nil {
		return j, err
	}
	db, err := p.Call.ExistingStore(r.Context())
	if err != nil || db == nil {
		return j, err
	}
	if j.Last, _, err = q.extent(r.Context(), db); err != nil {
		return j, err
	}
	j.First = min(j.Last, 1)
	if q.Refused {
		for oldest, err := range db.Inbox.Refused(r.Context(), 0) {
			if err != nil {
				return j, err
			}
			j.First = oldest.Seq
			break
		}
	}
	if q.To < q.From {
		return j, nil
	}
	all, next, examined, err := p.findDeliveries(r.Context(), db, q)
	if err != nil {
		return j, err
	}
	if next > j.First {
		j.Next = &next
	}
	j.Examined = examined
	j.Deliveries, err = p.rows(q.matcher, all)
	return j, err
}

// extent returns the largest number that the matcher may find, and the number of refused deliveries.
func (m matcher) extent(ctx context.Context, db *app.Store) (last, refused int64, err error) {
	counts, err := db.Inbox.Counts(ctx)
	if err != nil || !m.refused {
		return counts.Deliveries, counts.Refused, err
	}
	newest, err := db.Overviews.Overviews(ctx, inbox.DeliveryRange{Refused: true, Limit: 1})
	if len(newest) > 0 {
		last = newest[0].Seq
	}
	return last, counts.Refused, err
}

// findDeliveries returns the deliveries of a query, the number before which it continues, and how many it examined.
func (p *Page) findDeliveries(
	ctx context.Context, db *app.Store, q listQuery,
) (found []inbox.Overview, next int64, examined int, err error) {
	if q.all() {
		found, err = db.Overviews.Overviews(ctx, q.DeliveryRange)
		if len(found) == q.Limit {
			next = found[len(found)-1].Seq
		}
		return found, next, len(found), err
	}
	defer p.searching.Unlock()
	p.searching.Lock()
	bytes := int64(maxExaminedBytes)
	for q.From <= q.To && examined < maxExamined && bytes > 0 && ctx.Err() == nil {
		began := time.Now()
		candidates := inbox.DeliveryRange{From: q.From, To: q.To, Limit: examinedAtOnce, Refused: q.Refused}
		candidates.Bare = q.readsBodiesAlone()
		page, err := db.Overviews.Overviews(ctx, candidates)
		if err != nil || len(page) == 0 {
			return found, 0, examined, err
		}
		page, read := within(page, bytes)
		some, err := q.find(ctx, db, page, q.Limit-len(found))
		if err != nil {
			return nil, 0, examined, err
		}
		found = append(found, some...)
		if len(found) == q.Limit {
			next = found[len(found)-1].Seq
			return found, next, examined + 1 + slices.IndexFunc(page, func(o inbox.Overview) bool { return o.Seq == next }), nil
		}
		next = page[len(page)-1].Seq
		q.To = next - 1
		examined += len(page)
		bytes -= read
		if p.Arrivals != nil { // new deliveries have priority
			_ = pace.Sleep(ctx, time.Since(began)) // the loop notices the end of ctx
		}
	}
	if q.From > q.To {
		next = 0
	}
	return found, next, examined, ctx.Err()
}
