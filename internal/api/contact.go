package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// Contact is what one request without the key shows of the connection to the service.
type Contact struct {
	Proxy   *url.URL             // that requests go through; nil for none
	Address string               // what was connected to, host and port; empty if nothing was
	TLS     *tls.ConnectionState // nil without TLS, and without an answer
	Status  int                  // 0 if no answer came
	Took    time.Duration        // until the answer
	Err     error                // why no answer came; a [*ConnectError] but for a proxy that can't be used

	// Skew is how far the service's clock is ahead, in whole seconds. HasDate is false if the answer has no Date.
	Skew    time.Duration
	HasDate bool
}

// Contact sends a HEAD request, without the key. Whatever the status, it shows that the service can be reached.
func (c *Client) Contact(ctx context.Context) Contact {
	var found Contact
	var address atomic.Value // the first that was connected to: several are tried at once
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{ConnectDone: func(_, to string, err error) {
		if err == nil {
			address.CompareAndSwap(nil, to)
		}
	}})
	req, err := http.NewRequestWithContext(traced, http.MethodHead, c.base.String(), nil)
	if err == nil {
		found.Proxy, err = http.ProxyFromEnvironment(req)
	}
	if err != nil {
		found.Err = err
		return found
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	began := time.Now()
	res, err := c.http.Do(req)
	found.Took = time.Since(began)
	found.Address, _ = address.Load().(string)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		found.Err = &ConnectError{Host: c.Host(), Err: err, Sent: found.Address != ""}
		return found
	}
	_ = res.Body.Close() // that of a HEAD is empty
	found.TLS, found.Status = res.TLS, res.StatusCode
	found.Skew, found.HasDate = skew(res.Header, began.Add(found.Took/2))
	return found
}

// skew is how far an answer's clock is ahead of now. What a cache answers has an age.
func skew(h http.Header, now time.Time) (time.Duration, bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	age, err := strconv.ParseInt(h.Get("Age"), 10, 32)
	if err != nil {
		age = 0
	}
	return date.Add(time.Duration(age) * time.Second).Sub(now), true
}
