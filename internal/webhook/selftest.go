package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrSelfTest says that a scheme passes its check, but does not protect
// deliveries as it claims: its settings contradict each other.
var ErrSelfTest = errors.New("the scheme fails its own test")

// SelfTest signs a synthetic delivery with a test secret, verifies it, and
// returns it. The error is a [*SchemeError], or [ErrSelfTest] if the delivery
// does not verify, or still verifies with another secret, after the tolerance,
// or with another body where the scheme covers the body.
func SelfTest(s Scheme, at time.Time) (Request, error) {
	c, bad := compile(s)
	if bad != nil {
		return Request{}, bad
	}
	secret := c.scheme.Key.testSecret("a secret for the self-test")
	r, err := c.testDelivery(secret, at)
	if err != nil {
		return r, err
	}
	judge := func(secret Secret, r Request, at time.Time) Verdict {
		v, err := NewVerifier(s, []Secret{secret})
		if err != nil {
			return Verdict{}
		}
		return v.Verify(r, at)
	}
	fails := func(what string, v Verdict) error { return fmt.Errorf("%w: %s: %s", ErrSelfTest, what, v.Reason) }
	if v := judge(secret, r, at); !v.OK {
		return r, fails("what it signs does not verify", v)
	}
	if v := judge(c.scheme.Key.testSecret("quite another secret"), r, at); v.OK && c.keyed() {
		return r, fails("it verifies with another secret", v)
	}
	if v := judge(secret, r, at.Add(c.scheme.Timestamp.Tolerance+time.Hour)); v.OK && c.timestamp.kind != sourceNone {
		return r, fails("it still verifies long after", v)
	}
	altered := r
	altered.Body = append(bytes.Clone(r.Body), ' ')
	if v := judge(secret, altered, at); v.OK && c.coversBody() {
		return r, fails("it verifies with another body", v)
	}
	return r, nil
}

// testSecret returns a secret with that text, encoded as the key requires.
func (k Key) testSecret(text string) Secret {
	switch k.Encoding {
	case EncodingBase64:
		text = base64.StdEncoding.EncodeToString([]byte(text))
	case EncodingHex:
		text = hex.EncodeToString([]byte(text))
	}
	return Secret{Name: "made up", Value: []byte(k.StripPrefix + text)}
}

// testDelivery returns a signed delivery with every part that the scheme reads.
func (c *compiled) testDelivery(secret Secret, at time.Time) (Request, error) {
	r := Request{Method: "POST", Path: "/", Header: []Field{{"Content-Type", "application/json"}}}
	var err error
	if has(c.parts, slotForm) {
		r.Header[0].Value = "application/x-www-form-urlencoded"
		r.Body = []byte("number=1Z&status=delivered")
	} else if r.Body, err = c.testBody(at, ""); err != nil {
		return r, err
	}
	key, bad := c.scheme.Key.derive(secret, "secret")
	if bad != nil {
		return r, bad
	}
	m := newSigner(c, r)
	value, err := m.sign(key, at)
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrSelfTest, err)
	}
	if c.signature.kind == sourceJSON { // it does not cover the whole body, and is added last
		m.d.Body, err = c.testBody(at, value)
	} else {
		m.put(c.signature, value)
	}
	return m.d.Request, err
}

// testBody returns a JSON body with a value at each source of the scheme. The
// error is [ErrSelfTest] if one of them stands inside another.
func (c *compiled) testBody(at time.Time, signature string) ([]byte, error) {
	var root any
	var err error
	put := func(p source, value string) {
		if p.kind == sourceJSON && err == nil {
			root, err = setAt(root, p.path, value, true)
		}
	}
	for i, p := range c.parts {
		if p.slot == slotSource && !p.source.same(c.timestamp) {
			put(p.source, "part "+strconv.Itoa(i))
		}
	}
	put(c.timestamp, formatTime(at, c.scheme.Timestamp.Unit))
	put(c.signature, signature)
	if err != nil {
		return nil, fmt.Errorf("%w: places in the body contradict each other", ErrSelfTest)
	}
	if root == nil {
		root = []any{map[string]any{"eventId": "00000000-0000-4000-8000-000000000000", "event": "router.delivered"}}
	}
	return json.Marshal(root)
}
