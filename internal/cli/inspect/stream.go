package inspect

import (
	"context"
	"net/http"
	"slices"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// maxSent is how many rows a message has at most: more than a page shows at once.
const maxSent = 100

type streamJSON struct {
	Last    int64     `json:"last"`    // the largest number that it is about
	Rows    []rowJSON `json:"rows"`    // what came since the message before, newest first
	More    bool      `json:"more"`    // other rows came before these: the list has them
	Refused int64     `json:"refused"` // how many refused deliveries are kept
}

// stream sends what is new, see [inspect.Stream]. However much comes, a message has no
// more rows than a page shows. With a filter or a search it examines a bounded number of
// deliveries each time, and lags behind when more come.
func (p *Page) stream(ctx context.Context, r *http.Request, after int64, send func(id int64, event string, v any) error) error {
	m, refused, err := p.parseMatcher(r.URL.Query())
	if err != nil {
		return err
	}
	var sent *streamJSON
	for {
		wake := p.changed()
		j, err := p.message(ctx, wake, m, refused, after)
		if err != nil {
			return err
		}
		if sent == nil || j.Last != sent.Last || j.Refused != sent.Refused {
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

// message returns a message about what came after a number, as of when wake was made or
// later.
func (p *Page) message(ctx context.Context, wake <-chan struct{}, m matcher, refused bool, after int64) (streamJSON, error) {
	h, err := p.head(ctx, wake, refused, m.all(), after)
	j := streamJSON{Last: h.last, Refused: h.refused, Rows: []rowJSON{}}
	if err != nil || h.last <= after {
		return j, err
	}
	if m.all() {
		end := slices.IndexFunc(h.rows, func(row rowJSON) bool { return row.Delivery <= after })
		if end < 0 {
			end = len(h.rows)
			j.More = int64(end) < h.last-after
		}
		j.Rows = h.rows[:end]
		return j, nil
	}
	found, last, err := p.matchNew(ctx, m, refused, after, h.last)
	if err != nil {
		return j, err
	}
	j.Last, j.More = last, len(found) > maxSent
	j.Rows, err = p.rows(found[:min(len(found), maxSent)], refused)
	return j, err
}

// head is the newest part of the list. Streams share it: it is read once for all of them.
type head struct {
	extent

	wake <-chan struct{} // the head is as new as when this was made
	rows []rowJSON       // up to maxSent, newest first; nil if no stream needed them
}

// head returns the newest part of the list; with rows if they are asked for and there are
// any after that number.
func (p *Page) head(ctx context.Context, wake <-chan struct{}, refused, rows bool, after int64) (head, error) {
	p.reading.Lock()
	defer p.reading.Unlock()
	h := p.heads[refused]
	db, err := p.Call.ExistingStore(ctx)
	if err != nil || db == nil {
		return head{}, err
	}
	if h.wake != wake {
		h = head{wake: wake}
		if h.extent, err = readExtent(ctx, db, refused); err != nil {
			return head{}, err
		}
	}
	if rows && h.rows == nil && h.last > after {
		newest, err := db.Overviews.Overviews(ctx, inbox.DeliveryRange{To: h.last, Limit: maxSent, Refused: refused})
		if err != nil {
			return head{}, err
		}
		if h.rows, err = p.rows(newest, refused); err != nil {
			return head{}, err
		}
	}
	p.heads[refused] = h
	return h, nil
}

// matchNew returns those of the deliveries after a number, up to last, that are meant,
// newest first; and how far it came.
func (p *Page) matchNew(ctx context.Context, m matcher, refused bool, after, last int64) (found []inbox.Overview, to int64, err error) {
	db, err := p.Call.ExistingStore(ctx)
	if err != nil || db == nil {
		return nil, after, err
	}
	defer p.searching.Unlock()
	p.searching.Lock()
	to = min(last, after+examinedAtOnce)
	page, err := m.candidates(ctx, db, inbox.DeliveryRange{From: after + 1, To: to, Refused: refused})
	if err != nil {
		return nil, after, err
	}
	slices.Reverse(page)
	if some, _ := within(page, maxExaminedBytes); len(some) < len(page) {
		page, to = some, some[len(some)-1].Seq
	}
	found, err = m.find(ctx, db, refused, page, len(page))
	slices.Reverse(found)
	return found, to, err
}
