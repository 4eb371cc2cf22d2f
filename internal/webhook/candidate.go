package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
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
	// Stale says that every sample was outside the tolerance. Empty if one was inside, or none has a time.
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

// prove is false if a part was empty in all samples, as nothing shows then that it is signed.
func (c *Candidate) prove(s *compiled, samples []Sample) bool {
	seen := make([]map[string]bool, len(s.parts))
	for i, sample := range samples {
		if !c.Matched[i] {
			continue
		}
		_, _, parts, _ := s.readSigned(&delivery{Request: sample.Request})
		for k, p := range s.parts {
			if seen[k] == nil {
				seen[k] = map[string]bool{}
			}
			if p.source.kind != sourceNone || p.name == partTimestamp {
				seen[k][string(parts[k].Bytes)] = true
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
			if p.name == partTimestamp {
				varying.timestamp = source{}
			}
			if count(c.Matched...) == 1 {
				continue
			}
			c.Undecided = append(c.Undecided,
				"{"+p.name+"} was the same in every delivery: another part or a fixed text may be signed instead")
		}
	}
	c.proven = varying.strength()
	return true
}

func (c Candidate) matchesAll() bool { return !slices.Contains(c.Matched, false) }

func (c Candidate) conclusive() bool { return c.matchesAll() && c.Strength != StrengthKeyless }

func count(all ...bool) int {
	n := 0
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

// compare orders candidates, the best first: more matches, a stronger proof, a simpler scheme.
func (c Candidate) compare(o Candidate) int {
	hash := func(s Scheme) int { // the strongest first
		return slices.Index([]string{AlgorithmSHA512, AlgorithmSHA256, AlgorithmSHA1, AlgorithmMD5}, s.Algorithm)
	}
	source := func(s string) int {
		kind, _, _ := strings.Cut(s, ":")
		return slices.Index([]string{"sig", "header", "query", "json", ""}, kind)
	}
	steps := func(k Key) int { // that make the secret a key
		return count(k.Encoding != EncodingUTF8, k.StripPrefix != "", k.Normalize != NormalizeNone)
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
		cmp.Compare(o.Scheme.akin(), c.Scheme.akin()),
		cmp.Compare(source(c.Scheme.Timestamp.From), source(o.Scheme.Timestamp.From)),
		cmp.Compare(len(c.Scheme.Signed), len(o.Scheme.Signed)),
	)
}

// akin counts words that names share with the signature's, as X-Acme-Time does with X-Acme-Signature.
func (s Scheme) akin() int {
	words := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(name),
			func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	}
	own := slices.DeleteFunc(words(s.Signature.From), func(word string) bool { return word == "x" })
	n := 0
	for _, word := range words(s.Timestamp.From + " " + s.Signed) {
		n += count(slices.Contains(own, word))
	}
	return n
}

// RivalsOf says what candidates that fit as well as a scheme read in another place: the
// deliveries do not tell which of them is the sender's. A scheme that is no candidate has none.
func (r LearnResult) RivalsOf(s Scheme) []string {
	s = s.WithDefaults()
	i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Scheme.elsewhere(s) == "" })
	if i < 0 {
		return nil
	}
	var all []string
	for _, o := range r.Candidates {
		words := o.Scheme.elsewhere(s)
		if words != "" && o.proven == r.Candidates[i].proven && o.Obstacle == r.Candidates[i].Obstacle {
			all = append(all, words)
		}
	}
	return all
}

// elsewhere says what s reads in another place than o; it is empty if both judge all deliveries alike.
func (s Scheme) elsewhere(o Scheme) string {
	var all []string
	for _, of := range []struct{ name, mine, other string }{
		{"signed", s.Signed, o.Signed},
		{"timestamp.from", s.Timestamp.From, o.Timestamp.From},
		{"signature.from", s.Signature.From, o.Signature.From},
		{"signature.tag", s.Signature.Tag, o.Signature.Tag},
		{"kind", s.Kind, o.Kind},
		{"algorithm", s.Algorithm, o.Algorithm},
	} {
		if of.mine != of.other {
			all = append(all, of.name+" "+of.mine+" in place of "+cmp.Or(of.other, "none"))
		}
	}
	return strings.Join(all, ", ")
}
