package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// ErrUnsigned says that there is no signature to alter.
var ErrUnsigned = errors.New("there is no signature")

// CorruptSignatures returns r with one character of each signature changed. The
// signatures keep their form, and are wrong. pick chooses from 0 to n-1. Errors
// are [*SchemeError], [ErrUnsignable] and [ErrUnsigned].
func CorruptSignatures(s Scheme, r Request, pick func(n int) int) (Request, error) {
	c, bad := compile(s)
	if bad != nil {
		return r, bad
	}
	altered := 0
	alter := func(value string) string {
		value, n := c.alter(value, pick)
		altered += n
		return value
	}
	switch c.signature.kind {
	case sourceJSON:
		return r, fmt.Errorf("corrupt: %s: %w", c.scheme.Signature.From, ErrUnsignable)
	case sourceQuery:
		d := &delivery{Request: r}
		if value, times := d.find(c.signature); times > 0 {
			if bare, err := url.PathUnescape(string(value)); err == nil {
				r.RawQuery = setParameter(r.RawQuery, c.signature.name, alter(bare))
			}
		}
	default:
		r.Header = slices.Clone(r.Header)
		for i, f := range r.Header {
			if strings.EqualFold(f.Name, c.signature.name) {
				r.Header[i].Value = alter(f.Value)
			}
		}
	}
	if altered == 0 {
		return r, fmt.Errorf("corrupt: %s: %w", c.scheme.Signature.From, ErrUnsigned)
	}
	return r, nil
}

// alter changes the signatures in a value, and returns how many there were.
func (c *compiled) alter(value string, pick func(n int) int) (string, int) {
	sig := c.scheme.Signature
	between, within := sig.separators()
	if between == "" {
		return alterEntry(value, sig.Prefix, pick)
	}
	altered := 0
	items := strings.Split(value, between)
	for i, item := range items {
		tag, entry, ok := strings.Cut(item, within)
		if !ok || strings.TrimSpace(tag) != sig.Tag {
			continue
		}
		entry, n := alterEntry(entry, sig.Prefix, pick)
		items[i] = tag + within + entry
		altered += n
	}
	return strings.Join(items, between), altered
}

// alterEntry changes a digit in the first half of a signature, as the last
// digit of base64 may have unused bits. 0 and 1 are digits of hex and base64,
// and valid in a token.
func alterEntry(entry, prefix string, pick func(n int) int) (string, int) {
	digits, ok := strings.CutPrefix(entry, prefix)
	if !ok || digits == "" {
		return entry, 0
	}
	b := []byte(digits)
	at := pick((len(b) + 1) / 2)
	if b[at] == '0' {
		b[at] = '1'
	} else {
		b[at] = '0'
	}
	return prefix + string(b), 1
}
