package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Candidate is a scheme that at least one sample matches.
type Candidate struct {
	Scheme   Scheme
	Strength Strength
	Secrets  []int  // which secrets matched a sample, from 0, ascending
	Matched  []bool // which samples match
	// Obstacle says why the scheme verifies no delivery yet: the secret has
	// other white space, or a proxy changes bodies. Empty if it verifies them.
	Obstacle string
	// Stale says that every sample was outside the tolerance when it was
	// received. Empty if one was inside, or none has a time.
	Stale     string
	Undecided []string // what the matching samples leave undecided, in words

	proven Strength // Strength of the parts that differed between matching samples
}

// staleness says how far matching deliveries are outside the tolerance; it is empty if one is inside.
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
	return fmt.Sprintf("every delivery was signed %s or more %s it was received, but timestamp.tolerance is %s",
		span(nearest.Abs().Truncate(time.Second)), side, span(tolerance))
}

// prove sets what the matching samples prove of the scheme s of c. It is false
// if a part was empty in all of them, as nothing shows then that it is signed.
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
			c.Undecided = append(c.Undecided, "{"+p.text+"} was the same in every delivery: another part or a fixed text may be signed instead")
		}
	}
	c.proven = varying.strength()
	return true
}

func (c Candidate) matchesAll() bool { return !slices.Contains(c.Matched, false) }

// conclusive reports whether the search can end here.
func (c Candidate) conclusive() bool { return c.matchesAll() && c.Strength != StrengthKeyless }

// compare orders candidates, the best first: more matches, a stronger proof, a simpler scheme.
func (c Candidate) compare(o Candidate) int {
	count := func(all ...bool) int {
		n := 0
		for _, one := range all {
			if one {
				n++
			}
		}
		return n
	}
	hash := func(s Scheme) int { // the strongest first
		return slices.Index([]string{AlgorithmSHA512, AlgorithmSHA256, AlgorithmSHA1, AlgorithmMD5}, s.Algorithm)
	}
	source := func(s string) int { return slices.Index([]string{"sig", "header", "query", "json", ""}, kindOf(s)) }
	steps := func(k Key) int { // that make the secret a key
		return count(k.Encoding != EncodingUTF8, k.StripPrefix != "", k.Normalize != NormalizeNone)
	}
	apart := func(s Scheme) int { // a timestamp beside the signature is more likely the time of signing
		if strings.HasPrefix(s.Timestamp.From, s.Signature.From[:strings.LastIndexByte(s.Signature.From, '/')+1]) {
			return 0
		}
		return 1
	}
	rewritten := func(c Candidate) int { return min(len(c.Obstacle), 1) }
	return cmp.Or(
		cmp.Compare(count(o.Matched...), count(c.Matched...)),
		cmp.Compare(rewritten(c), rewritten(o)),
		cmp.Compare(c.proven.rank(), o.proven.rank()),
		cmp.Compare(o.Strength.rank(), c.Strength.rank()), // of equal proofs, the scheme that claims less
		cmp.Compare(hash(c.Scheme), hash(o.Scheme)),
		cmp.Compare(steps(c.Scheme.Key), steps(o.Scheme.Key)),
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
