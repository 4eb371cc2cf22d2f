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

// Detail queries the status and timeline of a tracking.
//
// The error is [tracking.ErrProcessing] while the service is working on it, [tracking.ErrAbsent] if the service has
// no such tracking, [tracking.ErrUndecided] if the response shows neither, a [*StatusError] matching
// [tracking.ErrUnauthorized] for a refused key, and a [*ConnectError] if there was no response. Errors that come with
// an answer are returned with it.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Detail(ctx context.Context, q tracking.Query) (tracking.Answer, error) {
	x := c.ask(ctx, q)
	if x.Status == 0 {
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
	r := Request{OpDetail, http.MethodGet, c.url(&url.URL{Path: PathDetail}, values), nil}
	return c.do(ctx, r, cmp.Or(c.opts.Timeout, queryTimeout))
}

func (c *Client) readDetail(x response, a tracking.Answer) error {
	switch {
	case c.absent(x):
		return tracking.ErrAbsent
	case a.Processing && decidesProcessing(x):
		return tracking.ErrProcessing
	case x.Status < 200 || x.Status > 299:
		return newStatusError(x)
	case x.Err != nil:
		return &AnswerError{Status: x.Status, Problem: "incomplete", Excerpt: excerpt(x.Answer)}
	case len(a.Trackings) > 0:
		return nil
	case !a.JSON:
		return &AnswerError{Status: x.Status, Problem: "not JSON", Excerpt: excerpt(x.Answer)}
	case x.unmaskedBody.Wrong():
		return &AnswerError{Status: x.Status, Problem: "with an error in its body", Excerpt: excerpt(x.Answer)}
	}
	return tracking.ErrUndecided
}

// decidesProcessing reports whether a response is complete, and its words may say that the service is still working
// on the tracking. Such words outrank the HTTP status, unless that says that the query was not answered at all.
//
// Interface: Endpoints, 3. Query a tracking.
func decidesProcessing(x response) bool {
	switch x.Status {
	case http.StatusUnauthorized, http.StatusForbidden,
		http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return x.Err == nil && (x.Status/100 == 2 || x.Status/100 == 4)
}

// absent reports whether the response says that there is no such tracking.
//
// Assumed: 404 means absent, and `query.absent` lists further forms.
func (c *Client) absent(x response) bool {
	return x.Status == http.StatusNotFound && !x.body.Answer().Processing ||
		slices.ContainsFunc(c.opts.Absent, func(f tracking.Absent) bool { return f.Holds(x.Status, x.unmaskedBody) })
}

// Evidence sends one query, and returns what the response proves about item. It does not retry.
//
// If the response names no referId, a query by number can't tell whose tracking it found: callers should query by
// number only where a single row has that number.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Evidence(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Evidence {
	return c.Find(ctx, q, item).Evidence
}

// Find is [Client.Evidence] with the response.
//
// Interface: Endpoints, 3. Query a tracking.
func (c *Client) Find(ctx context.Context, q tracking.Query, item tracking.Item) tracking.Finding {
	x := c.ask(ctx, q)
	return tracking.Finding{Evidence: c.evidence(ctx, x, q, item), Status: x.Status, Body: x.body}
}

func (c *Client) evidence(ctx context.Context, x response, q tracking.Query, item tracking.Item) tracking.Evidence {
	if x.Status == 0 || x.Err != nil || x.cut {
		return c.noEvidence(ctx, x)
	}
	absent, success := c.absent(x), x.Status >= 200 && x.Status < 300
	e := x.unmaskedBody.Evidence(item)
	if e.Presence == tracking.PresenceUndecided {
		e.Why = cmp.Or(x.body.Evidence(item).Why, "shows the key")
	}
	switch {
	case absent && e.Presence != tracking.PresenceUndecided:
		return tracking.Evidence{Why: fmt.Sprintf("says \"not found\" (status %d), but shows the tracking", x.Status)}
	case absent:
		fingerprint := x.body.AbsenceFingerprint(x.Status, q.ReferID, q.Number, item.ReferID, item.Number)
		return tracking.Evidence{Presence: tracking.PresenceAbsent, Fingerprint: fingerprint}
	case success, e.Presence == tracking.PresenceProcessing && decidesProcessing(x):
		return e
	}
	err := newStatusError(x)
	failure := err.Failure()
	failure.Temporary = failure.Temporary || err.Status >= http.StatusInternalServerError
	return tracking.Evidence{Err: err, Unauthorized: errors.Is(err, tracking.ErrUnauthorized), Failure: failure}
}

func (c *Client) noEvidence(ctx context.Context, x response) tracking.Evidence {
	e := tracking.Evidence{Failure: tracking.Failure{Temporary: true, RetryAfter: x.retryAfter}}
	switch {
	case ctx.Err() != nil:
		e.Err = context.Cause(ctx)
	case errors.Is(x.Err, errNoKey):
		e.Err, e.Temporary, e.Unauthorized = x.Err, false, true
	case x.Status == 0:
		e.Err = c.unanswered(x)
		e.Failure = tracking.FailureOf(e.Err)
	case x.Err != nil:
		e.Err = fmt.Errorf("incomplete response with status %d: %w", x.Status, x.Err)
	default:
		e.Err = &AnswerError{Status: x.Status, Problem: "too large"}
	}
	return e
}
