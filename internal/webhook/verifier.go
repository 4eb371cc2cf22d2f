package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"time"
)

// Verifier checks whether deliveries were signed in one scheme with any of some
// secrets. It is immutable and safe for concurrent use.
type Verifier struct {
	scheme *compiled
	names  []string
	keys   [][]byte
}

// Verdict is the result of a [Verifier] for one delivery.
type Verdict struct {
	OK                bool
	Reason            Reason        // why not; empty if OK
	SecretIndex       int           // which secret matched, from 0; -1 if none did
	SecretName        string        // its name; empty if none matched
	BodyAuthenticated bool          // OK, and every byte of the body is signed
	Timestamp         time.Time     // when it was signed; zero if the scheme has none, or no secret matched
	Skew              time.Duration // Timestamp less now: above 0, the sender's clock is ahead; 0 without a Timestamp
}

// NewVerifier returns a verifier of s with secrets. Its error is a
// [*SchemeError]: a setting is wrong, or a secret is empty or missing.
func NewVerifier(s Scheme, secrets []Secret) (*Verifier, error) {
	c, bad := compile(s)
	if bad != nil {
		return nil, bad
	}
	if len(secrets) == 0 {
		return nil, wrong("secrets", "no secret; set at least one as env:NAME or file:PATH")
	}
	v := &Verifier{scheme: c}
	for i, secret := range secrets {
		key, bad := c.scheme.Key.derive(secret, fmt.Sprintf("secrets[%d]", i))
		if bad != nil {
			return nil, bad
		}
		v.names = append(v.names, secret.Name)
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Verify says whether r is authentic at the time now. The timestamp is
// checked last, so that a wrong clock can be told from a wrong secret.
func (v *Verifier) Verify(r Request, now time.Time) Verdict {
	no := func(why Reason) Verdict { return Verdict{Reason: why, SecretIndex: -1} }
	if len(r.Body) == 0 {
		return no(ReasonBodyEmpty)
	}
	d := &delivery{Request: r}
	macs, stamp, pieces, why := v.scheme.readSigned(d)
	if why != "" {
		return no(why)
	}
	index := v.match(pieces, macs)
	if index < 0 {
		return no(ReasonSignatureMismatch)
	}
	verdict := Verdict{OK: true, SecretIndex: index, SecretName: v.names[index], BodyAuthenticated: v.scheme.coversBody()}
	v.scheme.checkTime(&verdict, string(stamp), now)
	return verdict
}

// readSigned returns the signatures of a delivery, its timestamp, and the bytes
// of each part that is signed.
func (c *compiled) readSigned(d *delivery) (macs [][]byte, stamp []byte, pieces [][]byte, why Reason) {
	e, why := c.entries(d)
	if why == "" {
		stamp, why = c.readTimestamp(d, e)
	}
	if why == "" {
		pieces, why = c.partBytes(d, stamp)
	}
	return e.macs, stamp, pieces, why
}

// match returns the index of the secret that made one of macs, -1 if none did.
// It compares every secret with every entry, so its time does not depend on
// which of them match.
func (v *Verifier) match(pieces, macs [][]byte) int {
	found, index := 0, -1
	for i, key := range v.keys {
		var want []byte
		if v.scheme.scheme.Kind == KindToken {
			want = tokenDigest(key)
		} else {
			want = v.scheme.sum(pieces, key)
		}
		for _, mac := range macs {
			if v.scheme.scheme.Kind == KindToken {
				mac = tokenDigest(mac)
			}
			same := subtle.ConstantTimeCompare(want, mac)
			index = subtle.ConstantTimeSelect(same&^found, i, index)
			found |= same
		}
	}
	return index
}

// tokenDigest returns a hash of a token. Hashes have one length, so comparing
// them reveals none.
func tokenDigest(token []byte) []byte {
	sum := sha256.Sum256(token)
	return sum[:]
}

// readTimestamp returns the timestamp as it was sent, nil if the scheme has
// none.
func (c *compiled) readTimestamp(d *delivery, e entries) ([]byte, Reason) {
	switch c.timestamp.kind {
	case sourceNone:
		return nil, ""
	case sourceSibling:
		if len(e.timestamps) == 0 {
			return nil, ReasonTimestampMissing
		}
		return []byte(e.timestamps[0]), ""
	}
	return d.findOnce(c.timestamp, ReasonTimestampMissing)
}

// checkTime refuses an authentic delivery whose timestamp is malformed or
// beyond the tolerance.
func (c *compiled) checkTime(v *Verdict, stamp string, now time.Time) {
	if c.timestamp.kind == sourceNone {
		return
	}
	refuse := func(why Reason) { v.OK, v.BodyAuthenticated, v.Reason = false, false, why }
	signed, ok := parseTime(stamp, c.scheme.Timestamp.Unit)
	if !ok {
		refuse(ReasonTimestampMalformed)
		return
	}
	v.Timestamp, v.Skew = signed, signed.Sub(now)
	switch tolerance := c.scheme.Timestamp.Tolerance; {
	case v.Skew < -tolerance:
		refuse(ReasonTimestampTooOld)
	case v.Skew > tolerance:
		refuse(ReasonTimestampInFuture)
	}
}
