package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Mask stands in place of what was redacted.
const Mask = "***"

// longSegment is how long a segment of a path is, in bytes, that may be a
// token.
const longSegment = 16

// minSecretInside is how long a secret is, in bytes, that is looked for inside
// of texts.
const minSecretInside = 4

// Redactor masks the values of a delivery, so that it can be shown to others.
// It keeps the structure and what is known to be harmless.
//
// Of the body these texts and numbers stay: event, eventId, times, status and
// its names, transitTime, carrierCode. Tracking numbers, order numbers and the
// service's identifiers become others, equal ones the same within all that one
// Redactor redacts. Every other text becomes [Mask] and every other number
// 0. A body that is no JSON becomes [Mask]. Of the headers the names stay,
// and the values of those that say what the body is and who the sender's
// program is; of the query the names. Long segments of the path, and the
// sender's address, go. What holds one of Secrets goes wherever it is.
//
// Names of members stay, whatever they say.
type Redactor struct {
	Secrets []string
	Key     []byte // random; aliases are derived with it

	// Fold returns identifiers that are the same, but written differently, in
	// one form; nil if none are.
	Fold func(string) string
}

// Redact returns c with everything masked, and marked so. c stays as it is.
func (r Redactor) Redact(c Capture) Capture {
	c.Redacted, c.From = true, ""
	c.Body = r.body(c.Body)
	header := make([]Field, len(c.Header))
	for i, f := range c.Header {
		header[i] = Field{f.Name, r.header(f, len(c.Body))}
	}
	c.Header = header
	c.Path, c.RawQuery = r.path(c.Path), r.query(c.RawQuery)
	return c
}

// holdsSecret reports whether s is one of the secrets, or contains one of at
// least minSecretInside bytes.
func (r Redactor) holdsSecret(s string) bool {
	return slices.ContainsFunc(r.Secrets, func(secret string) bool {
		return secret != "" && s == secret || len(secret) >= minSecretInside && strings.Contains(s, secret)
	})
}

// keep returns s unless it holds a secret.
func (r Redactor) keep(s string) string {
	if r.holdsSecret(s) {
		return Mask
	}
	return s
}

func (r Redactor) header(f Field, length int) string {
	switch strings.ToLower(f.Name) {
	case "content-length":
		return strconv.Itoa(length)
	case "accept", "accept-encoding", "accept-language", "connection", "content-encoding", "content-type", "date", "user-agent":
		return r.keep(f.Value)
	}
	return maskText(f.Value)
}

// maskText masks a text that is not empty.
func maskText(s string) string {
	if s == "" {
		return ""
	}
	return Mask
}

func (r Redactor) path(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = r.keep(part)
		if len(part) >= longSegment {
			parts[i] = Mask
		}
	}
	return r.keep(strings.Join(parts, "/"))
}

func (r Redactor) query(query string) string {
	if query == "" {
		return ""
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case ok:
			parts[i] = r.keep(name) + "=" + maskText(value)
		default:
			parts[i] = maskText(part)
		}
	}
	return strings.Join(parts, "&")
}

func (r Redactor) body(body []byte) []byte {
	if len(body) == 0 {
		return body
	}
	if !json.Valid(body) {
		return []byte(Mask)
	}
	w := redaction{Redactor: r, b: body}
	w.copyTo(jsonscan.SkipSpace(body, 0))
	w.value("")
	return append(w.out, body[w.i:]...)
}

// redaction is a walk over the valid JSON b; out is what it was redacted to.
type redaction struct {
	Redactor

	b   []byte
	i   int
	out []byte
}

// copyTo copies up to an offset.
func (w *redaction) copyTo(end int) {
	w.out = append(w.out, w.b[w.i:end]...)
	w.i = end
}

// replace skips what stands before an offset, and writes text in its place.
func (w *redaction) replace(end int, text []byte) {
	w.out, w.i = append(w.out, text...), end
}

// value redacts the value that comes next: a member of that name, or an
// element of one.
func (w *redaction) value(name string) {
	if c := w.b[w.i]; c == '{' || c == '[' {
		w.copyTo(jsonscan.Each(w.b, w.i, func(literal []byte, nameAt, at int) int {
			if literal != nil {
				w.copyTo(nameAt)
				name, _ = jsonscan.Text(literal)
				if w.holdsSecret(name) || w.holdsSecret(string(literal)) {
					w.replace(nameAt+len(literal), []byte(`"`+Mask+`"`))
				}
			}
			w.copyTo(at)
			w.value(name)
			return w.i
		}))
		return
	}
	end, _ := jsonscan.SkipValue(w.b, w.i)
	switch literal := w.b[w.i:end]; literal[0] {
	case '"':
		w.replace(end, w.text(name, literal))
	case 't', 'f', 'n':
		w.copyTo(end)
	default:
		if !harmless(name) || w.holdsSecret(string(literal)) {
			literal = []byte("0")
		}
		w.replace(end, literal)
	}
}

// text returns what is left of a string literal.
func (w *redaction) text(name string, literal []byte) []byte {
	s, _ := text(literal)
	switch {
	case s == "", harmless(name) && !w.holdsSecret(s):
		return literal
	case identifies(name):
		return []byte(`"` + w.alias(s) + `"`)
	default:
		return []byte(`"` + Mask + `"`)
	}
}

// alias returns what stands in place of an identifier.
func (r Redactor) alias(id string) string {
	if r.Fold != nil {
		id = r.Fold(id)
	}
	mac := hmac.New(sha256.New, r.Key)
	mac.Write([]byte(id))
	return "redacted-" + hex.EncodeToString(mac.Sum(nil)[:6])
}

// identifies reports whether a member names a shipment.
//
// Interface: Resources and their fields.
func identifies(name string) bool {
	switch name {
	case "trackingNumber", "rawTrackingNumber", "referId", "routerId", "id":
		return true
	}
	return false
}

// harmless reports whether what a member says is about no person and no
// shipment of one.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
func harmless(name string) bool {
	switch name {
	case "eventId", "event", "eventTime", "status", "statusTrack", "statusLabel", "statusSummary", "latestCheckpointTime",
		"transitTime", "created", "updated", "eventTimestamp", "GMTTimestamp", "carrierCode":
		return true
	}
	return false
}
