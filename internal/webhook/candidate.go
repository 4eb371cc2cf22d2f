package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Candidate is a scheme that at least one sample matches.
type Candidate struct {
	Scheme   Scheme
	Strength Strength
	Secrets  []int  // which secrets matched a sample, from 0, ascending
	Matched  []bool // which samples match
	// Obstacle says why the scheme does not verify deliveries yet: the secret has different white space, or a proxy
	// changes bodies. Empty if it verifies them.
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

// prove is false if a part was empty in all samples, because nothing then shows that it is signed.
func (c *Candidate) prove(s *compiled, samples []Sample) bool {
	var signed [][]Part // of each matching sample
	for i, sample := range samples {
		if c.Matched[i] {
			_, _, parts, _ := s.readSigned(&delivery{Request: sample.Request})
			signed = append(signed, parts)
		}
	}
	varying := *s
	varying.parts = nil
	for k, p := range s.parts {
		one := signed[0][k].Bytes
		differs := func(parts []Part) bool { return !bytes.Equal(parts[k].Bytes, one) }
		switch {
		case p.source.kind == sourceNone && p.name != partTimestamp, slices.ContainsFunc(signed, differs):
			varying.parts = append(varying.parts, p)
			continue
		case len(one) == 0:
			return false
		case p.name == partTimestamp:
			varying.timestamp = source{}
		}
		if len(signed) > 1 {
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
	steps := func(k Key) int { // that turn the secret into a key
		return count(k.Encoding != EncodingUTF8, k.StripPrefix != "", k.Normalize != NormalizeNone)
	}
	rewritten := func(c Candidate) int { return min(len(c.Obstacle), 1) }
	return cmp.Or(
		cmp.Compare(count(o.Matched...), count(c.Matched...)),
		cmp.Compare(rewritten(c), rewritten(o)),
		cmp.Compare(c.proven.rank(), o.proven.rank()),
		cmp.Compare(o.Strength.rank(), c.Strength.rank()), // for equal proofs, the scheme that claims less
		cmp.Compare(hash(c.Scheme), hash(o.Scheme)),
		cmp.Compare(steps(c.Scheme.Key), steps(o.Scheme.Key)),
		cmp.Compare(source(c.Scheme.Signature.From), source(o.Scheme.Signature.From)),
		cmp.Compare(o.Scheme.akin(), c.Scheme.akin()),
		cmp.Compare(source(c.Scheme.Timestamp.From), source(o.Scheme.Timestamp.From)),
		cmp.Compare(len(c.Scheme.Signed), len(o.Scheme.Signed)),
	)
}

// akin counts the words that other names share with the signature's name, as X-Acme-Time does with X-Acme-Signature.
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

// RivalsOf describes how candidates that fit as well as s read other places: the deliveries do not show which one
// the sender uses. A scheme that is not a candidate has no rivals.
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

// elsewhere says which places s reads differently from o; it is empty if both read all deliveries alike.
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

// Limits of what a search reads from one delivery. They bound its cost for bodies built to be expensive.
const (
	maxScalars    = 200 // values of a body
	maxBodyDepth  = 5   // levels of a body
	maxCandidates = 48  // values tried as signatures
	maxTimestamps = 14  // values tried as the time of signing
	maxValues     = 64  // values outside the body tried as signed together with it
	maxBodyValues = 24  // values of the body tried as signed without the rest
	maxValueSize  = 256 // bytes of such a value
)

type locatedValue struct {
	from string // as in signature.from
	text string
}

// headerValues returns the headers of r whose names are not repeated.
func headerValues(r Request) []locatedValue {
	var all []locatedValue
	for _, f := range r.Header {
		if IsToken(f.Name) && len(r.values(f.Name)) == 1 {
			all = append(all, locatedValue{"header:" + f.Name, f.Value})
		}
	}
	return all
}

// queryValues returns the query parameters of r whose names are not repeated. Values keep their percent escapes.
func queryValues(r Request) []locatedValue {
	var all []locatedValue
	for pair := range strings.SplitSeq(r.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil || name == "" {
			continue
		}
		if _, times := (&delivery{Request: r}).parameter(name); times == 1 {
			all = append(all, locatedValue{"query:" + name, value})
		}
	}
	return all
}

// bodyValues reads only the first element of an array, because a delivery may have one event or many.
func bodyValues(body []byte) []locatedValue {
	if !json.Valid(body) {
		return nil
	}
	var all []locatedValue
	var walk func(raw []byte, pointer string, depth int)
	walk = func(raw []byte, pointer string, depth int) {
		switch {
		case len(all) == maxScalars || depth > maxBodyDepth:
		case raw[0] == '{':
			for m := range jsonscan.Values(raw, 0) {
				if name, valid := jsonscan.Text(m.Name); valid {
					walk(m.Raw, pointer+"/"+jsonscan.Escape(name), depth+1)
				}
			}
		case raw[0] == '[':
			for e := range jsonscan.Values(raw, 0) {
				walk(e.Raw, pointer+"/0", depth+1)
				break
			}
		default:
			if s, ok := scalar(raw); ok && pointer != "" {
				all = append(all, locatedValue{"json:" + pointer, s})
			}
		}
	}
	walk(jsonscan.Whole(body).Raw, "", 0)
	return all
}

// allValues returns the values of headers, query and body. Query values are unescaped.
func allValues(r Request) []locatedValue {
	all := headerValues(r)
	for _, v := range queryValues(r) {
		if bare, err := url.PathUnescape(v.text); err == nil {
			all = append(all, locatedValue{v.from, bare})
		}
	}
	return append(all, bodyValues(r.Body)...)
}

type signatureCandidate struct {
	signature  Signature
	algorithm  string
	timestamps []locatedValue // in kv and list: the other entries, at sig:K
}

// signatureCandidates returns the likeliest maxCandidates ways to read a value of r as a signature. It leaves out
// those whose scheme would contain one of secrets.
func signatureCandidates(r Request, secrets []Secret) []signatureCandidate {
	all := allSignatureCandidates(r)
	all = all[:min(len(all), maxCandidates)]
	return slices.DeleteFunc(all, func(l signatureCandidate) bool { return l.holdsSecret(secrets) })
}

// allSignatureCandidates puts values whose name suggests a signature first.
func allSignatureCandidates(r Request) []signatureCandidate {
	var all []signatureCandidate
	for _, v := range allValues(r) {
		all = append(all, v.signatureCandidates()...)
	}
	slices.SortStableFunc(all, func(a, b signatureCandidate) int { return cmp.Compare(a.nameRank(), b.nameRank()) })
	return all
}

// holdsSecret reports whether text contains one of secrets, such as the API key. Schemes are displayed, so their
// text must not.
func holdsSecret(text string, secrets []Secret) bool {
	return slices.ContainsFunc(secrets, func(s Secret) bool {
		return len(s.Value) >= minToken && strings.Contains(text, string(s.Value))
	})
}

// holdsSecret reports whether a scheme built from l would contain one of secrets.
func (l signatureCandidate) holdsSecret(secrets []Secret) bool {
	return holdsSecret(l.signature.Prefix, secrets) || holdsSecret(l.signature.Tag, secrets) ||
		slices.ContainsFunc(l.timestamps, func(f locatedValue) bool { return holdsSecret(f.from, secrets) })
}

// nameRank is 0 for a value whose name suggests a signature, else 1.
func (l signatureCandidate) nameRank() int {
	name := strings.ToLower(l.signature.From)
	for _, word := range []string{"sig", "hmac", "hash", "mac", "digest", "auth", "token", "verif"} {
		if strings.Contains(name, word) {
			return 0
		}
	}
	return 1
}

// signatureCandidates returns the ways to read v as a signature.
func (v locatedValue) signatureCandidates() []signatureCandidate {
	var all []signatureCandidate
	for _, format := range []string{FormatKV, FormatList} {
		own, _ := (Signature{Format: format}).separators()
		for _, between := range append([]string{own}, separatorsBetween...) {
			if of := v.entryCandidates(Signature{From: v.from, Format: format, Separator: between}); len(of) > 0 {
				all = append(all, of...)
				break
			}
		}
	}
	if len(all) > 0 {
		return all
	}
	for _, prefix := range prefixes(v.text) {
		for _, f := range hashForms(v.text[len(prefix):]) {
			all = append(all,
				signatureCandidate{Signature{From: v.from, Prefix: prefix, Encoding: f.encoding}, f.algorithm, nil})
		}
	}
	return all
}

// entryCandidates reads v as a list of entries in the format of s.
func (v locatedValue) entryCandidates(s Signature) []signatureCandidate {
	between, within := s.separators()
	if between == within || !strings.Contains(v.text, between) && (s.Format != FormatList || between != " ") {
		return nil // one entry is a signature with a prefix
	}
	var all []signatureCandidate
	var stamps []locatedValue
	seen := map[string]bool{}
	for item := range strings.SplitSeq(v.text, between) {
		tag, value, ok := strings.Cut(strings.Trim(item, " \t"), within)
		if !ok || tag == "" || strings.ContainsAny(tag, strings.Join(separatorsBetween, "")) {
			return nil
		}
		of := hashForms(value)
		if len(of) == 0 {
			stamps = append(stamps, locatedValue{"sig:" + tag, value})
		}
		for _, f := range of {
			if key := tag + " " + f.encoding + " " + f.algorithm; !seen[key] {
				seen[key] = true
				s.Tag, s.Encoding = tag, f.encoding
				all = append(all, signatureCandidate{Scheme{Signature: s}.WithDefaults().Signature, f.algorithm, nil})
			}
		}
	}
	for i := range all {
		all[i].timestamps = stamps
	}
	return all
}

// prefixes returns the empty prefix, and every prefix of s that ends in a separator.
func prefixes(s string) []string {
	all := []string{""}
	for i := range min(len(s), 40) {
		if strings.IndexByte("=: ,", s[i]) >= 0 && i+1 < len(s) {
			all = append(all, s[:i+1])
		}
	}
	return all
}

type hashForm struct{ encoding, algorithm string }

// hashForms returns the encodings in which s is a hash. The alphabet of base64 may remain undecided.
func hashForms(s string) []hashForm {
	if len(s) < 22 || len(s) > 128 {
		return nil
	}
	tried := []string{EncodingHex, EncodingBase64, EncodingBase64URL}
	_, err := stdBase64(s)
	if _, errURL := urlBase64(s); err == nil && errURL == nil {
		tried = []string{EncodingHex, EncodingBase64Any}
	}
	var all []hashForm
	for _, encoding := range tried {
		b, err := encodings[encoding].decode(s)
		for algorithm, newHash := range hashes {
			if err == nil && len(b) == newHash().Size() {
				all = append(all, hashForm{encoding, algorithm})
			}
		}
	}
	return all
}
