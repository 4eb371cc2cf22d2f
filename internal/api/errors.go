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

// ConnectError reports that there was no response. A create may be repeated only if nothing was sent.
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

// Short says why there was no connection or no response, without the host.
func (e *ConnectError) Short() string {
	if e.Sent {
		return "no response"
	}
	return dialCause(e.Err).Error()
}

// ProxyError reports that a proxy refused to connect to the service.
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

// dialCause returns why a connection failed, without the address.
func dialCause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		err = op.Err
		if call, ok := errors.AsType[*os.SyscallError](err); ok {
			err = call.Err
		}
	}
	return err
}

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// Failure says that there was no response.
func (e *ConnectError) Failure() tracking.Failure {
	return tracking.Failure{Temporary: true, Troubled: true, Unconnected: !e.Sent}
}

// AnswerError reports a 2xx response that is not credible.
type AnswerError struct {
	Status  int
	Problem string
	Excerpt string // start of the response, foreign text
}

// Failure says that something else, such as a proxy, may have responded.
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

// StatusError is a response with a status other than 2xx.
type StatusError struct {
	Status   int
	Message  string        // the service's own words, foreign text; empty if none
	Pause    time.Duration // requested by its Retry-After, 0 if absent
	Location string        // target of a redirect, foreign text; empty otherwise
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

// Reason is Error with the service's own words first, as a narrow column may cut the rest.
func (e *StatusError) Reason() string {
	if e.Message == "" || e.Location != "" {
		return e.Error()
	}
	return e.Message + " (" + e.answered() + ")"
}

func (e *StatusError) answered() string { return "the service answered " + e.Short() }

// Short returns only the status.
func (e *StatusError) Short() string {
	return strings.TrimRight(fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)), " ")
}

// Is matches [tracking.ErrUnauthorized] for 401 and 403.
//
// Assumed: the interface does not show what a wrong key looks like.
func (e *StatusError) Is(target error) bool {
	return target == tracking.ErrUnauthorized && tracking.OutcomeOf(e.Status) == tracking.OutcomeUnauthorized
}

// Failure distinguishes problems of the key, address or account from problems of the query, and temporary from
// permanent ones. A request for a pause is a response, not trouble.
//
// Assumed: HTTP statuses have the meaning of RFC 9110.
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
