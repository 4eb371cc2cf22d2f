package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// ConnectError says that no answer came. A create may be repeated only if nothing was sent.
type ConnectError struct {
	Host string
	Sent bool // a byte of the request may have left
	Err  error
}

func (e *ConnectError) Error() string {
	if e.Sent {
		return fmt.Sprintf("no response from %s: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("cannot connect to %s: %v", e.Host, dialCause(e.Err))
}

// Short is why there was no connection or no response, without the host.
func (e *ConnectError) Short() string {
	if e.Sent {
		return "no response"
	}
	return dialCause(e.Err).Error()
}

// ProxyError says that a proxy refused to connect to the service.
type ProxyError struct {
	Proxy  string // host and port
	Status int
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy %s answered %d %s", e.Proxy, e.Status, http.StatusText(e.Status))
}

func refusedByProxy(_ context.Context, proxy *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: proxy.Host, Status: res.StatusCode}
}

// dialCause returns why a connection failed, without the address that it was to.
func dialCause(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		err = op.Err
		if call := (*os.SyscallError)(nil); errors.As(err, &call) {
			err = call.Err
		}
	}
	return err
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// Failure says that no answer came.
func (e *ConnectError) Failure() tracking.Failure {
	return tracking.Failure{Temporary: true, Troubled: true, Unconnected: !e.Sent}
}

// AnswerError says that a 2xx answer came which can't be believed.
type AnswerError struct {
	Status  int
	Problem string
	Excerpt string // start of the answer, foreign text
}

// Failure says that somebody else may have answered, such as a proxy.
func (e *AnswerError) Failure() tracking.Failure { return tracking.Failure{Troubled: true} }

func (e *AnswerError) Error() string {
	s := fmt.Sprintf("unexpected response: status %d, %s", e.Status, e.Problem)
	start := strings.ToLower(e.Excerpt)
	if strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html") {
		s = fmt.Sprintf("this is not the tracking service (it answered %d with a web page): check base_url", e.Status)
	}
	if e.Excerpt != "" {
		s += ": " + e.Excerpt
	}
	return s
}

// StatusError is an answer that is not 2xx.
type StatusError struct {
	Status   int
	Message  string        // the service's own words, foreign text; empty if none
	Pause    time.Duration // what its Retry-After asks for, 0 if not sent
	Location string        // where a redirect pointed, foreign text; empty otherwise
}

func newStatusError(x response) *StatusError {
	e := &StatusError{Status: x.Status, Pause: x.retryAfter, Message: x.body.ErrorText()}
	if x.Status >= 300 && x.Status < 400 {
		e.Location = x.Header.Get("Location")
	}
	return e
}

func (e *StatusError) Error() string {
	s := e.answered()
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Location != "" {
		s += " (redirect to " + e.Location + " not followed; check base_url)"
	}
	return s
}

// Reason is Error with the service's own words first, which a narrow column may show alone.
func (e *StatusError) Reason() string {
	if e.Message == "" || e.Location != "" {
		return e.Error()
	}
	return e.Message + " (" + e.answered() + ")"
}

func (e *StatusError) answered() string { return "the service answered " + e.Short() }

// Short is the status alone.
func (e *StatusError) Short() string {
	return strings.TrimRight(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)), " ")
}

// Is matches [tracking.ErrUnauthorized] for 401 and 403.
//
// Assumed: the interface does not show what a wrong key looks like.
func (e *StatusError) Is(target error) bool {
	return target == tracking.ErrUnauthorized && tracking.OutcomeOf(e.Status) == tracking.OutcomeUnauthorized
}

// Failure tells what is about the key, the address or the account from what is about the query, and what may pass from
// what stays. A request for a pause is an answer, and no trouble.
//
// Assumed: HTTP statuses mean what RFC 9110 says of them.
func (e *StatusError) Failure() tracking.Failure {
	f := tracking.Failure{RetryAfter: e.Pause}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusMisdirectedRequest, http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		f.Systemic = true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		f.Throttled, f.Temporary = true, true
	case http.StatusRequestTimeout:
		f.Temporary = true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		f.Temporary, f.Troubled = true, true
	default:
		f.Systemic = e.Status >= 300 && e.Status < 400
		f.Troubled = e.Status >= http.StatusInternalServerError
	}
	return f
}
