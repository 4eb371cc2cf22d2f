package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func (c *Client) create(ctx context.Context, path string, items []tracking.Item, limit time.Duration) *tracking.Reply {
	body := tracking.AppendBatch(make([]byte, 0, 96*len(items)+16), items)
	x := c.do(ctx, http.MethodPost, c.url(path, nil), body, limit)
	r := &tracking.Reply{
		HTTPStatus: x.status,
		Answer:     x.answer,
		AnswerCut:  x.cut,
		RetryAfter: x.retryAfter,
		Body:       x.body,
		Began:      x.began,
		Took:       x.took,
	}
	r.Outcome, r.Err = c.judge(x)
	if r.Outcome == tracking.OutcomeAccepted || r.Outcome == tracking.OutcomeRows {
		readRows(r, items)
	}
	r.Systemic = systemic(r)
	return r
}

// readRows takes the verdicts on rows that the answer names. Success that
// lists every row as refused, and not why, can't be believed.
func readRows(r *tracking.Reply, items []tracking.Item) {
	rows, blanket := r.Body.Refusals(items)
	if blanket && r.Outcome == tracking.OutcomeAccepted {
		r.Outcome = tracking.OutcomeUnknown
		r.Err = &AnswerError{Status: r.HTTPStatus, Problem: "lists every row as refused and doesn't say why", Excerpt: excerpt(r.Answer)}
		return
	}
	r.Refused = rows
}

// systemic reports whether the next batch would surely meet the same answer:
// one that can't be believed, or a redirect.
func systemic(r *tracking.Reply) bool {
	var unbelievable *AnswerError
	return errors.As(r.Err, &unbelievable) || (r.HTTPStatus >= 300 && r.HTTPStatus < 400)
}

// judge reads the answer to a create, in the order of "How an answer to create
// is read": whatever is not clearly something else is unknown.
//
// Assumed: behaviour for errors is not shown; `assume_unprocessed` and
// `create.accepted` set what can be set.
func (c *Client) judge(x exchange) (tracking.Outcome, error) {
	if x.status == 0 || x.err != nil {
		if !x.sent {
			return tracking.OutcomeNotSent, c.unanswered(x)
		}
		return tracking.OutcomeUnknown, fmt.Errorf("no complete answer: %w", x.err)
	}
	switch {
	case slices.Contains(c.opts.Unprocessed, x.status):
		return tracking.OutcomeThrottled, newStatusError(x)
	case x.status >= 200 && x.status < 300:
		if err := c.credible(x); err != nil {
			return tracking.OutcomeUnknown, err
		}
		return tracking.OutcomeAccepted, nil
	}
	return outcomeOf(x.status), newStatusError(x)
}

func outcomeOf(status int) tracking.Outcome {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return tracking.OutcomeUnauthorized
	case http.StatusRequestEntityTooLarge:
		return tracking.OutcomeTooLarge
	case http.StatusBadRequest, http.StatusConflict, http.StatusUnprocessableEntity:
		return tracking.OutcomeRows
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return tracking.OutcomeUnknown
	}
	if status >= 400 && status < 500 {
		return tracking.OutcomeRefused
	}
	return tracking.OutcomeUnknown
}

// credible returns why a 2xx answer can't be taken as success, or nil.
func (c *Client) credible(x exchange) error {
	if x.cut {
		return &AnswerError{Status: x.status, Problem: "is longer than what is read"}
	}
	body := bytes.TrimSpace(x.answer)
	switch {
	case len(body) > 0 && !x.body.JSON():
		return &AnswerError{Status: x.status, Problem: "is neither empty nor JSON", Excerpt: excerpt(body)}
	case len(c.opts.Accepted) > 0:
		for _, m := range c.opts.Accepted {
			if !m.Holds(x.body) {
				return &AnswerError{Status: x.status, Problem: "does not meet create.accepted at " + m.Path, Excerpt: excerpt(body)}
			}
		}
	case x.body.Wrong():
		return &AnswerError{Status: x.status, Problem: "carries a sign of error", Excerpt: excerpt(body)}
	}
	return nil
}

// excerptLength is how much of an answer an error shows, in bytes.
const excerptLength = 200

func excerpt(body []byte) string {
	if len(body) <= excerptLength {
		return string(body)
	}
	return strings.ToValidUTF8(string(body[:excerptLength]), "") + "…"
}
