package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Errors of [Sign], beside [*SchemeError].
var (
	// ErrUnsignable reports that the signature is inside the body: it can be verified, but not made.
	ErrUnsignable = errors.New("the signature is inside the body")
	// ErrUnsignedPart reports that the request lacks a part that is signed.
	ErrUnsignedPart = errors.New("a signed part is not in the request")
)

// Signed is what a sender adds to a request.
type Signed struct {
	Header   []Field // each replaces all the request's headers of that name
	RawQuery string  // the query to send, instead of the request's own
}

// Sign returns what a sender using s with secret, at that time, would add to r. A signed header or query parameter
// that r lacks, such as a delivery's id, is derived from a hash of the body, so that it stays the same when the
// delivery is sent again. A timestamp inside the body is used unchanged.
func Sign(s Scheme, secret Secret, r Request, at time.Time) (Signed, error) {
	c, err := compile(s)
	if err != nil {
		return Signed{}, err
	}
	key, err := c.scheme.Key.derive(secret, "secret")
	if err != nil {
		return Signed{}, err
	}
	if c.signature.kind == sourceJSON {
		return Signed{}, fmt.Errorf("sign: %s: %w", c.scheme.Signature.From, ErrUnsignable)
	}
	m := &signer{c: c, d: &delivery{Request: r}, out: Signed{RawQuery: r.RawQuery}}
	stamp, err := m.setTimestamp(at)
	if err == nil {
		err = m.addMissing()
	}
	if err != nil {
		return Signed{}, err
	}
	parts, why := c.readParts(m.d, Found{Value: stamp, Times: 1})
	if why != "" {
		return Signed{}, fmt.Errorf("sign: %s: %w", why, ErrUnsignedPart)
	}
	signature := string(key) // a token
	if c.scheme.Kind != KindToken {
		signature = encodings[c.scheme.Signature.Encoding].encode(c.mac(parts, key))
	}
	m.put(c.signature, m.signatureValue(signature, stamp))
	return m.out, nil
}

// Apply returns r with the signature's headers and query.
func (s Signed) Apply(r Request) Request {
	r.RawQuery, r.Header = s.RawQuery, slices.Clone(r.Header)
	for _, f := range s.Header {
		same := func(old Field) bool { return strings.EqualFold(old.Name, f.Name) }
		at := slices.IndexFunc(r.Header, same)
		r.Header = slices.DeleteFunc(r.Header, same)
		if at < 0 {
			at = len(r.Header)
		}
		r.Header = slices.Insert(r.Header, at, f)
	}
	return r
}

type signer struct {
	c   *compiled
	d   *delivery // the request so far
	out Signed
}

func (m *signer) setTimestamp(at time.Time) (string, error) {
	now := formatTime(at, m.c.scheme.Timestamp.Unit)
	switch m.c.timestamp.kind {
	case sourceNone:
		return "", nil
	case sourceJSON:
		value, times := m.d.find(m.c.timestamp)
		if times != 1 {
			return "", fmt.Errorf("sign: timestamp.from %s: %w", m.c.scheme.Timestamp.From, ErrUnsignedPart)
		}
		return string(value), nil
	case sourceHeader:
		m.put(m.c.timestamp, now)
	}
	return now, nil
}

func (m *signer) addMissing() error {
	for _, p := range m.c.parts {
		if p.source.kind == sourceNone {
			continue
		}
		_, times := m.d.find(p.source)
		switch {
		case times > 1:
			return fmt.Errorf("sign: {%s} appears %d times: %w", p.source.name, times, ErrUnsignedPart)
		case times == 1:
		case p.source.kind == sourceJSON:
			return fmt.Errorf("sign: {json:%s}: %w", p.source.name, ErrUnsignedPart)
		default:
			sum := sha256.Sum256(m.d.Body)
			m.put(p.source, "msg_"+hex.EncodeToString(sum[:12]))
		}
	}
	return nil
}

func (m *signer) signatureValue(encoded, stamp string) string {
	sig := m.c.scheme.Signature
	between, within := sig.separators()
	if between == "" {
		return sig.Prefix + encoded
	}
	entry := sig.Tag + within + sig.Prefix + encoded
	if m.c.timestamp.kind == sourceSibling {
		return m.c.timestamp.name + within + stamp + between + entry
	}
	return entry
}

func (m *signer) put(p source, value string) {
	if p.kind == sourceQuery {
		m.out.RawQuery = setParameter(m.out.RawQuery, p.name, value)
	} else {
		m.out.Header = append(m.out.Header, Field{Name: p.name, Value: value})
	}
	m.d.Request = m.out.Apply(m.d.Request)
}

// setParameter returns query with a single parameter of that name, at the end, and all others unchanged.
func setParameter(query, name, value string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if bare, err := url.QueryUnescape(key); pair != "" && (err != nil || bare != name) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(append(kept, escape(name)+"="+escape(value)), "&")
}

// escape percent-encodes s: spaces become %20 and a plus %2B, so that a reader restores both.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// ErrUnsigned reports that there is no signature to alter.
var ErrUnsigned = errors.New("there is no signature")

// CorruptSignatures returns r with one character of each signature changed. The signatures keep their form, but
// are wrong. pick chooses from 0 to n-1. Errors are [*SchemeError], [ErrUnsignable] and [ErrUnsigned].
func CorruptSignatures(s Scheme, r Request, pick func(n int) int) (Request, error) {
	c, err := compile(s)
	if err != nil {
		return r, err
	}
	corrupted := false
	alter := func(value string) string {
		altered := c.alter(value, pick)
		corrupted = corrupted || altered != value
		return altered
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
	if !corrupted {
		return r, fmt.Errorf("corrupt: %s: %w", c.scheme.Signature.From, ErrUnsigned)
	}
	return r, nil
}

// alter changes each signature in a value.
func (c *compiled) alter(value string, pick func(n int) int) string {
	sig := c.scheme.Signature
	between, within := sig.separators()
	if between == "" {
		return alterEntry(value, sig.Prefix, pick)
	}
	items := strings.Split(value, between)
	for i, item := range items {
		if tag, entry, ok := strings.Cut(item, within); ok && strings.TrimSpace(tag) == sig.Tag {
			items[i] = tag + within + alterEntry(entry, sig.Prefix, pick)
		}
	}
	return strings.Join(items, between)
}

// alterEntry changes a digit in the first half of a signature, because the last digit of base64 may have unused
// bits. 0 and 1 are digits of hex and base64, and valid in a token.
func alterEntry(entry, prefix string, pick func(n int) int) string {
	digits, ok := strings.CutPrefix(entry, prefix)
	if !ok || digits == "" {
		return entry
	}
	b := []byte(digits)
	at := pick((len(b) + 1) / 2)
	if b[at] == '0' {
		b[at] = '1'
	} else {
		b[at] = '0'
	}
	return prefix + string(b)
}
