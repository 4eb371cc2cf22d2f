package webhook

import (
	"iter"
	"slices"
	"strings"
)

// patterns are what senders sign, by kind of scheme; a keyless digest has none. Only the common ones are tried on
// altered deliveries. Capitals are placeholders: B the body or a part of it, T the timestamp, I another value of the
// delivery, K the secret, M the method, P the path, U the public URL, V the version before the signature. Other
// characters are literal. For equal candidates, the earlier pattern is preferred.
var patterns = map[string]struct{ common, all []string }{
	KindHMAC: {[]string{"B", "T.B", "TB", "T:B", "V:T:B", "I.T.B", "UB"}, []string{
		"B", "T.B", "TB", "T:B", "T\nB", "T|B", "T-B", "T_B", "T,B", "T&B", "V:T:B", "V.T.B", "B.T", "BT", "B:T", "B|T",
		"B&T", "I.T.B", "T.I.B", "I.B", "IB", "I:B", "I|B", "B.I", "BI", "I:T:B", "I|T|B", "ITB", "TIB", "I\nT\nB",
		"UB", "BU", "U.B", "U:B", "U\nB", "U|B", "TUB", "T.U.B", "UTB", "U.T.B", "MUB", "M.U.B", "TMUB", "M\nU\nB",
		"PB", "P.B", "P:B", "MPB", "M.P.B", "M\nP\nB", "TPB", "T.P.B", "TMPB", "T.M.P.B", "MPTB", "M\nP\nT\nB", "T\nM\nP\nB",
		"M:P:T:B", "T", "I", "I.T", "T.I", "IT", "TI", "I:T", "T:I", "P", "U", "TP", "T.P", "TK", "KT",
	}},
	KindDigest: {[]string{"B/K", "KB", "BK"}, []string{
		"B/K", "KB", "BK", "K.B", "B.K", "K:B", "B:K", "K/B", "K|B", "B|K", "K&B", "B&K", "K\nB", "B\nK", "KBK",
		"TBK", "KTB", "TKB", "BTK", "KBT", "T.B.K", "K.T.B", "T.K.B", "K:T:B", "T:B:K", "K&T&B", "T&B&K", "KTBK",
		"IBK", "KIB", "KITB", "ITBK", "UBK", "KUB",
		"K&T&I&K", "K&T&I", "T&I&K", "KTIK", "KTI", "KIT", "TIK", "ITK", "KTK", "K&T&K", "KT", "TK", "K&T", "T&K", "K.T",
		"T.K", "K:T", "T:K", "KI", "IK", "K&I", "I&K", "K.I", "I.K", "KIK",
	}},
	"": {nil, []string{"B"}},
}

type signedInputs struct {
	body           []string    // {body} and parts of it
	timestamps     []Timestamp // outside the body
	bodyTimestamps []Timestamp // in the body
	values         []string    // placeholders of other values outside the body
	bodyValues     []string    // placeholders of other values in the body
	versions       []string    // versions
	url            string

	untried []string // sources beyond the limits
}

// transportHeaders are headers that clients and proxies set, never signed.
var transportHeaders = []string{
	"accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-encoding", "content-length",
	"content-type", "cookie", "forwarded", "pragma", "te", "traceparent", "tracestate", "transfer-encoding", "user-agent",
	"via", "x-real-ip", "cdn-loop",
}

func isTransportHeader(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "x-forwarded-") || slices.Contains(transportHeaders, name)
}

func signedInputsOf(r Request, l signatureCandidate, publicURL string) signedInputs {
	m := signedInputs{body: bodyParts(r.Body), url: publicURL}
	for _, version := range []string{strings.TrimRight(l.signature.Prefix, "=: ,"), l.signature.Tag} {
		if version != "" {
			m.versions = append(m.versions, version)
		}
	}
	for _, v := range l.timestamps {
		m.addTimestamp(&m.timestamps, v)
	}
	for _, v := range slices.Concat(headerValues(r), queryValues(r), bodyValues(r.Body)) {
		kind, name, _ := strings.Cut(v.from, ":")
		if v.from == l.signature.From || len(v.text) > maxValueSize || kind == "header" && isTransportHeader(name) {
			continue
		}
		timestamps, values := &m.timestamps, &m.values
		if kind == "json" {
			timestamps, values = &m.bodyTimestamps, &m.bodyValues
		}
		if kind == "query" || !m.addTimestamp(timestamps, v) { // a timestamp in the query can be signed, but not checked
			*values = append(*values, "{"+v.from+"}")
		}
	}
	m.values = m.limit(m.values, maxValues)
	m.bodyValues = m.limit(m.bodyValues, maxBodyValues)
	return m
}

