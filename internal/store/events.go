package store

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// eventFields are the columns of table events that describe an event. A new field is a line here and one in each
// schema.
var eventFields = fields[inbox.Event]{
	{"seq", func(e *inbox.Event) any { return &e.Seq }},
	{"delivery", func(e *inbox.Event) any { return &e.Delivery }},
	{"received", func(e *inbox.Event) any { return (*storedTime)(&e.ReceivedAt) }},
	{"place", func(e *inbox.Event) any { return &e.Index }},
	{"start", func(e *inbox.Event) any { return &e.Offset }},
	{"length", func(e *inbox.Event) any { return &e.Length }},
	{"event_key", func(e *inbox.Event) any { return (*storedBytes)(&e.Key) }},
	{"event_id", func(e *inbox.Event) any { return &e.EventID }},
	{"kind", func(e *inbox.Event) any { return &e.Kind }},
	{"event_time", func(e *inbox.Event) any { return &e.EventTime }},
	{"tracking_number", func(e *inbox.Event) any { return &e.TrackingNumber }},
	{"status", func(e *inbox.Event) any { return &e.Status }},
	{"status_track", func(e *inbox.Event) any { return &e.StatusTrack }},
	{"status_label", func(e *inbox.Event) any { return &e.StatusLabel }},
	{"latest_event", func(e *inbox.Event) any { return &e.LatestEvent }},
	{"router_id", func(e *inbox.Event) any { return &e.RouterID }},
	{"verified", func(e *inbox.Event) any { return (*string)(&e.Verified) }},
	{"reason", func(e *inbox.Event) any { return (*string)(&e.Reason) }},
	{"body_authenticated", func(e *inbox.Event) any { return &e.BodyAuthenticated }},
	{"synthetic", func(e *inbox.Event) any { return &e.Synthetic }},
	{"mark", func(e *inbox.Event) any { return (*string)(&e.Mark) }},
	{"anomaly", func(e *inbox.Event) any { return &e.Anomaly }},
}

var eventColumns = eventFields.list()

// eventsWithBodies selects events and, for the first event of a delivery, its body if that is small. So most events
// need no extra query for their bytes, and a page of events stays small.
var eventsWithBodies = "SELECT " + eventColumns + fmt.Sprintf(`, (SELECT d.body FROM deliveries d
	WHERE d.seq = events.delivery AND events.place = 0 AND length(d.body) <= %d) FROM events `, smallBody)

const smallBody = 4 << 10 // bytes

// scanEvent reads a row of eventColumns; additional columns go into more.
func scanEvent(s scanner, more ...any) (inbox.Event, error) {
	var e inbox.Event
	err := s.Scan(eventFields.dest(&e, more...)...)
	return e, err
}

// matching returns the conditions of q, except for its bounds.
func matching(q inbox.Query) *conditions {
	c := &conditions{}
	c.addIf(q.Delivery != 0, "delivery = {}", q.Delivery)
	c.addIf(q.EventID != "", "event_key = {}", webhook.IDKey(q.EventID))
	c.addIf(q.Genuine, "synthetic = 0")
	c.addIf(q.Kind != "", "kind = {}", q.Kind)
	c.addIf(q.TrackingNumber != "", "folded = {}", foldKey(q.TrackingNumber))
	c.addIf(!q.Since.IsZero(), "received >= {}", millis(q.Since))
	if q.EventIDPrefix != "" {
		c.addIDPrefix(q.EventIDPrefix)
	}
	if q.Verified != nil {
		c.add("verified IN " + bindAll(c, q.Verified))
	}
	if q.Marks != nil {
		c.add("mark IN " + bindAll(c, q.Marks))
	}
	if q.Trackings != nil {
		c.any(func(either *conditions) {
			for _, n := range q.Trackings.Numbers {
				either.add("folded = {}", foldKey(n))
			}
			for _, id := range q.Trackings.RouterIDs {
				either.add("LOWER(router_id) = {}", strings.ToLower(id))
			}
		})
	}
	return c
}

// addIDPrefix finds eventIds by prefix. UUIDs are found by their keys; other eventIds have their own index.
func (c *conditions) addIDPrefix(prefix string) {
	found, bounds := `SELECT seq FROM events WHERE length(event_key) > 16
		AND event_id <> '' AND length(event_id) <= 512 AND event_id >= {} AND event_id <= {}`,
		[]any{prefix, prefix + string(unicode.MaxRune)}
	if least, greatest, ok := webhook.IDKeyRange(prefix); ok {
		found += " UNION ALL SELECT seq FROM events WHERE event_key >= {} AND event_key <= {} AND length(event_key) = 16"
		bounds = append(bounds, least, greatest)
	}
	c.add("seq IN ("+found+")", bounds...)
}

