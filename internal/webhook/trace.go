package webhook

import (
	"crypto/subtle"
	"net/url"
	"slices"
	"time"
)

// Mask stands in place of what must not show.
const Mask = "***"

// Trace is how a verification went, step by step, for people who may see the secrets:
// what it expected of a forged delivery makes that verify, and what is signed may hold
// credentials of the sender. Of the secrets it holds the names alone, and of a scheme of
// tokens neither what was expected nor what was found.
type Trace struct {
	Verdict  Verdict
	Scheme   Scheme // with its defaults
	Strength Strength
	Secrets  []string // their names

	Signature Found
	Entries   []Entry // the signatures in its value, in order; nil if it can't be divided
	Timestamp Found
	Time      time.Time // that Timestamp names; zero if there is none, or it can't be read

	Parts    []Part     // what is signed, in order; nil of a scheme of tokens
	Expected []Expected // a signature for each secret; nil if a part is missing
}

// Found is the value at a source.
type Found struct {
	From  string // the source, empty for none
	Value string // the first, as received; [Mask] of a token
	Times int    // how often it is there
}

// Entry is one signature of a delivery.
type Entry struct {
	Text       string // as received, with its prefix; [Mask] of a token
	WellFormed bool   // it has its prefix, is in its encoding, and has the length of the hash
}

// Part is one part of what is signed.
type Part struct {
	Name   string // of the placeholder, such as body or header:ID; empty for text of the scheme
	Bytes  []byte // nil for the secret, and if there is a Reason
	Reason Reason // why the delivery does not have it; empty if it has
}

// Expected is the signature that one secret makes.
type Expected struct {
	Secret  string // its name
	Value   string // with its prefix; [Mask] of a token
	Matches bool   // a signature of the delivery equals it
}

// Trace verifies r at the time now, as [Verifier.Verify] does, and says how.
func (v *Verifier) Trace(r Request, now time.Time) Trace {
	c, d := v.scheme, &delivery{Request: r}
	t := Trace{Verdict: v.Verify(r, now), Scheme: c.scheme, Strength: c.strength(), Secrets: slices.Clone(v.names)}
	t.Signature, t.Timestamp = d.found(c.signature, c.scheme.Signature.From), d.found(c.timestamp, c.scheme.Timestamp.From)
	macs := t.divide(c)
	if t.Timestamp.Times > 0 {
		t.Time, _ = parseTime(t.Timestamp.Value, c.scheme.Timestamp.Unit)
	}
	whole := t.assemble(c, d)
	for i, key := range v.keys {
		if !whole {
			break
		}
		mac := key
		if c.scheme.Kind != KindToken {
			pieces, _ := c.partBytes(d, []byte(t.Timestamp.Value))
			mac = c.sum(pieces, key)
		}
		e := Expected{Secret: v.names[i], Value: c.scheme.Signature.Prefix + c.encode(mac)}
		for _, found := range macs {
			e.Matches = e.Matches || subtle.ConstantTimeCompare(mac, found) == 1
		}
		t.Expected = append(t.Expected, e)
	}
	if c.scheme.Kind == KindToken {
		t.hideTokens()
	}
	return t
}

// found returns the value at a source that is written as from.
func (d *delivery) found(p source, from string) Found {
	value, times := d.find(p)
	return Found{From: from, Value: string(value), Times: times}
}

// divide sets the entries, and the timestamp if it is beside them. It returns the
// decoded signatures.
func (t *Trace) divide(c *compiled) [][]byte {
	value, err := t.Signature.Value, error(nil)
	if c.signature.kind == sourceQuery {
		value, err = url.PathUnescape(value)
	}
	if err != nil || t.Signature.Times == 0 {
		return nil
	}
	tagged, e, ok := c.split(value)
	if c.timestamp.kind == sourceSibling && len(e.timestamps) > 0 {
		t.Timestamp.Value, t.Timestamp.Times = e.timestamps[0], len(e.timestamps)
	}
	if !ok {
		return nil
	}
	var macs [][]byte
	for _, text := range tagged {
		mac, ok := c.decode(text)
		if ok {
			macs = append(macs, mac)
		}
		t.Entries = append(t.Entries, Entry{text, ok})
	}
	return macs
}

// assemble sets the parts and reports whether none is missing.
func (t *Trace) assemble(c *compiled, d *delivery) bool {
	whole := c.timestamp.kind == sourceNone || t.Timestamp.Times == 1
	for _, p := range c.parts {
		part := Part{Name: p.name()}
		part.Bytes, part.Reason = c.pieceOf(p, d, []byte(t.Timestamp.Value))
		if p.slot == slotTimestamp && t.Timestamp.Times == 0 {
			part.Bytes, part.Reason = nil, ReasonTimestampMissing
		}
		whole = whole && part.Reason == ""
		t.Parts = append(t.Parts, part)
	}
	return whole
}

// hideTokens masks what is a secret, or may differ little from one.
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
