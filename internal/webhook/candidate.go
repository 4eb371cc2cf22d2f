package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Candidate is a scheme that samples match.
type Candidate struct {
	Scheme   Scheme
	Strength Strength
	Secrets  []int  // which secrets matched a sample, from 0, ascending
	Matched  []bool // which samples match
	// Obstacle says why the scheme verifies nothing as things are: the secret
	// has space around it, or bodies are changed on their way. Empty if it does.
	Obstacle string
	// Stale says that no sample verifies at the time when it was received: each
	// was signed too long before. Empty if one does, or none has a time.
	Stale string
	Open  []string // what the samples that match do not decide, in words

	proven Strength // Strength, without the parts that were the same in every sample that matches
}

// staleness says of deliveries that match a scheme how far their times are out
// of what it allows, nothing if one is not.
func staleness(matching []Verdict, tolerance time.Duration) string {
	var nearest time.Duration
	for i, v := range matching {
		if v.OK || v.Timestamp.IsZero() {
			return ""
		}
		if i == 0 || v.Skew.Abs() < nearest.Abs() {
			nearest = v.Skew
		}
	}
	if nearest == 0 {
		return ""
	}
	side := "before"
	if nearest > 0 {
		side = "after"
	}
	return fmt.Sprintf("every delivery was signed %s or more %s it was received, and timestamp.tolerance is %s",
		span(nearest.Abs().Truncate(time.Second)), side, span(tolerance))
}

// prove finds what the samples that match prove of the scheme s of c. It is
// false if a part was empty in all of them: nothing shows then that it is signed.
func (c *Candidate) prove(s *compiled, samples []Sample) bool {
	seen := make([]map[string]bool, len(s.parts))
	matching := 0
	for i, sample := range samples {
		if !c.Matched[i] {
			continue
		}
		matching++
		_, _, pieces, _ := s.readSigned(&delivery{Request: sample.Request})
		for k, p := range s.parts {
			if seen[k] == nil {
				seen[k] = map[string]bool{}
			}
			if p.slot == slotSource || p.slot == slotTimestamp {
				seen[k][string(pieces[k])] = true
			}
		}
	}
	varying := *s
	varying.parts = nil
	for k, p := range s.parts {
		switch {
		case seen[k][""] && len(seen[k]) == 1:
			return false
		case len(seen[k]) != 1:
			varying.parts = append(varying.parts, p)
		default:
			if p.slot == slotTimestamp {
				varying.timestamp = source{}
			}
			if matching == 1 {
				continue
			}
			c.Open = append(c.Open, "{"+cmp.Or(p.text, "timestamp")+"} was the same in every delivery: another part or a fixed text may be signed in its place")
		}
	}
	c.proven = varying.strength()
	return true
}

func (c Candidate) matchesAll() bool { return !slices.Contains(c.Matched, false) }

// conclusive reports whether nothing better is to be looked for.
func (c Candidate) conclusive() bool { return c.matchesAll() && c.Strength != StrengthKeyless }

// compare puts the better candidate first: what matches more, proves more, and
// is simpler.
func (c Candidate) compare(o Candidate) int {
	hits := func(c Candidate) int {
		n := 0
		for _, m := range c.Matched {
			if m {
				n++
			}
		}
		return n
	}
	hash := func(s Scheme) int { // the strongest first
		return slices.Index([]string{AlgorithmSHA512, AlgorithmSHA256, AlgorithmSHA1, AlgorithmMD5}, s.Algorithm)
	}
	source := func(s string) int { return slices.Index([]string{"sig", "header", "query", "json", ""}, kindOf(s)) }
	plain := func(k Key) int {
		n := 0
		for _, word := range []bool{k.Encoding != EncodingUTF8, k.StripPrefix != "", k.Normalize != NormalizeNone} {
			if word {
				n++
			}
		}
		return n
	}
	apart := func(s Scheme) int { // a timestamp beside the signature is more likely the time of signing
		if strings.HasPrefix(s.Timestamp.From, s.Signature.From[:strings.LastIndexByte(s.Signature.From, '/')+1]) {
			return 0
		}
		return 1
	}
	rewritten := func(c Candidate) int { return min(len(c.Obstacle), 1) }
	return cmp.Or(
		cmp.Compare(hits(o), hits(c)),
		cmp.Compare(rewritten(c), rewritten(o)),
		cmp.Compare(c.proven.rank(), o.proven.rank()),
		cmp.Compare(o.Strength.rank(), c.Strength.rank()), // of two that prove the same, the one that claims less
		cmp.Compare(hash(c.Scheme), hash(o.Scheme)),
		cmp.Compare(plain(c.Scheme.Key), plain(o.Scheme.Key)),
		cmp.Compare(source(c.Scheme.Signature.From), source(o.Scheme.Signature.From)),
		cmp.Compare(source(c.Scheme.Timestamp.From), source(o.Scheme.Timestamp.From)),
		cmp.Compare(apart(c.Scheme), apart(o.Scheme)),
		cmp.Compare(len(c.Scheme.Signed), len(o.Scheme.Signed)),
	)
}

func kindOf(s string) string {
	kind, _, _ := strings.Cut(s, ":")
	return kind
}