// Events yields rows of the inbox, see [inbox.Store].
func (d *DB) Events(ctx context.Context, q inbox.Query) iter.Seq2[inbox.Event, error] {
	return func(yield func(inbox.Event, error) bool) {
		bodies := bodyReader{reader: d.reader()}
		for row, err := range inPages(d, q.Limit, pageRows, func(r *reader, last eventRow, n int) []eventRow {
			return r.eventPage(ctx, q, last.Event, n)
		}) {
			bodies.fail(err)
			bodies.fill(ctx, &row.Event, row.body) // one body at a time: a page of them would be large
			if !yield(row.Event, bodies.err) || bodies.err != nil {
				return
			}
		}
	}
}

// eventRow is an event without its bytes, and perhaps the body that contains them.
type eventRow struct {
	inbox.Event

	body storedBytes
}

func scanEventRow(s scanner) (r eventRow, err error) {
	r.Event, err = scanEvent(s, &r.body)
	return r, err
}

// eventPage returns the next events that match q, after last; the zero Event for the first page.
func (r *reader) eventPage(ctx context.Context, q inbox.Query, last inbox.Event, n int) []eventRow {
	c := matching(q)
	c.addIf(q.After > 0 || !q.Newest, "seq > {}", q.After)
	c.addIf(q.Before > 0, "seq < {}", q.Before)
	order := " ORDER BY seq"
	if q.Newest {
		order = " ORDER BY delivery DESC, seq DESC"
	}
	switch {
	case last.Seq == 0:
	case q.Newest:
		c.add("delivery <= {}", last.Delivery)
		c.any(func(either *conditions) {
			either.add("delivery < {}", last.Delivery)
			either.add("seq < {}", last.Seq)
		})
	default:
		c.add("seq > {}", last.Seq)
	}
	query := eventsWithBodies + "WHERE " + c.String() + order + " LIMIT " + c.bind(n)
	return list(ctx, r, scanEventRow, query, c.args...)
}

// bodyReader reads the bytes of events. It reads the body of a delivery once for all of its events.
type bodyReader struct {
	*reader
	delivery int64
	body     storedBytes
}

// fill adds the bytes of an event, unless they were pruned. body is its delivery's body if already read, else nil.
func (r *bodyReader) fill(ctx context.Context, e *inbox.Event, body storedBytes) {
	if body != nil {
		r.delivery, r.body = e.Delivery, body
	}
	if r.delivery != e.Delivery {
		r.row(ctx, []any{&r.body}, "SELECT body FROM deliveries WHERE seq = $1", e.Delivery)
		r.delivery = e.Delivery
	}
	if r.err != nil || r.body == nil || e.Offset+e.Length > len(r.body) {
		return
	}
	e.Raw = json.RawMessage(r.body[e.Offset : e.Offset+e.Length : e.Offset+e.Length])
	if e.Mark != inbox.Anomaly {
		e.Data = webhook.DecodeEvent(e.Raw).Data
	}
}

// Event returns one row of the inbox, see [inbox.Store].
func (d *DB) Event(ctx context.Context, seq int64) (inbox.Event, error) {
	for e, err := range d.Events(ctx, inbox.Query{After: seq - 1, Limit: 1}) {
		if err != nil || e.Seq == seq {
			return e, err
		}
	}
	return inbox.Event{}, fmt.Errorf("%w: %d", inbox.ErrNoEvent, seq)
}

// Delivery returns one delivery, see [inbox.Store].
func (d *DB) Delivery(ctx context.Context, seq int64) (inbox.Delivery, error) {
	var found inbox.Delivery
	r := d.reader()
	ok := r.row(ctx, deliveryFields.dest(&found, &found.Seq), selectDelivery+"deliveries WHERE seq = $1", seq)
	r.require(ok, fmt.Errorf("%w: %d", inbox.ErrNoDelivery, seq))
	return found, r.err
}

// Refused yields refused deliveries, see [inbox.Store].
func (d *DB) Refused(ctx context.Context, after int64) iter.Seq2[inbox.Delivery, error] {
	return inPages(d, 0, 1, func(r *reader, last inbox.Delivery, _ int) []inbox.Delivery {
		const next = "refused WHERE seq > $1 ORDER BY seq LIMIT 1"
		return list(ctx, r, scanDelivery, selectDelivery+next, max(after, last.Seq))
	})
}

// Counts returns how much there is in the inbox, see [inbox.Store].
func (d *DB) Counts(ctx context.Context) (inbox.Counts, error) {
	var c inbox.Counts
	r := d.reader()
	r.row(ctx, []any{&c.Deliveries, &c.LastEvent, &c.Refused, &c.RefusedDropped}, `SELECT
		(SELECT COALESCE(MAX(seq), 0) FROM deliveries), (SELECT COALESCE(MAX(seq), 0) FROM events),
		(SELECT COUNT(*) FROM refused), (SELECT value FROM counters WHERE name = 'refused_dropped')`)
	return c, r.err
}
