package forward

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Headers that a target gets in addition to those of the delivery.
const (
	HeaderSeq     = "Waybill-Delivery-Seq" // number of the delivery
	HeaderAttempt = "Waybill-Attempt"      // number of the attempt, from 1
)

// ErrUnsendable says that a delivery was pruned, or has a header or request line that HTTP does not allow.
var ErrUnsendable = errors.New("the delivery can't be sent")

// BuildMessage returns a delivery as it is sent to a target: whole, byte for byte, with its headers in their order,
// except for headers of its connection, Authorization, Cookie, and those that withhold selects. If the target has no
// path, the delivery's path is used. The delivery's query is added, except for parameters whose name or value withhold
// selects. A delivery without a number gets no [HeaderSeq], and attempt 0 no [HeaderAttempt].
func BuildMessage(
	d inbox.Delivery, to *url.URL, attempt int, withhold func(webhook.Field) bool,
) (webhook.Request, error) {
	if d.Body == nil {
		return webhook.Request{}, fmt.Errorf("%w: its body was pruned", ErrUnsendable)
	}
	m := webhook.Request{Method: d.Method, Path: cmp.Or(to.EscapedPath(), d.Path), RawQuery: to.RawQuery, Body: d.Body}
	if query := keptQuery(d.RawQuery, withhold); query != "" {
		m.RawQuery = strings.TrimPrefix(m.RawQuery+"&"+query, "&")
	}
	skip := droppedHeaders(d.Header)
	for _, f := range d.Header {
		if !skip[strings.ToLower(f.Name)] && (withhold == nil || !withhold(f)) {
			m.Header = append(m.Header, f)
		}
	}
	if d.Seq != 0 {
		m.Header = append(m.Header, webhook.Field{Name: HeaderSeq, Value: strconv.FormatInt(d.Seq, 10)})
	}
	if attempt != 0 {
		m.Header = append(m.Header, webhook.Field{Name: HeaderAttempt, Value: strconv.Itoa(attempt)})
	}
	return m, nil
}

// keptQuery drops parameters that withhold selects, in any escaping. The others stay unchanged.
func keptQuery(query string, withhold func(webhook.Field) bool) string {
	if query == "" || withhold == nil {
		return query
	}
	return strings.Join(slices.DeleteFunc(strings.Split(query, "&"), func(pair string) bool {
		name, value, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc([]string{name, value}, func(text string) bool {
			inPath, _ := url.PathUnescape(text)
			inForm, _ := url.QueryUnescape(text)
			return slices.ContainsFunc([]string{text, inPath, inForm}, func(s string) bool {
				return s != "" && withhold(webhook.Field{Name: name, Value: s})
			})
		})
	}), "&")
}

// ReplaceHeaders returns m with these headers instead of its own headers of the same names.
func ReplaceHeaders(m webhook.Request, headers []webhook.Field) webhook.Request {
	if len(headers) == 0 {
		return m
	}
	m.Header = slices.DeleteFunc(slices.Clone(m.Header), func(f webhook.Field) bool {
		return slices.ContainsFunc(headers, func(own webhook.Field) bool { return strings.EqualFold(own.Name, f.Name) })
	})
	m.Header = append(m.Header, headers...)
	return m
}

// CheckHeader returns why a target can't be given a header of that name, nil if it can.
func CheckHeader(name string) error {
	switch {
	case !webhook.IsToken(name):
		return errors.New("the name of a header has letters, digits and hyphens only") // not shown: a value may stand there
	case droppedHeaders(nil)[strings.ToLower(name)] && !strings.EqualFold(name, "Authorization") &&
		!strings.EqualFold(name, "Cookie"):
		return fmt.Errorf("the header %s belongs to the connection or is set by waybill", name)
	}
	return nil
}

// droppedHeaders returns lower-case names of headers that concern one connection, or let the target act as the sender.
func droppedHeaders(header []webhook.Field) map[string]bool {
	skip := map[string]bool{}
	for _, name := range []string{
		"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer",
		"transfer-encoding", "upgrade", "expect", "content-length", "host", "authorization", "cookie",
		strings.ToLower(HeaderSeq), strings.ToLower(HeaderAttempt),
	} {
		skip[name] = true
	}
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Connection") {
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			skip[strings.ToLower(strings.TrimSpace(name))] = true
		}
	}
	return skip
}

// encodeHead keeps the case and order of header names, which package net/http would change.
func encodeHead(m webhook.Request, host string) ([]byte, error) {
	path := cmp.Or(m.Path, "/")
	if m.RawQuery != "" {
		path += "?" + m.RawQuery
	}
	if !webhook.IsToken(m.Method) || path[0] != '/' || breaksRequestLine(path) {
		return nil, fmt.Errorf("%w: its method or path has characters that a request line can't contain", ErrUnsendable)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", m.Method, path, host)
	for _, f := range m.Header {
		if !webhook.IsToken(f.Name) || strings.ContainsAny(f.Value, "\r\n\x00") {
			return nil, fmt.Errorf("%w: its header %q has characters that a header can't contain", ErrUnsendable, f.Name)
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(m.Body))
	return b.Bytes(), nil
}

func breaksRequestLine(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f })
}
