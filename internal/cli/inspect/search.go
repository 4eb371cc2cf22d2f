package inspect

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/forward"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Limits of what one request examines, which bound its time and memory.
const (
	maxExamined      = 2000     // deliveries
	maxExaminedBytes = 16 << 20 // bytes of bodies, unless a single one is larger
	examinedAtOnce   = 1000     // deliveries, without their bodies
	bodiesAtOnce     = 1 << 20  // bytes of bodies, unless a single one is larger
)

// matcher selects deliveries by a filter of events or a text in the body. The zero matcher selects all.
type matcher struct {
	refused  bool // search refused deliveries
	filter   forward.Filter
	filtered bool
	text     []byte // lower case
	states   []func(inbox.Overview) bool
}

func (m matcher) all() bool { return !m.filtered && len(m.text) == 0 && len(m.states) == 0 }

var states = map[string]func(inbox.Overview) bool{
	"unverified": func(o inbox.Overview) bool { return !o.Verified.Counts() },
	"failed": func(o inbox.Overview) bool {
		return slices.ContainsFunc(o.Forwardings, func(f inbox.Forwarding) bool {
			return f.Waiting != nil && f.Waiting.Failures > 0
		})
	},
	"made-up": func(o inbox.Overview) bool {
		return slices.ContainsFunc(o.Events, func(e inbox.Event) bool { return e.Synthetic })
	},
	"anomaly": func(o inbox.Overview) bool {
		return o.Anomaly != "" || slices.ContainsFunc(o.Events, func(e inbox.Event) bool { return e.Anomaly != "" })
	},
}

// cutStates sets the states in a search, and returns the rest of the search.
func (m *matcher) cutStates(search string) (string, error) {
	var rest []string
	for part := range strings.SplitSeq(search, ",") {
		name, ok := strings.CutPrefix(part, "is=")
		switch state := states[name]; {
		case !ok:
			rest = append(rest, part)
		case state == nil:
			known := command.Or(slices.Sorted(maps.Keys(states)))
			return "", command.Usagef("is="+known, "unknown state %s", command.Quoted(name))
		default:
			m.states = append(m.states, state)
		}
	}
	return strings.Join(rest, ","), nil
}

// within returns the first deliveries whose bodies have up to size bytes, but at least one, and the bytes.
func within(all []inbox.Overview, size int64) (first []inbox.Overview, bytes int64) {
	for i, o := range all {
		if i > 0 && bytes+max(o.Size, 0) > size {
			return all[:i], bytes
		}
		bytes += max(o.Size, 0)
	}
	return all, bytes
}

// find returns the first candidates that match, up to limit. Candidates are in order, newest first.
func (m matcher) find(ctx context.Context, db *app.Store, all []inbox.Overview, limit int) ([]inbox.Overview, error) {
	var found []inbox.Overview
	for len(all) > 0 && len(found) < limit {
		some, _ := within(all, bodiesAtOnce)
		all = all[len(some):]
		some = slices.DeleteFunc(slices.Clone(some), func(o inbox.Overview) bool {
			return slices.ContainsFunc(m.states, func(is func(inbox.Overview) bool) bool { return !is(o) })
		})
		bodies, err := m.bodies(ctx, db, some)
		if err != nil {
			return nil, err
		}
		for _, o := range some {
			match, known := m.matchOverview(o)
			if !known {
				if match, err = m.matchBody(ctx, db, o, bodies[o.Seq]); err != nil {
					return nil, err
				}
			}
			if match {
				found = append(found, o)
			}
		}
	}
	return m.whole(ctx, db, found[:min(len(found), limit)])
}

// readsBodiesAlone reports whether matching needs no events and no forwardings.
func (m matcher) readsBodiesAlone() bool { return !m.filtered && len(m.states) == 0 }

// whole adds events and forwardings to deliveries that were matched without. Refused deliveries have none.
func (m matcher) whole(ctx context.Context, db *app.Store, found []inbox.Overview) ([]inbox.Overview, error) {
	if len(found) == 0 || m.refused || !m.readsBodiesAlone() {
		return found, nil
	}
	all, err := db.Overviews.Overviews(ctx, inbox.DeliveryRange{From: found[len(found)-1].Seq, To: found[0].Seq})
	for i := range found {
		if at := slices.IndexFunc(all, func(o inbox.Overview) bool { return o.Seq == found[i].Seq }); at >= 0 {
			found[i] = all[at]
		}
	}
	return found, err
}

