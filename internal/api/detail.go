package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// Detail asks for the status and timeline of a tracking.
//
// The error is [tracking.ErrProcessing] while the service is working on it,
// [tracking.ErrAbsent] if it has none, [tracking.ErrUndecided] if the answer tells
// neither, a [*StatusError] matching [tracking.ErrUnauthorized] for a refused key, and
// a [*ConnectError] if no connection came about. The answer is returned with
// every error that came with one.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Detail(ctx context.Context, q tracking.Query) (tracking.Answer, error) {
	x := c.ask(ctx, q)
	if x.status == 0 {
		if errors.Is(ctx.Err(), context.Canceled) {
			return tracking.Answer{}, ctx.Err()
		}
		return tracking.Answer{}, c.unanswered(x)
	}
	a := x.body.Answer()
	return a, c.readDetail(x, a)
}

func (c *Client) ask(ctx context.Context, q tracking.Query) response {
	values := url.Values{}
	if q.ReferID != "" {
		values.Set(tracking.FieldReferID, q.ReferID)
	} else {
		values.Set(cmp.Or(q.Param, c.opts.NumberParam), q.Number)
	}
	return c.do(ctx, Request{OpDetail, http.MethodGet, c.url(PathDetail, values), nil}, c.timeout(queryTimeout))
}

func (c *Client) readDetail(x response, a tracking.Answer) error {
	switch {
	case c.absent(x):
		return tracking.ErrAbsent
	case isProcessing(x, a.Processing):
		return tracking.ErrProcessing
	case x.status < 200 || x.status > 299:
		return newStatusError(x)
	case x.err != nil:
		return &AnswerError{Status: x.status, Problem: "incomplete", Excerpt: excerpt(x.answer)}
	case len(a.Trackings) > 0:
		return nil
	case !a.JSON:
		return &AnswerError{Status: x.status, Problem: "not JSON", Excerpt: excerpt(x.answer)}
	case x.unmaskedBody.Wrong():
		return &AnswerError{Status: x.status, Problem: "with an error in its body", Excerpt: excerpt(x.answer)}
	}
	return tracking.ErrUndecided
}

// isProcessing reports whether a whole answer says that the service is working on what was
// asked for. Its words decide before an HTTP status does, unless that says that the query
// was not answered at all.
//
// Interface: Endpoints, 3. Query a tracking.
func isProcessing(x response, says bool) bool {
	switch x.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return says && x.err == nil && (x.status/100 == 2 || x.status/100 == 4)
}

// absent reports whether the answer says that there is no such tracking.
//
// Assumed: 404 means so, and `query.absent` lists further forms.
func (c *Client) absent(x response) bool {
	return x.status == http.StatusNotFound && !x.body.Answer().Processing ||
		slices.ContainsFunc(c.opts.Absent, func(f tracking.Absent) bool { return f.Holds(x.status, x.unmaskedBody) })
}

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