func untriedSources(r Request) []string {
	all := signedInputsOf(r, signatureCandidate{}, "").untried
	candidates := allSignatureCandidates(r)
	for _, l := range candidates[min(len(candidates), maxCandidates):] {
		all = append(all, l.signature.From)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// limit returns the first n placeholders, and adds the others to untried.
func (m *signedInputs) limit(placeholders []string, n int) []string {
	n = min(n, len(placeholders))
	for _, p := range placeholders[n:] {
		m.untried = append(m.untried, strings.Trim(p, "{}"))
	}
	return placeholders[:n]
}

// bodyParts returns the placeholders of the body and, for JSON, of its first element and data member.
func bodyParts(body []byte) []string {
	all := []string{"{body}"}
	d := &delivery{Request: Request{Body: body}}
	for _, pointer := range []string{"/0", "/0/data", "/data"} {
		at, _ := parseSource("json:" + pointer)
		if value, times := d.find(at); times == 1 && len(value) > 0 && (value[0] == '{' || value[0] == '[') {
			all = append(all, "{json:"+pointer+"}")
		}
	}
	return all
}

// addTimestamp adds a value to times if it is a plausible time of signing.
func (m *signedInputs) addTimestamp(times *[]Timestamp, v locatedValue) bool {
	unit, ok := timeUnit(v.text)
	switch {
	case ok && len(*times) < maxTimestamps:
		*times = append(*times, Timestamp{From: v.from, Unit: unit})
	case ok:
		m.untried = append(m.untried, v.from)
	}
	return ok
}

// timeUnit returns the unit in which s is a time of this century.
func timeUnit(s string) (string, bool) {
	for _, unit := range []string{UnitSeconds, UnitMilliseconds, UnitRFC3339, UnitRFC2822} {
		if t, ok := parseTime(s, unit); ok && t.Year() > 2000 && t.Year() < 2100 {
			return unit, true
		}
	}
	return "", false
}

// templates uses body values only where the body itself is not signed.
func (m signedInputs) templates(patterns []string) iter.Seq2[string, Timestamp] {
	return func(yield func(string, Timestamp) bool) {
		for _, p := range patterns {
			if m.url == "" && strings.Contains(p, "U") {
				continue
			}
			for _, t := range m.timestampsFor(p) {
				for _, signed := range m.expand(p) {
					if !yield(signed, t) {
						return
					}
				}
			}
		}
	}
}

// timestampsFor returns the timestamps to try in a pattern: one empty timestamp if it has none.
func (m signedInputs) timestampsFor(pattern string) []Timestamp {
	switch {
	case !strings.Contains(pattern, "T"):
		return []Timestamp{{}}
	case strings.Contains(pattern, "B") && strings.Contains(pattern, "I"):
		return m.timestamps
	default:
		return append(slices.Clip(m.timestamps), m.bodyTimestamps...)
	}
}

func (m signedInputs) expand(pattern string) (all []string) {
	pieces := m.values
	if !strings.Contains(pattern, "B") {
		pieces = append(slices.Clip(pieces), m.bodyValues...)
	}
	for _, b := range choices(pattern, "B", m.body) {
		for _, piece := range choices(pattern, "I", pieces) {
			for _, v := range choices(pattern, "V", m.versions) {
				all = append(all, strings.NewReplacer("B", b, "T", "{timestamp}", "I", piece, "K", "{secret}", "M", "{method}",
					"P", "{path}", "V", v, "U", "{url}").Replace(pattern))
			}
		}
	}
	return all
}

// choices returns the values for a capital of a pattern: one empty value if the pattern does not contain it.
func choices(pattern, capital string, values []string) []string {
	if !strings.Contains(pattern, capital) {
		return []string{""}
	}
	return values
}
