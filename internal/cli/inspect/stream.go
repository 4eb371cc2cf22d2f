package inspect

import (
	"context"
	"net/http"
)

// streamJSON is a message of the stream.
type streamJSON struct {
	Last int64 `json:"last"` // number of the newest delivery
}

// stream sends what is new, see [inspect.Stream].
func (p *Page) stream(ctx context.Context, _ *http.Request, after int64, send func(id int64, event string, v any) error) error {
	for {
		wake := p.changed()
		db, err := p.store(ctx)
		if err != nil {
			return err
		}
		last := after
		if db != nil {
			counts, err := db.Inbox.Counts(ctx, false)
			if err != nil {
				return err
			}
			last = counts.LastEvent
		}
		if err := send(last, "deliveries", streamJSON{last}); err != nil {
			return err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil
		}
	}
}