func (m matcher) bodies(ctx context.Context, db *app.Store, all []inbox.Overview) (map[int64][]byte, error) {
	r := inbox.DeliveryRange{Refused: m.refused}
	for _, o := range all {
		if _, known := m.matchOverview(o); !known {
			r.From, r.To = min(cmp.Or(r.From, o.Seq), o.Seq), max(r.To, o.Seq)
		}
	}
	if r.To == 0 {
		return map[int64][]byte{}, nil
	}
	return db.Overviews.Bodies(ctx, r)
}

// matchOverview reports whether a delivery matches, if that is known without its body.
func (m matcher) matchOverview(o inbox.Overview) (match, known bool) {
	switch {
	case !m.filtered && len(m.text) == 0:
		return true, true // its state matched
	case !m.filtered || m.filter.ReadsBytes():
		return false, false
	}
	match = m.matchAny(o.Events)
	return match, match || o.EventCount <= len(o.Events)
}

// matchBody reports whether a delivery with this body matches. body is nil if pruned.
func (m matcher) matchBody(ctx context.Context, db *app.Store, o inbox.Overview, body []byte) (bool, error) {
	if !m.filtered || m.matchAny(o.Events) {
		return m.filtered || jsonscan.Contains(body, m.text), nil
	}
	if body != nil {
		o.Body = body
		_, rows := inbox.Decode(o.Delivery)
		return m.matchAny(rows), nil
	}
	for e, err := range db.Inbox.Events(ctx, inbox.Query{Delivery: o.Seq}) {
		if err != nil || m.filter.Match(e) {
			return err == nil, err
		}
	}
	return false, nil
}

func (m matcher) matchAny(rows []inbox.Event) bool { return slices.ContainsFunc(rows, m.filter.Match) }

// maxSent is the maximum number of rows in a message: more than a page shows at once.
const maxSent = 100

type streamJSON struct {
	Last    int64     `json:"last"`    // the largest number that it is about
	Rows    []rowJSON `json:"rows"`    // what came since the message before, newest first
	More    bool      `json:"more"`    // other rows may have come before these: the list finds them
	Refused int64     `json:"refused"` // how many refused deliveries are kept

	// Revision names the state of the store. If two messages have different revisions, the
	// store has changed between them, and the page asks for the visible rows again.
	Revision string `json:"revision"`
}

// stream sends new rows, and that the store changed, see [inspect.Stream]. A message has only the newest rows, up to
// maxSent, and examines no more deliveries than a request for the list.
func (p *Page) stream(
	ctx context.Context, r *http.Request, after int64, send func(id int64, event string, v any) error,
) error {
	m, err := p.parseMatcher(r.URL.Query())
	if err != nil {
		return err
	}
	var sent *streamJSON
	for {
		wake := p.changed()
		j, err := p.message(ctx, m, after)
		if err != nil {
			return err
		}
		if sent == nil || j.Last != sent.Last || j.Revision != sent.Revision {
			if err := send(j.Last, "deliveries", j); err != nil {
				return err
			}
		}
		sent, after = &j, j.Last
		select {
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *Page) message(ctx context.Context, m matcher, after int64) (streamJSON, error) {
	j := streamJSON{Rows: []rowJSON{}}
	db, err := p.Call.ExistingStore(ctx)
	if err != nil || db == nil {
		return j, err
	}
	if j.Revision, err = db.Changes.Revision(ctx); err != nil {
		return j, err
	}
	last, refused, err := m.extent(ctx, db)
	if j.Last, j.Refused = last, refused; err != nil || last <= after {
		return j, err
	}
	q := listQuery{inbox.DeliveryRange{From: after + 1, To: last, Limit: maxSent, Refused: m.refused}, m}
	found, next, _, err := p.findDeliveries(ctx, db, q)
	if err != nil {
		return j, err
	}
	j.More = next > after+1
	j.Rows, err = p.rows(m, found)
	return j, err
}
