package webhook

import "slices"

// Strength says what a signature that verifies proves, at best.
type Strength string

// The strengths, from the best to none.
const (
	StrengthBody      Strength = "body"      // every byte of the body
	StrengthParts     Strength = "parts"     // parts of the body
	StrengthTimestamp Strength = "timestamp" // when it was signed, and nothing of the body
	StrengthNothing   Strength = "nothing"   // that the sender once signed something
	StrengthToken     Strength = "token"     // that the sender has the secret, which each delivery shows
	StrengthKeyless   Strength = "keyless"   // nothing: anybody can make it
)

// strengths are the strengths in words for people, the best first.
var strengths = []struct {
	strength Strength
	words    string
}{
	{StrengthBody, "covers the body"},
	{StrengthParts, "covers only parts of the body: anybody who sees one delivery can forge the rest of the next"},
	{StrengthTimestamp, "covers only the timestamp: anybody who sees one delivery can forge the next"},
	{StrengthNothing, "covers neither body nor timestamp: anybody who sees one delivery can forge the next"},
	{StrengthToken, "token in clear: anybody who sees one delivery can forge the next"},
	{StrengthKeyless, "keyless hash: proves nothing"},
}

// String returns the strength in words for people.
func (s Strength) String() string {
	if i := s.rank(); i >= 0 {
		return strengths[i].words
	}
	return "unknown"
}

// rank orders strengths, the best first; it is -1 for one that is none.
func (s Strength) rank() int {
	for i, row := range strengths {
		if row.strength == s {
			return i
		}
	}
	return -1
}

// Strength says what a delivery that verifies in this scheme proves. It is
// empty for a scheme that can't be used.
func (s Scheme) Strength() Strength {
	c, err := compile(s)
	if err != nil {
		return ""
	}
	return c.strength()
}

func (c *compiled) strength() Strength {
	switch {
	case c.scheme.Kind == KindToken:
		return StrengthToken
	case !c.keyed():
		return StrengthKeyless
	case c.coversBody():
		return StrengthBody
	case has(c.parts, slotForm), c.coversPart():
		return StrengthParts
	case c.timestamp.kind != sourceNone:
		return StrengthTimestamp
	default:
		return StrengthNothing
	}
}

// coversPart reports whether a value of the body is signed, beside the
// timestamp.
func (c *compiled) coversPart() bool {
	return slices.ContainsFunc(c.parts, func(p part) bool {
		return p.slot == slotSource && p.source.kind == sourceJSON && !p.source.same(c.timestamp)
	})
}
