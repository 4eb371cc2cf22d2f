package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Bounds of what a search looks at in one delivery. They keep a body that was
// made for it from costing more than a search is worth.
const (
	maxScalars    = 200 // values of a body
	maxBodyDepth  = 5   // levels of a body
	maxCandidates = 48  // values that may be signatures
	maxTimestamps = 14  // values that may be the time of signing
	maxValues     = 64  // values outside the body that may be signed beside it
	maxBodyValues = 24  // values of the body that may be signed without the rest
	maxValueSize  = 256 // bytes of such a value
)

// locatedValue is a value of a delivery and where it stands.
type locatedValue struct {
	from string // as in signature.from
	text string
}

// headerValues returns the headers of r that stand there once.
func headerValues(r Request) []locatedValue {
	var all []locatedValue
	for _, f := range r.Header {
		if isToken(f.Name) && len(r.values(f.Name)) == 1 {
			all = append(all, locatedValue{"header:" + f.Name, f.Value})
		}
	}
	return all
}

// queryValues returns the parameters of the query that stand there once,
// without their escapes if bare.
func queryValues(r Request, bare bool) []locatedValue {
	var all []locatedValue
	for pair := range strings.SplitSeq(r.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil || name == "" {
			continue
		}
		if _, times := (&delivery{Request: r}).parameter(name); times != 1 {
			continue
		}
		if bare {
			if value, err = url.PathUnescape(value); err != nil {
				continue
			}
		}
		all = append(all, locatedValue{"query:" + name, value})
	}
	return all
}

// bodyValues returns the texts, numbers and booleans of a JSON body, of arrays
// those of the first element alone: a delivery may hold one event or many.
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

// signatureCandidate is a value that has the form of a signature, and which form that is.
type signatureCandidate struct {
	signature  Signature
	algorithm  string
	timestamps []locatedValue // in kv and list: the other entries, at sig:K
}

// signatureCandidates returns the ways to read a value of r as a signature that are tried.
func signatureCandidates(r Request) []signatureCandidate {
	all := allSignatureCandidates(r)
	return all[:min(len(all), maxCandidates)]
}

// allSignatureCandidates returns every such way. What is called a signature stands first.
func allSignatureCandidates(r Request) []signatureCandidate {
	var all []signatureCandidate
	for _, values := range [][]locatedValue{headerValues(r), queryValues(r, true), bodyValues(r.Body)} {
		for _, v := range values {
			all = append(all, v.signatureCandidates()...)
		}
	}
	slices.SortStableFunc(all, func(a, b signatureCandidate) int { return cmp.Compare(a.nameRank(), b.nameRank()) })
	return all
}

// holdsSecret reports whether one of secrets, such as the API key, stands in text
// that would be a part of a scheme. Schemes are shown.
func holdsSecret(text string, secrets []Secret) bool {
	return slices.ContainsFunc(secrets, func(s Secret) bool {
		return len(s.Value) >= minToken && strings.Contains(text, string(s.Value))
	})
}

// holdsSecret likewise looks at all that a scheme would take from l.
func (l signatureCandidate) holdsSecret(secrets []Secret) bool {
	return holdsSecret(l.signature.Prefix, secrets) || holdsSecret(l.signature.Tag, secrets) ||
		slices.ContainsFunc(l.timestamps, func(f locatedValue) bool { return holdsSecret(f.from, secrets) })
}

// nameRank is 0 for a value whose name says that it is a signature, else 1.
func (l signatureCandidate) nameRank() int {
	name := strings.ToLower(l.signature.From)
	for _, word := range []string{"sig", "hmac", "hash", "mac", "digest", "auth", "token", "verif"} {
		if strings.Contains(name, word) {
			return 0
		}
	}
	return 1
}

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
			all = append(all, signatureCandidate{Signature{From: v.from, Prefix: prefix, Encoding: f.encoding}, f.algorithm, nil})
		}
	}
	return all
}

// entryCandidates reads a value as one with several entries.
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

// prefixes returns what may stand before a signature: nothing, or a word and
// what parts it from the signature.
func prefixes(s string) []string {
	all := []string{""}
	for i := range min(len(s), 40) {
		if strings.IndexByte("=: ,", s[i]) >= 0 && i+1 < len(s) {
			all = append(all, s[:i+1])
		}
	}
	return all
}

// hashForm is how the bytes of a hash are written, and which hash is so long.
type hashForm struct{ encoding, algorithm string }

// hashForms returns the forms that s has.
func hashForms(s string) []hashForm {
	var all []hashForm
	add := func(encoding string, b []byte, err error) {
		if err != nil {
			return
		}
		for algorithm, size := range map[string]int{AlgorithmSHA256: 32, AlgorithmSHA512: 64, AlgorithmSHA1: 20, AlgorithmMD5: 16} {
			if len(b) == size {
				all = append(all, hashForm{encoding, algorithm})
			}
		}
	}
	if len(s) < 22 || len(s) > 128 {
		return nil
	}
	b, err := hex.DecodeString(s)
	add(EncodingHex, b, err)
	b, err = strictBase64(base64.StdEncoding, s)
	url, errURL := urlBase64(s)
	if err == nil && errURL == nil {
		add(EncodingBase64Any, b, nil)
		return all
	}
	add(EncodingBase64, b, err)
	add(EncodingBase64URL, url, errURL)
	return all
}
