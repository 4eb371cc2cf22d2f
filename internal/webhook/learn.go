package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"
)

// MinLearnBodies is how many different bodies a scheme must match to be accepted as the sender's.
const MinLearnBodies = 3

// Bounds of a search.
const (
	learnSeeds  = 20      // deliveries in which schemes are searched
	learnWhole  = 3       // seeds that use the whole budget; the others share half of one
	learnTrials = 500_000 // ways of signing to try
	learnBytes  = 1 << 30 // bytes to hash
	minToken    = 8       // bytes that a secret must have to be searched in clear
)

// ErrControl reports that a search found a scheme for a made-up secret. Its other results are not credible.
var ErrControl = errors.New("the search found a scheme for a secret that was made up")

// Sample is a delivery to learn from.
type Sample struct {
	Request

	At time.Time // when it was received; zero if unknown
}

// LearnResult is the result of [Learn].
type LearnResult struct {
	Candidates []Candidate // schemes that every sample matches, best first
	Partial    []Candidate // schemes that some samples match, best first; empty if a candidate with a secret was found
	Bodies     int         // how many different bodies the samples have
	Untried    []string    // sources in the first delivery beyond the limits of the search
	Incomplete bool        // the search ended before everything was tried: bodies or headers are too large
}

// Learn finds the schemes in which samples were signed with one of secrets. It tries every header, parameter and body
// value that looks like a signature, with every form of key and some hundred templates. A scheme is found only if it
// matches; so samples that are unsigned, altered, or signed with another secret give no candidates. Times are not
// checked. The error is [ErrControl], or the error of ctx.
//
// Learn does not try schemes over several body values or over sorted forms. It takes well under a second for bodies
// of a few kB, and some seconds at most.
func Learn(ctx context.Context, samples []Sample, secrets []Secret, publicURL string) (LearnResult, error) {
	t := learner{ctx: ctx, samples: samples, url: publicURL, secrets: secrets, budget: &budget{learnTrials, learnBytes}}
	bodies := map[string]bool{}
	for _, s := range samples {
		bodies[string(s.Body)] = true
	}
	lesson := LearnResult{Bodies: len(bodies)}
	more := &budget{learnTrials / 2, learnBytes / 2}
	var all []Candidate
	for i, seed := range t.seeds() {
		if i == 0 {
			lesson.Untried = untriedSources(seed.Request)
		}
		searching := t
		if i >= learnWhole {
			searching.budget = more
		}
		found, err := searching.search(seed.Request)
		if err != nil {
			return LearnResult{}, err
		}
		for _, c := range found {
			if !slices.ContainsFunc(all, func(o Candidate) bool { return o.Scheme == c.Scheme }) {
				all = append(all, c)
			}
		}
		if slices.ContainsFunc(all, Candidate.conclusive) {
			break
		}
	}
	if len(all) == 0 {
		var err error
		if all, err = t.searchAltered(); err != nil {
			return LearnResult{}, err
		}
	}
	slices.SortStableFunc(all, Candidate.compare)
	for _, c := range all {
		if c.matchesAll() {
			lesson.Candidates = append(lesson.Candidates, c)
		} else {
			lesson.Partial = append(lesson.Partial, c)
		}
	}
	if slices.ContainsFunc(lesson.Candidates, Candidate.conclusive) {
		lesson.Partial = nil
	}
	lesson.Incomplete = len(all) == 0 && t.budget.exhausted()
	return lesson, nil
}

type budget struct{ trials, bytes int }

func (b *budget) spend(bytes int) {
	b.trials--
	b.bytes -= bytes
}

func (b *budget) exhausted() bool { return b.trials < 0 || b.bytes < 0 }

type learner struct {
	ctx        context.Context //nolint:containedctx // a search is one call
	samples    []Sample
	secrets    []Secret
	url        string
	commonOnly bool // try the most common templates only
	budget     *budget
}

