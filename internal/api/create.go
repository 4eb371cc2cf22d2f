package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

func (c *Client) create(ctx context.Context, path string, items []tracking.Item, limit time.Duration) *tracking.Reply {
	body := tracking.AppendBatch(make([]byte, 0, 128*len(items)+16), items)
	x := c.do(ctx, Request{OperationOf(path), http.MethodPost, c.url(&url.URL{Path: path}, nil), body}, limit)
	r := &tracking.Reply{
		HTTPStatus: x.Status,
		Answer:     x.Answer,
		AnswerCut:  x.cut,
		RetryAfter: x.retryAfter,
		Body:       x.body,
		Began:      x.began,
		Took:       x.Took,
	}
	r.Outcome, r.Err = c.classify(x)
	if r.Outcome == tracking.OutcomeAccepted || r.Outcome == tracking.OutcomeRows {
		rows, blanket := r.Body.Refusals(items)
		if blanket && r.Outcome == tracking.OutcomeAccepted { // a success that refuses all rows without a reason
			r.Outcome = tracking.OutcomeNotCredible
			const problem = "every row listed as refused without a reason"
			r.Err = &AnswerError{Status: r.HTTPStatus, Problem: problem, Excerpt: excerpt(r.Answer)}
		} else {
			r.Refused = rows
		}
	}
	if x.Status != 0 && x.Err == nil && !x.cut {
		r.Shape, r.Agrees = x.body.Shape(x.Status, len(items), len(r.Refused))
	}
	return r
}

// classify never lets an incomplete response determine what was stored.
func (c *Client) classify(x response) (tracking.Outcome, error) {
	o := tracking.OutcomeOf(x.Status)
	switch {
	case !x.sent:
		return tracking.OutcomeNotSent, c.unanswered(x)
	case x.Status == 0 || x.Err != nil:
		if o.Meaning().Stored != tracking.StoredUnknown {
			o = tracking.OutcomeUnknown
		}
		return o, fmt.Errorf("no complete response: %w", x.Err)
	case slices.Contains(c.opts.Unprocessed, x.Status):
		return tracking.OutcomeThrottled, newStatusError(x)
	case o != tracking.OutcomeAccepted:
		return o, newStatusError(x)
	}
	if err := c.checkSuccess(x); err != nil {
		return tracking.OutcomeNotCredible, err
	}
	return o, nil
}

func (c *Client) checkSuccess(x response) error {
	if x.cut {
		return &AnswerError{Status: x.Status, Problem: "too large"}
	}
	body := bytes.TrimSpace(x.Answer)
	switch {
	case len(body) > 0 && !x.unmaskedBody.JSON():
		return &AnswerError{Status: x.Status, Problem: "neither empty nor JSON", Excerpt: excerpt(body)}
	case len(c.opts.Accepted) > 0:
		for _, m := range c.opts.Accepted {
			if !m.Holds(x.unmaskedBody) {
				return &AnswerError{Status: x.Status, Problem: "create.accepted not met at " + m.Path, Excerpt: excerpt(body)}
			}
		}
	case x.unmaskedBody.Wrong():
		return &AnswerError{Status: x.Status, Problem: "with an error in its body", Excerpt: excerpt(body)}
	}
	return nil
}

const excerptLength = 200 // bytes of a response that an error shows

func excerpt(body []byte) string {
	if len(body) <= excerptLength {
		return string(body)
	}
	return strings.ToValidUTF8(string(body[:excerptLength]), "") + "…"
}
