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

// Temporary says that the same query may do better later.
func (e *ConnectError) Temporary() bool { return true }

// Troubled says that no answer came.
func (e *ConnectError) Troubled() bool { return true }

// Unconnected reports whether nothing of the request left.
func (e *ConnectError) Unconnected() bool { return !e.Sent }

// AnswerError says that a 2xx answer came which can't be believed.
type AnswerError struct {
	Status  int
	Problem string
	Excerpt string // start of the answer, foreign text
}

// Troubled says that somebody else may have answered, such as a proxy.
func (e *AnswerError) Troubled() bool { return true }

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

// Systemic reports whether every other query would meet the same refusal: it is
// about the key, the address or the account, not about what was asked for.
//
// Assumed: HTTP statuses mean what RFC 9110 says of them.
func (e *StatusError) Systemic() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusNotAcceptable, http.StatusProxyAuthRequired, http.StatusMisdirectedRequest, http.StatusUpgradeRequired,
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusNetworkAuthenticationRequired:
		return true
	}
	return e.Status >= 300 && e.Status < 400
}

// RetryAfter returns how long the service asked to wait, 0 if it did not say.
func (e *StatusError) RetryAfter() time.Duration { return e.Pause }

// Throttled reports whether the service asked for a pause, or is overloaded.
func (e *StatusError) Throttled() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// Temporary reports whether the same query may do better later.
func (e *StatusError) Temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Troubled reports whether the service failed rather than answered. A request for a pause is an answer.
func (e *StatusError) Troubled() bool {
	return e.Status >= http.StatusInternalServerError && !e.Throttled() && !e.Systemic()
}
