package tracking

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Checkpoint is one step of a shipment's journey, as the service sent it.
//
// Interface: Webhook delivery data object (`data` inside each delivered event), checkpoint object.
type Checkpoint struct {
	Event string `json:"eventType"`
	City  string `json:"eventCity"`
	State string `json:"eventState"`
	ZIP   string `json:"eventZIPCode"`
	Local string `json:"eventTimestamp"` // wall clock at the checkpoint, no zone: show it, never compare it
	UTC   string `json:"GMTTimestamp"`   // RFC 3339 with Z: order checkpoints by this one

	Raw json.RawMessage `json:"-"` // the object as sent, including unknown members
}

// Report is what the service says about the present state of a shipment. Fields that an answer lacks are empty.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
type Report struct {
	RouterID    string // the service's own identifier, a UUID
	Status      string // JSON literal as sent: 1, or "x" with its quotes
	StatusLabel string // such as DELIVERED
	StatusTrack string // such as delivered
	LatestEvent string
	LatestTime  string // as sent, UTC
	Error       string // JSON literal of a non-null error, empty if none
}

// Tracking is the status and timeline of one shipment, as an answer has them. Fields that the answer lacks are empty.
//
// Interface: Webhook delivery data object (`data` inside each delivered event).
type Tracking struct {
	Report

	ReferID       string
	Number        string
	CarrierCode   string
	StatusSummary string // for people
	TransitTime   string // JSON literal as sent; its unit is not documented
	Created       string // as sent, UTC
	Updated       string // as sent, UTC

	Checkpoints []Checkpoint // in the order of the answer
	Processing  bool         // said of this tracking, not of the whole answer
}

// Known reports whether the service said anything about the shipment itself.
func (t Tracking) Known() bool {
	return t.Status != "" || t.StatusLabel != "" || t.StatusTrack != "" || t.LatestEvent != "" || len(t.Checkpoints) > 0
}

// Answer is the service's answer to a query or to a synchronous create.
type Answer struct {
	Raw        []byte // as received
	JSON       bool   // Raw is one whole JSON value
	Processing bool   // its message is Processing
	Message    string // message of the envelope, empty if none
	Trackings  []Tracking
	Named      []Key // referIds and numbers that it names, in its order; either may be empty
}

// processing is the message for a tracking that the service is still working on.
//
// Interface: Endpoints, 3. Query a tracking.
const processing = "Processing"

// Answer finds the known objects at any place in the body. It never fails: if the body is not JSON, or has nothing
// known, the Answer has no trackings. Its bytes are kept in any case.
//
// Assumed: the place of summary, detail and trackingEvents in an answer is not shown, so they are looked for at every
// depth.
func (b *Body) Answer() Answer {
	if b == nil {
		return Answer{}
	}
	if b.answer == nil {
		b.answer = b.read()
	}
	return *b.answer
}

func (b *Body) read() *Answer {
	a := &Answer{Raw: b.raw, JSON: b.JSON()}
	if b.root == nil {
		return a
	}
	envelope := b.root
	if envelope.kind == list && len(envelope.items) == 1 {
		envelope = envelope.items[0]
	}
	messages := envelopeMessages(nil, envelope, 0)
	if len(messages) > 0 {
		a.Message = messages[0]
	}
	for _, f := range collect(b.root, "") {
		if f.Number != "" || f.ReferID != "" {
			a.Named = append(a.Named, Key{ReferID: f.ReferID, Number: f.Number})
		}
		f.Status = cmp.Or(f.Status, f.envelopeStatus)
		if f.Known() || f.Processing || f.Error != "" {
			a.Trackings = append(a.Trackings, f.Tracking)
		}
	}
	a.Processing = slices.ContainsFunc(messages, isProcessing) && !slices.ContainsFunc(a.Trackings, Tracking.Known)
	return a
}

func isProcessing(message string) bool {
	return strings.EqualFold(strings.TrimSpace(message), processing)
}

// envelopeMessages appends messages, outermost first; messages inside lists belong to their elements.
func envelopeMessages(dst []string, v *value, depth int) []string {
	if v.kind != object || depth > 8 {
		return dst
	}
	if m := v.str("message"); m != "" {
		dst = append(dst, m)
	}
	for _, m := range v.members {
		if m.name != "error" && !unrelated(m.name) {
			dst = envelopeMessages(dst, m.value, depth+1)
		}
	}
	return dst
}

func signOfError(v *value) bool {
	if v.kind != object {
		return false
	}
	e, meta := v.get("error"), v.get("meta")
	return v.literal("success") == "false" || e != nil && !e.null() ||
		errorCode(v.get("code")) || meta != nil && errorCode(meta.get("code"))
}

// errorCode reports whether v is a number, or digits in a string, of 400 and above.
func errorCode(v *value) bool {
	if v == nil || v.kind != scalar {
		return false
	}
	n, err := json.Number(strings.Trim(string(v.raw), `"`)).Float64()
	return err == nil && n >= 400
}

func errorText(v *value, depth int) string {
	for _, name := range []string{"message", "error", "detail", "reason", "title", "errors"} {
		m := v.get(name)
		switch {
		case m == nil || m.null():
			continue
		case m.kind == object && depth < 4:
			if s := errorText(m, depth+1); s != "" {
				return s
			}
		case m.kind == list && len(m.items) > 0:
			return string(bytes.TrimSpace(m.raw))
		case m.text() != "":
			return m.text()
		}
	}
	for _, name := range []string{"data", "meta"} {
		if m := v.get(name); m != nil && m.kind == object && depth < 4 {
			if s := errorText(m, depth+1); s != "" {
				return s
			}
		}
	}
	return ""
}
