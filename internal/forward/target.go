package forward

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/redact"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// SinkName is the name of this package's sinks.
const SinkName = "forward"

// Target says where deliveries are forwarded, and which ones.
type Target struct {
	URL     *url.URL
	Filter  Filter
	Headers []webhook.Field // sent instead of a delivery's own headers of these names; may contain secrets
}

// ParseTarget parses [FILTER=>]URL, see [ParseFilter]. No error shows a password or a query of the URL.
func ParseTarget(text string) (Target, error) {
	var t Target
	filter, address, ok := strings.Cut(text, "=>")
	if !ok || strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
		filter, address = "", text
	} else if filter == "" {
		return t, errors.New("there is no filter before =>")
	}
	var err error
	if t.Filter, err = ParseFilter(strings.TrimSpace(filter)); err != nil {
		return Target{}, err
	}
	t.URL, err = ParseURL(strings.TrimSpace(address))
	return t, err
}

// ParseURL parses the URL of a target, or a short form such as 3000. No error shows a password or a query.
func ParseURL(address string) (*url.URL, error) {
	u, err := url.Parse(expand(address))
	switch {
	case err != nil || u.Opaque != "" || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("a target is a URL such as http://127.0.0.1:3000/hook, or a port of this computer")
	case u.Port() != "" && !isPort(u.Port()):
		return nil, fmt.Errorf("a port is a number from 1 to 65535, not %s", u.Port())
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("a target is a URL with http or https, not %q", u.Scheme)
	case u.User != nil:
		return nil, errors.New("a target's URL can't contain a user name or password; " +
			"use --target-header Authorization=env:NAME")
	case u.Fragment != "" || strings.Contains(address, "#"):
		return nil, errors.New("a target's URL can't contain a fragment (#)")
	case breaksRequestLine(u.RequestURI()):
		return nil, errors.New("the URL has characters that a request line can't contain")
	}
	return u, nil
}

// expand completes a port, or a loopback host with or without a port, to a URL; other addresses stay unchanged.
func expand(address string) string {
	authority, rest := address, ""
	if i := strings.IndexAny(address, "/?"); i >= 0 {
		authority, rest = address[:i], address[i:]
	}
	if port := strings.TrimPrefix(authority, ":"); port != "" && strings.Trim(port, "0123456789") == "" {
		return "http://127.0.0.1:" + port + rest
	}
	host, port, err := net.SplitHostPort(authority)
	if err != nil {
		host, port = authority, "80"
	}
	ip, err := netip.ParseAddr(host)
	if isHere := host == "localhost" || err == nil && ip.IsLoopback(); isHere && port != "" {
		return "http://" + authority + rest
	}
	return address
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// Key returns the key of the target's sink.
func (t Target) Key() inbox.SinkKey {
	return inbox.SinkKey{Name: SinkName, URL: t.URL.String(), Filter: t.Filter.String()}
}

// Redactor removes the values of headers: each whole value, and the part after the name of an authorization scheme.
func Redactor(headers []webhook.Field) *redact.Redactor {
	var values []string
	for _, h := range headers {
		_, token, _ := strings.Cut(h.Value, " ")
		values = append(values, h.Value, token)
	}
	return redact.New(values...)
}

// maskValues removes the values of headers from an answer and its error, since a target may repeat them.
func maskValues(headers []webhook.Field) func(Answer, error) (Answer, error) {
	return func(a Answer, err error) (Answer, error) {
		r := Redactor(headers)
		a.Location, a.Reply = r.String(a.Location), r.Bytes(a.Reply)
		return a, r.Error(err)
	}
}

// Show returns the target's address for people, see [ShowURL].
func (t Target) Show() string { return ShowURL(t.URL) }

// ShowURL returns a URL without what may be a token: the user, the query, and path segments that look like one.
func ShowURL(u *url.URL) string {
	segments := strings.Split(u.EscapedPath(), "/")
	for i, s := range segments {
		if looksSecret(s) {
			segments[i] = redact.Mask
		}
	}
	short := strings.Join(segments, "/")
	if u.Host != "" {
		short = u.Scheme + "://" + u.Host + short
	}
	return short
}

// ShowAddress is [ShowURL] for an address as sent or typed. A query is masked.
func ShowAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return redact.Mask
	}
	short := ShowURL(u)
	if u.RawQuery != "" {
		short += "?" + redact.Mask
	}
	return short
}

// minTokenRun is how many letters and digits in a row, both present, look like a token. Words and versions do not.
const minTokenRun = 12

// looksSecret detects tokens such as in /services/T0/B0/XXXX of a chat or /hooks/UUID.
func looksSecret(segment string) bool {
	for run := range strings.FieldsFuncSeq(segment, func(r rune) bool { return !isLetter(r) && !isDigit(r) }) {
		if len(run) >= minTokenRun && strings.ContainsFunc(run, isLetter) && strings.ContainsFunc(run, isDigit) {
			return true
		}
	}
	return false
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isLetter(r rune) bool { return 'a' <= r|0x20 && r|0x20 <= 'z' }

// IsLoopback reports whether the target is on this computer.
func (t Target) IsLoopback() bool {
	host := t.URL.Hostname()
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && ip.IsLoopback()
}

// Unencrypted reports whether deliveries would go to another computer unencrypted.
func (t Target) Unencrypted() bool { return t.URL.Scheme == "http" && !t.IsLoopback() }

// Forbidden reports whether the address is refused, see [ErrForbidden]. A name is checked when it is dialled.
func (t Target) Forbidden() bool {
	ip, err := netip.ParseAddr(t.URL.Hostname())
	return err == nil && isForbidden(ip)
}

func address(u *url.URL) string {
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return net.JoinHostPort(u.Hostname(), port)
}
