package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Request is a request for one of the operations, or one that the user composed.
type Request struct {
	Operation Operation
	Method    string
	URL       string
	body      []byte
}

// Response is the complete response to a [Request].
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	JSON   bool // Body is one complete JSON value
}

// ErrUnanswered reports that a request that may have changed something was sent, and its outcome is unknown.
var ErrUnanswered = errors.New("sent, but it is not known what the service did")

// NewRequest returns a request for a path below the base URL, with the path's query, the values, and a JSON body,
// which may be nil. An invalid path is an error.
func (c *Client) NewRequest(method, path string, query url.Values, body []byte) (Request, error) {
	u, problem := parsePath(path)
	if problem != "" {
		return Request{}, fmt.Errorf("path %s: %s", path, problem)
	}
	return Request{OperationOf(u.Path), method, c.url(u, query), body}, nil
}

func parsePath(path string) (u *url.URL, problem string) {
	first, _, _ := strings.Cut(path, "/")
	first, _, _ = strings.Cut(first, "?")
	switch {
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return nil, "has white space or control characters; write them as %20 and the like"
	case strings.ContainsRune(path, '\\'):
		return nil, `has a backslash; separate with "/"`
	case strings.HasPrefix(path, "//"), strings.ContainsAny(first, ":@"):
		return nil, "names a host; requests go to base_url alone"
	case strings.ContainsRune(path, '#'):
		return nil, `has a "#"; write %23`
	}
	u, err := url.Parse("/" + strings.TrimPrefix(path, "/"))
	if err == nil {
		_, err = url.ParseQuery(u.RawQuery)
	}
	if err != nil || u.Host != "" || u.User != nil || u.Opaque != "" {
		return nil, "is not a path"
	}
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	for segment := range strings.SplitSeq(u.EscapedPath(), "/") {
		plain, err := url.PathUnescape(segment)
		switch {
		case err != nil || strings.ContainsAny(plain, `/\`) || strings.ContainsFunc(plain, isControl):
			return nil, "has an escaped slash, backslash or control character"
		case plain == ".." || plain == ".":
			return nil, `has a segment "` + plain + `"; name the path from base_url`
		}
	}
	return u, ""
}

// Send sends a request once. The error is a [*StatusError] for a status other than 2xx, a [*ConnectError] without a
// response, and an [*AnswerError] for an incomplete one. If the request may have changed something, and that is
// unknown, it also matches [ErrUnanswered]. The response is complete if the error is nil or a StatusError.
func (c *Client) Send(ctx context.Context, r Request) (Response, error) {
	x := c.do(ctx, r, cmp.Or(c.opts.Timeout, queryTimeout))
	safe := r.Method == http.MethodGet || r.Method == http.MethodHead
	unknown := func(err error) error {
		if safe || !x.sent {
			return err
		}
		return errors.Join(ErrUnanswered, err)
	}
	switch {
	case errors.Is(x.Err, errNoKey):
		return Response{}, x.Err
	case x.Status == 0 && errors.Is(ctx.Err(), context.Canceled):
		return Response{}, unknown(ctx.Err())
	case x.Status == 0:
		return Response{}, unknown(c.unanswered(x))
	case x.cut || x.Err != nil:
		problem := "incomplete"
		if x.Err == nil {
			problem = "larger than 32 MiB"
		}
		return Response{}, unknown(&AnswerError{Status: x.Status, Problem: problem, Excerpt: excerpt(x.Answer)})
	}
	res := Response{Status: x.Status, Header: x.Header, Body: x.Answer, JSON: x.JSON}
	if x.Status >= 200 && x.Status < 300 {
		return res, nil
	}
	err := newStatusError(x)
	if x.Status >= 500 || x.Status == http.StatusRequestTimeout || x.Status == http.StatusTooEarly {
		return res, unknown(err)
	}
	return res, err
}
