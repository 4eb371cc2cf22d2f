package webhook

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Verifier checks whether deliveries were signed in one scheme with any of its secrets. It is immutable and safe for
// concurrent use.
type Verifier struct {
	scheme *compiled
	names  []string
	keys   [][]byte
}

// Verdict is the result of a [Verifier] for one delivery.
type Verdict struct {
	OK                bool
	Reason            Reason        // why not OK; empty if OK
	SecretIndex       int           // which secret matched, from 0; -1 if none did
	SecretName        string        // its name; empty if none matched
	BodyAuthenticated bool          // OK, and every byte of the body is signed
	Timestamp         time.Time     // when it was signed; zero if the scheme has none, or no secret matched
	Skew              time.Duration // Timestamp less now: above 0, the sender's clock is ahead; 0 without a Timestamp
}

// NewVerifier returns a [*SchemeError] for a wrong setting, or an empty or missing secret.
func NewVerifier(s Scheme, secrets []Secret) (*Verifier, error) {
	c, err := compile(s)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, wrong("secrets", "no secret; set at least one as env:NAME or file:PATH")
	}
	v := &Verifier{scheme: c}
	for i, secret := range secrets {
		key, err := c.scheme.Key.derive(secret, fmt.Sprintf("secrets[%d]", i))
		if err != nil {
			return nil, err
		}
		v.names = append(v.names, secret.Name)
		v.keys = append(v.keys, key)
	}
	return v, nil
}

// Verify verifies r at the time now. It checks the timestamp last, to tell a wrong clock from a wrong secret.
func (v *Verifier) Verify(r Request, now time.Time) Verdict {
	no := func(why Reason) Verdict { return Verdict{Reason: why, SecretIndex: -1} }
	if len(r.Body) == 0 {
		return no(ReasonBodyEmpty)
	}
	d := &delivery{Request: r}
	macs, stamp, parts, why := v.scheme.readSigned(d)
	if why != "" {
		return no(why)
	}
	index := v.match(parts, macs)
	if index < 0 {
		return no(ReasonSignatureMismatch)
	}
	verdict := Verdict{OK: true, SecretIndex: index, SecretName: v.names[index]}
	verdict.BodyAuthenticated = v.scheme.strength() == StrengthBody
	v.scheme.checkTime(&verdict, stamp.Value, now)
	return verdict
}

// readSigned returns the signatures, the timestamp and the signed parts, or the first reason why they are unusable.
func (c *compiled) readSigned(d *delivery) (macs [][]byte, stamp Found, parts []Part, why Reason) {
	_, e, why := c.readSignatures(d)
	if why == "" {
		stamp, why = c.readTimestamp(d, e)
	}
	if why == "" {
		parts, why = c.readParts(d, stamp)
	}
	return e.macs, stamp, parts, why
}

// match returns -1 if no secret matches. It compares all secrets with all entries, in a time that shows no match.
func (v *Verifier) match(parts []Part, macs [][]byte) int {
	found, index := 0, -1
	for i, key := range v.keys {
		want := v.scheme.mac(parts, key)
		for _, mac := range macs {
			same := subtle.ConstantTimeCompare(want, mac)
			index = subtle.ConstantTimeSelect(same&^found, i, index)
			found |= same
		}
	}
	return index
}

func (c *compiled) readTimestamp(d *delivery, e entries) (at Found, why Reason) {
	at = d.found(c.timestamp, c.scheme.Timestamp.From)
	switch c.timestamp.kind {
	case sourceNone:
		return at, ""
	case sourceSibling:
		if at.Times = len(e.timestamps); at.Times > 0 {
			at.Value = e.timestamps[0]
		}
	}
	return at, unlessOnce(at.Times, ReasonTimestampMissing)
}

// checkTime refuses an authentic delivery whose timestamp is malformed or beyond the tolerance.
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

// Reason says in one word why a delivery did not verify. It is empty if the delivery did.
type Reason string

// The reasons.
const (
	ReasonSignatureMissing   Reason = "signature_missing"   // no signature at the place that the scheme names
	ReasonSignatureMalformed Reason = "signature_malformed" // not in the form of the scheme, empty, or cut
	ReasonSignatureMismatch  Reason = "signature_mismatch"  // of no secret: forged, altered, or another secret
	ReasonHeaderRepeated     Reason = "header_repeated"     // the signature, or a signed part, occurs twice
	ReasonTimestampMissing   Reason = "timestamp_missing"
	ReasonTimestampMalformed Reason = "timestamp_malformed"
	ReasonTimestampTooOld    Reason = "timestamp_too_old"   // authentic, but older than the tolerance
	ReasonTimestampInFuture  Reason = "timestamp_in_future" // authentic, but further ahead than the tolerance
	ReasonBodyEmpty          Reason = "body_empty"
	ReasonSignedPartMissing  Reason = "signed_part_missing" // a signed header, parameter or member is missing
)

// WellFormed reports whether the delivery had a signature in the form of the scheme, and all signed parts.
func (r Reason) WellFormed() bool {
	return slices.Contains([]Reason{
		ReasonSignatureMismatch, ReasonTimestampMalformed, ReasonTimestampTooOld, ReasonTimestampInFuture,
	}, r)
}

