// Package tracking models the shipment tracking service: the items that a client creates, the trackings that it reads
// back, and what an answer means. It does no I/O, and imports only packages that do none.
//
// Much of the service is undocumented. So everything is read tolerantly, and nothing that was not understood is
// dropped: every [Answer] keeps the bytes that it was read from.
package tracking

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Maximum number of items in one create request.
//
// Interface: Limits.
const (
	MaxSyncBatch  = 40   // items in a v1 request
	MaxAsyncBatch = 1000 // items in a v2 request
)

// Item is one tracking to be created.
//
// Interface: Resources and their fields, tracking creation item.
type Item struct {
	ReferID     string // the caller's own identifier, such as an order number
	Number      string // rawTrackingNumber: as the carrier issued it
	CarrierCode string // metadata.carrierCode; omitted if empty: then the service detects the carrier
}

// Key identifies a tracking within an account: an order may have several parcels, so neither half is enough.
type Key struct {
	ReferID string
	Number  string
}

// Key returns the identity of the item.
func (it Item) Key() Key { return Key{ReferID: it.ReferID, Number: it.Number} }

// AppendBatch appends the body of a create request for items, with metadata only for items with a carrier code. Bytes
// that are not UTF-8 become U+FFFD; validated items have none.
//
// Interface: Resources and their fields, tracking creation item.
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func AppendBatch(dst []byte, items []Item) []byte {
	dst = append(dst, `{"data":[`...)
	for i, it := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(append(dst, `{"referId":`...), it.ReferID)
		dst = appendText(append(dst, `,"rawTrackingNumber":`...), it.Number)
		if it.CarrierCode != "" {
			dst = append(appendText(append(dst, `,"metadata":{"carrierCode":`...), it.CarrierCode), '}')
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

func appendText(dst []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b, _ := jsonscan.Marshal(text) // texts always encode
			return append(dst, b...)
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// Quote quotes a value, with control, invisible and non-UTF-8 parts escaped.
func Quote(s string) string { return strconv.QuoteToGraphic(s) }

// FoldNumber returns a tracking number in the form for comparing: without spaces and hyphens and in one case, as
// Unicode defines them. Folding again changes nothing.
func FoldNumber(s string) string {
	return strings.Map(func(r rune) rune {
		if separates(r) {
			return -1
		}
		return foldCase(r)
	}, s)
}

// SameNumber reports whether a and b are equal except for case, spaces and hyphens, and not empty.
func SameNumber(a, b string) bool {
	folded := FoldNumber(a)
	return folded != "" && folded == FoldNumber(b)
}

// FoldStatus returns the name or number of a status in the form for comparing: in one case, with one underscore for
// any spaces, hyphens and underscores between words. A sign stays: -1 is not 1.
func FoldStatus(s string) string {
	between := false
	return strings.Map(func(r rune) rune {
		after := between
		between = r == '_' || separates(r)
		switch {
		case !between:
			return foldCase(r)
		case after:
			return -1
		}
		return '_'
	}, strings.TrimSpace(s))
}

// NamesStatus reports whether want names a status by its number, label or track, compared as [FoldStatus] does. The
// number is a JSON literal, and want may be one.
//
// Interface: States and transitions.
func NamesStatus(want, number, label, track string) bool {
	folded := FoldStatus(want)
	if folded == "" {
		return false
	}
	text := number
	if strings.HasPrefix(number, `"`) {
		text, _ = jsonscan.Text([]byte(number))
	}
	return folded == FoldStatus(number) || folded == FoldStatus(text) || folded == FoldStatus(label) ||
		folded == FoldStatus(track)
}

// HasStatus reports whether want names the status, see [NamesStatus].
func (r Report) HasStatus(want string) bool {
	return NamesStatus(want, r.Status, r.StatusLabel, r.StatusTrack)
}

// separates reports whether r is white space, dash punctuation, a soft hyphen or a minus sign.
func separates(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '-' || r == ' ' || '\t' <= r && r <= '\r'
	}
	return r == '\u00ad' || r == '\u2212' || unicode.IsSpace(r) || unicode.Is(unicode.Pd, r)
}

// foldCase returns the first of the letters that differ from r only in case: the capital for ASCII.
func foldCase(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r += 'A' - 'a'
		}
		return r
	}
	first := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		first = min(first, f)
	}
	return first
}