// seeds returns the samples to search in: those with the smallest bodies.
func (t *learner) seeds() []Sample {
	seeds := slices.Clone(t.samples)
	slices.SortStableFunc(seeds, func(a, b Sample) int { return cmp.Compare(len(a.Body), len(b.Body)) })
	return seeds[:min(len(seeds), learnSeeds)]
}

func (t *learner) search(r Request) ([]Candidate, error) {
	schemes := t.schemes(r, t.secrets)
	if len(schemes) == 0 {
		return nil, t.ctx.Err()
	}
	c := *t
	c.budget = &budget{learnTrials, learnBytes}
	control := c.schemes(r, controlSecrets(t.secrets))
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(control, func(s Scheme) bool { return !s.AcceptWeak }) {
		return nil, ErrControl
	}
	var all []Candidate
	for _, s := range schemes {
		if c, ok := t.resolveEncoding(s); ok {
			all = append(all, c)
		}
	}
	return all, nil
}

// resolveEncoding picks the base64 alphabet that fits all samples, if the first sample fits both.
func (t *learner) resolveEncoding(s Scheme) (Candidate, bool) {
	either, ok := t.check(s)
	if !ok || s.Signature.Encoding != EncodingBase64Any {
		return either, ok
	}
	var fit []Candidate
	for _, encoding := range []string{EncodingBase64, EncodingBase64URL} {
		s.Signature.Encoding = encoding
		if c, ok := t.check(s); ok && slices.Equal(c.Matched, either.Matched) {
			fit = append(fit, c)
		}
	}
	if len(fit) == 1 {
		return fit[0], true
	}
	if len(fit) == 2 {
		either.Undecided = append(either.Undecided,
			"base64 or base64url: no signature contains a character that differs, so both are accepted")
	}
	return either, true
}

// check verifies all samples in a scheme, as a listener would.
func (t *learner) check(s Scheme) (Candidate, bool) {
	c := Candidate{Scheme: s.WithDefaults(), Strength: s.Strength(), Matched: make([]bool, len(t.samples))}
	usable, index := s.Key.usable(t.secrets)
	v, err := NewVerifier(s, usable)
	if err != nil {
		return c, false
	}
	var timed []Verdict
	for i, sample := range t.samples {
		verdict := v.Verify(sample.Request, sample.At)
		if verdict.SecretIndex < 0 {
			continue
		}
		c.Matched[i] = true
		c.Secrets = append(c.Secrets, index[verdict.SecretIndex])
		if !sample.At.IsZero() {
			timed = append(timed, verdict)
		}
	}
	c.Stale = staleness(timed, c.Scheme.Timestamp.Tolerance)
	slices.Sort(c.Secrets)
	c.Secrets = slices.Compact(c.Secrets)
	return c, len(c.Secrets) > 0 && c.prove(v.scheme, t.samples)
}

// stopped reports whether the search should end. The caller of a search checks the error of ctx.
func (t *learner) stopped() bool { return t.budget.exhausted() || t.ctx.Err() != nil }

func (t *learner) schemes(r Request, secrets []Secret) []Scheme {
	all := tokens(r, secrets)
	keys := keysOf(secrets)
	for _, l := range signatureCandidates(r, t.secrets) {
		if t.stopped() {
			break
		}
		m := signedInputsOf(r, l, t.url)
		for _, kind := range []string{KindHMAC, KindDigest, ""} {
			all = append(all, t.schemesOf(r, l, m, kind, keys)...)
		}
	}
	return all
}

func (t *learner) schemesOf(r Request, l signatureCandidate, m signedInputs, kind string, keys []derivedKey) []Scheme {
	if kind == KindHMAC && l.algorithm == AlgorithmMD5 {
		return nil // no scheme has it
	}
	s := Scheme{Kind: kind, Algorithm: l.algorithm, Signature: l.signature}
	if kind == "" {
		s.Kind, s.AcceptWeak, keys = KindDigest, true, []derivedKey{{}}
	}
	var all []Scheme
	d := &delivery{Request: r}
	tried := patterns[kind].all
	if t.commonOnly {
		tried = patterns[kind].common
	}
	for signed, timestamp := range m.templates(tried) {
		if t.stopped() {
			break
		}
		s.Signed, s.Timestamp, s.PublicURL = signed, timestamp, ""
		if strings.Contains(signed, "{url}") {
			s.PublicURL = t.url
		}
		all = append(all, t.matching(d, s, keys)...)
	}
	return all
}

