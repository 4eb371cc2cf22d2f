package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Evidence asks once for what q names, and returns what the answer proves
// about item. It tries nothing again.
//
// A query by number can't tell whose tracking it found, if the answer names no
// referId: it is for the caller to ask so only where one row has that number.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Evidence(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Evidence {
	return c.evidence(ctx, c.ask(ctx, q), q, item)
}

// Find is [Client.Evidence] with the answer.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Find(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Finding {
	x := c.ask(ctx, q)
	return tracking.Finding{Evidence: c.evidence(ctx, x, q, item), Status: x.status, Body: x.body}
}

func (c *Client) evidence(ctx context.Context, x response, q tracking.Query, item tracking.Item) tracking.Evidence {
	if x.status == 0 || x.err != nil || x.cut {
		return c.noEvidence(ctx, x)
	}
	absent, success := c.absent(x), x.status >= 200 && x.status < 300
	e := x.unmaskedBody.Evidence(item)
	if e.Presence == tracking.PresenceUndecided {
		e.Why = cmp.Or(x.body.Evidence(item).Why, "shows the key")
	}
	switch {
	case absent && e.Presence != tracking.PresenceUndecided:
		return tracking.Evidence{Why: fmt.Sprintf("says \"not found\" (status %d), but shows the tracking", x.status)}
	case absent:
		return tracking.Evidence{Presence: tracking.PresenceAbsent, Fingerprint: x.body.AbsenceFingerprint(x.status, q.ReferID, q.Number, item.ReferID, item.Number)}
	case success, isProcessing(x, e.Presence == tracking.PresenceProcessing):
		return e
	}
	err := newStatusError(x)
	return tracking.Evidence{
		Err: err, Temporary: err.Temporary() || err.Status >= http.StatusInternalServerError, RetryAfter: err.Pause,
		Unauthorized: errors.Is(err, tracking.ErrUnauthorized),
		Throttled:    err.Throttled(),
	}
}

func (c *Client) noEvidence(ctx context.Context, x response) tracking.Evidence {
	e := tracking.Evidence{Temporary: true, RetryAfter: x.retryAfter}
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.Is(x.err, errNoKey):
		e.Err, e.Temporary, e.Unauthorized = x.err, false, true
	case x.status == 0:
		e.Err, e.Unconnected = c.unanswered(x), !x.sent
	case x.err != nil:
		e.Err = fmt.Errorf("incomplete response with status %d: %w", x.status, x.err)
	default:
		e.Err = &AnswerError{Status: x.status, Problem: "too large"}
	}
	return e
}