// How many consecutive refusals indicate a wrong clock, and how far apart their skews may be.
const (
	skewVerdicts = 3
	skewSpread   = time.Minute
)

// SkewDetector detects a wrong clock from verdicts. It is safe for concurrent use.
type SkewDetector struct {
	mu     sync.Mutex
	recent []Verdict // refused only for their timestamps, all different
	found  bool      // since the last delivery that verified
}

// Observe reports whether v shows that a clock is wrong, once until a delivery verifies, and by how much: above 0 the
// sender's clock is ahead. It takes three authentic deliveries with different timestamps that were refused for about
// the same skew, and no verified delivery between them.
func (d *SkewDetector) Observe(v Verdict) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.OK {
		d.recent, d.found = d.recent[:0], false
		return 0, false
	}
	isSame := func(o Verdict) bool { return o.Timestamp.Equal(v.Timestamp) } // repeats show nothing
	if d.found || v.Timestamp.IsZero() || slices.ContainsFunc(d.recent, isSame) {
		return 0, false
	}
	if d.recent = append(d.recent, v); len(d.recent) < skewVerdicts {
		return 0, false
	}
	sorted := slices.SortedFunc(slices.Values(d.recent), func(a, b Verdict) int { return cmp.Compare(a.Skew, b.Skew) })
	d.recent = d.recent[1:]
	if sorted[len(sorted)-1].Skew-sorted[0].Skew > skewSpread {
		return 0, false
	}
	d.found = true
	return sorted[len(sorted)/2].Skew, true
}

// Mask replaces secrets in output.
const Mask = "***"

// Trace describes a verification step by step, for people who may see the signed data, which may hold the sender's
// credentials. It can't be used to sign: of a signature that the delivery lacks it holds only the start. It holds
// only the names of secrets, and for a token scheme neither the expected nor the received value.
type Trace struct {
	Verdict  Verdict
	Scheme   Scheme // with its defaults
	Strength Strength
	Secrets  []string // their names

	Signature Found
	Entries   []Entry // the signatures in its value, in order; nil if the value can't be split
	Timestamp Found
	Time      time.Time // parsed Timestamp; zero if it is absent or unreadable

	Parts    []Part     // the signed parts, in order; nil for a token scheme
	Expected []Expected // a signature for each secret; nil if a part is missing
}

// Found is the value at a source.
type Found struct {
	From  string // the source, empty for none
	Value string // the first, as received; [Mask] for a token
	Times int    // how often it occurs
}

// Entry is one signature of a delivery.
type Entry struct {
	Text       string // as received, with its prefix; [Mask] for a token
	WellFormed bool   // it has its prefix, is in its encoding, and has the length of the hash
}

// Part is one part of the signed bytes.
type Part struct {
	Name   string // of the placeholder, such as body or header:ID; empty for the scheme's own text
	Bytes  []byte // nil for the secret, and if there is a Reason
	Reason Reason // why the delivery lacks it; empty if it does not
}

// expectedStart is how much of a missing signature is shown: enough to compare by eye, too little to forge.
const expectedStart = 6

// Expected is the signature that one secret makes.
type Expected struct {
	Secret  string // its name
	Value   string // with its prefix; only its start if it does not match; [Mask] for a token
	Matches bool   // a signature of the delivery equals it
}

// Trace verifies r at the time now, as [Verifier.Verify] does, and describes each step.
func (v *Verifier) Trace(r Request, now time.Time) Trace {
	c, d := v.scheme, &delivery{Request: r}
	t := Trace{Verdict: v.Verify(r, now), Scheme: c.scheme, Strength: c.strength(), Secrets: slices.Clone(v.names)}
	var found entries
	t.Signature, found, _ = c.readSignatures(d)
	t.Entries = found.signatures
	var untimed, missing Reason
	if t.Timestamp, untimed = c.readTimestamp(d, found); t.Timestamp.Times > 0 {
		t.Time, _ = parseTime(t.Timestamp.Value, c.scheme.Timestamp.Unit)
	}
	t.Parts, missing = c.readParts(d, t.Timestamp)
	for i, key := range v.keys {
		if untimed != "" || missing != "" {
			break
		}
		mac := c.mac(t.Parts, key)
		e, value := Expected{Secret: v.names[i]}, encodings[c.scheme.Signature.Encoding].encode(mac)
		for _, one := range found.macs {
			e.Matches = e.Matches || subtle.ConstantTimeCompare(mac, one) == 1
		}
		if !e.Matches {
			value = value[:min(len(value), expectedStart)] + "…"
		}
		e.Value = c.scheme.Signature.Prefix + value
		t.Expected = append(t.Expected, e)
	}
	if c.scheme.Kind == KindToken {
		t.hideTokens()
	}
	return t
}

// hideTokens masks secrets, and values that may differ little from one.
func (t *Trace) hideTokens() {
	if t.Signature.Times > 0 {
		t.Signature.Value = Mask
	}
	for i := range t.Entries {
		t.Entries[i].Text = Mask
	}
	for i := range t.Expected {
		t.Expected[i].Value = Mask
	}
}