// matching returns s once for each key that signs d.
func (t *learner) matching(d *delivery, s Scheme, keys []derivedKey) []Scheme {
	c, err := compile(s)
	if err != nil {
		return nil
	}
	t.budget.spend(4 * len(d.Body) * strings.Count(s.Signed+s.Timestamp.From+s.Signature.From, "json:")) // lookup cost
	macs, _, parts, why := c.readSigned(d)
	if why != "" {
		return nil
	}
	size := 0
	for _, p := range parts {
		size += len(p.Bytes)
	}
	var hits []Scheme
	for _, key := range keys {
		t.budget.spend(size)
		sum := c.mac(parts, key.bytes)
		if slices.ContainsFunc(macs, func(mac []byte) bool { return bytes.Equal(mac, sum) }) {
			s.Key = key.form
			hits = append(hits, s)
		}
	}
	return hits
}

type derivedKey struct {
	form  Key
	bytes []byte
}

// namedPrefix matches the prefix that some senders give their secrets.
var namedPrefix = regexp.MustCompile(`^[A-Za-z0-9]{2,12}[_-]`)

func keysOf(secrets []Secret) []derivedKey {
	var all []derivedKey
	for _, secret := range secrets {
		forms := []Key{{}, {Encoding: EncodingBase64}, {Encoding: EncodingHex}}
		forms = append(forms, Key{Normalize: NormalizeNFKD}, Key{Normalize: NormalizeNFC})
		if p := string(namedPrefix.Find(secret.Value)); p != "" {
			forms = append(forms, Key{StripPrefix: p}, Key{StripPrefix: p, Encoding: EncodingBase64},
				Key{StripPrefix: p, Encoding: EncodingHex})
		}
		for _, form := range forms {
			key, err := Scheme{Key: form}.WithDefaults().Key.derive(secret, "")
			if err == nil && !slices.ContainsFunc(all, func(d derivedKey) bool { return bytes.Equal(d.bytes, key) }) {
				all = append(all, derivedKey{form, key})
			}
		}
	}
	return all
}

// tokens returns the schemes in which r carries one of secrets in clear text.
func tokens(r Request, secrets []Secret) []Scheme {
	var all []Scheme
	for _, v := range allValues(r) {
		for _, secret := range secrets {
			prefix, ok := strings.CutSuffix(v.text, string(secret.Value))
			if !ok || len(secret.Value) < minToken || holdsSecret(prefix, secrets) ||
				(prefix != "" && !slices.Contains(prefixes(v.text), prefix)) {
				continue
			}
			s := Scheme{Kind: KindToken, Signature: Signature{From: v.from, Prefix: prefix}}
			if s.Check() == nil && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// controlSecrets returns made-up secrets in the form of the given ones: finding a scheme for them is an error.
func controlSecrets(secrets []Secret) []Secret {
	all := make([]Secret, len(secrets))
	for i, s := range secrets {
		sum := sha256.Sum256(append([]byte("control\x00"), s.Value...))
		all[i] = Secret{Value: append(namedPrefix.Find(s.Value), hex.EncodeToString(sum[:])...)}
	}
	return all
}

// searchAltered tries different white space around a secret, and bodies as they were before a proxy rewrote them.
func (t *learner) searchAltered() ([]Candidate, error) {
	for _, a := range alterations() {
		o := *t
		o.commonOnly = true
		var ok bool
		o.secrets, o.samples, ok = a.apply(t.secrets, t.samples)
		seeds := o.seeds()
		if !ok || len(seeds) == 0 || o.budget.exhausted() {
			continue
		}
		found, err := o.search(seeds[0].Request)
		for i := range found {
			found[i].Obstacle = a.words
		}
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}
