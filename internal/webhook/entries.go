package webhook

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// entries are the signatures in a value, and the timestamps next to them.
type entries struct {
	signatures []Entry
	macs       [][]byte // of well-formed entries, decoded: each has the length of the hash
	timestamps []string
}

// readSignatures splits and decodes the signature's value. It ignores entries with other tags and, next to a
// well-formed entry, malformed ones: a sender that rotates keys lists both. why is empty if a signature is found.
func (c *compiled) readSignatures(d *delivery) (at Found, e entries, why Reason) {
	at = d.found(c.signature, c.scheme.Signature.From)
	why = unlessOnce(at.Times, ReasonSignatureMissing)
	if at.Times == 0 {
		return at, e, why
	}
	e, ok := c.split(at.Value)
	if !ok {
		e.signatures, e.macs = nil, nil
	}
	switch {
	case why != "":
	case ok && len(e.signatures) == 0:
		why = ReasonSignatureMissing
	case len(e.macs) == 0:
		why = ReasonSignatureMalformed
	}
	return at, e, why
}

// separators returns the separators between entries and within one; both are empty in a format with a single entry.
func (s Signature) separators() (between, within string) {
	switch s.Format {
	case FormatList:
		return cmp.Or(s.Separator, " "), ","
	case FormatKV:
		return cmp.Or(s.Separator, ","), "="
	default:
		return "", ""
	}
}

// split divides a value as received, and decodes its signatures.
func (c *compiled) split(s string) (e entries, ok bool) {
	if c.signature.kind == sourceQuery {
		var err error
		if s, err = url.PathUnescape(s); err != nil { // a plus is a base64 digit here, not a space
			return e, false
		}
	}
	between, within := c.scheme.Signature.separators()
	if between == "" {
		e.add(c, s)
		return e, true
	}
	for item := range strings.SplitSeq(s, between) {
		if item = strings.Trim(item, " \t"); item == "" {
			continue
		}
		tag, value, ok := strings.Cut(item, within)
		switch {
		case !ok:
			return e, false
		case tag == c.scheme.Signature.Tag:
			e.add(c, value)
		case c.timestamp.kind == sourceSibling && tag == c.timestamp.name:
			e.timestamps = append(e.timestamps, value)
		}
	}
	return e, len(e.timestamps) <= 1
}

func (e *entries) add(c *compiled, signature string) {
	mac, ok := c.decode(signature)
	if ok {
		e.macs = append(e.macs, mac)
	}
	e.signatures = append(e.signatures, Entry{signature, ok})
}

// encodings are the ways in which keys and signatures are written, except as plain text.
var encodings = map[string]struct {
	encode func([]byte) string
	decode func(string) ([]byte, error)
}{
	EncodingHex:       {hex.EncodeToString, hex.DecodeString},
	EncodingBase64:    {base64.StdEncoding.EncodeToString, stdBase64},
	EncodingBase64URL: {base64.RawURLEncoding.EncodeToString, urlBase64},
	EncodingBase64Any: {base64.StdEncoding.EncodeToString, anyBase64},
}

// decode is false for a signature that is cut, lacks its prefix or is badly encoded. A token becomes its digest.
func (c *compiled) decode(s string) ([]byte, bool) {
	sig := c.scheme.Signature
	s, ok := strings.CutPrefix(s, sig.Prefix)
	if !ok || s == "" {
		return nil, false
	}
	if c.scheme.Kind == KindToken {
		return tokenDigest([]byte(s)), true
	}
	mac, err := encodings[sig.Encoding].decode(s)
	return mac, err == nil && len(mac) == c.newHash().Size()
}

func stdBase64(s string) ([]byte, error) { return strictBase64(base64.StdEncoding, s) }

func anyBase64(s string) ([]byte, error) {
	if b, err := stdBase64(s); err == nil {
		return b, nil
	}
	return urlBase64(s)
}

func urlBase64(s string) ([]byte, error) {
	if strings.HasSuffix(s, "=") {
		return strictBase64(base64.URLEncoding, s)
	}
	return strictBase64(base64.RawURLEncoding, s)
}

// tokenDigest returns a hash of a token. Hashes have one length, so comparing them does not reveal the token's.
func tokenDigest(token []byte) []byte {
	sum := sha256.Sum256(token)
	return sum[:]
}

// maxSeconds is the last second that a timestamp may have: the end of the year 9999.
const maxSeconds = 253402300799

// parseTime accepts only digits for seconds and milliseconds.
func parseTime(s, unit string) (time.Time, bool) {
	switch unit {
	case UnitRFC3339:
		t, err := time.Parse(time.RFC3339, s)
		return t, err == nil
	case UnitRFC2822:
		return parseRFC2822(s)
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return time.Time{}, false
	}
	if unit == UnitMilliseconds {
		return time.UnixMilli(int64(n)), n <= maxSeconds*1000+999
	}
	return time.Unix(int64(n), 0), n <= maxSeconds
}

// parseRFC2822 accepts only zone names that mean UTC: for others, package time would invent the offset.
func parseRFC2822(s string) (time.Time, bool) {
	for _, layout := range []string{
		"Mon, 2 Jan 2006 15:04:05 -0700",
		"2 Jan 2006 15:04:05 -0700",
		"Mon, 2 Jan 2006 15:04:05 GMT",
		"2 Jan 2006 15:04:05 GMT",
		"Mon, 2 Jan 2006 15:04:05 UT",
		"Mon, 2 Jan 2006 15:04:05 UTC",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// formatTime is the reverse of parseTime.
func formatTime(t time.Time, unit string) string {
	switch unit {
	case UnitRFC3339:
		return t.UTC().Format(time.RFC3339)
	case UnitRFC2822:
		return t.UTC().Format("Mon, 2 Jan 2006 15:04:05 +0000")
	case UnitMilliseconds:
		return strconv.FormatInt(t.UnixMilli(), 10)
	default:
		return strconv.FormatInt(t.Unix(), 10)
	}
}
