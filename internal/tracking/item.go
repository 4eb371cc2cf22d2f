// Package tracking holds the words of the shipment tracking service: the items
// a client creates, the trackings it reads back, and what an answer means. It
// does no I/O and imports nothing of this project.
//
// Much of the service is not documented. Whatever is read here is read
// tolerantly, and nothing that was not understood is dropped: every [Answer]
// keeps the bytes it was read from.
package tracking

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Largest number of items that one create request may carry.
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
	CarrierCode string // metadata.carrierCode; empty leaves it out, and the service finds the carrier itself
}

// Key identifies a tracking within an account: one order may have several
// parcels, so neither half is enough.
type Key struct {
	ReferID string
	Number  string
}

// Key returns the identity of the item.
func (it Item) Key() Key { return Key{ReferID: it.ReferID, Number: it.Number} }

// AppendBatch appends the body of a create request for items, with metadata only
// where there is a carrier code. Bytes that are not UTF-8 become U+FFFD;
// validated items hold none.
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
			b := bytes.NewBuffer(dst)
			enc := json.NewEncoder(b)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(text) //nolint:errchkjson // texts always encode
			return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}

// Quote shows a value so that every character in it can be seen: control,
// invisible and non-UTF-8 parts as escapes.
func Quote(s string) string { return strconv.QuoteToGraphic(s) }
