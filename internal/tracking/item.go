// Package tracking holds the words of the shipment tracking service: the items
// a client creates, the trackings it reads back, and what an answer means. It
// does no I/O and imports nothing of this project.
//
// Much of the service is not documented. Whatever is read here is read
// tolerantly, and nothing that was not understood is dropped: every [Answer]
// keeps the bytes it was read from.
package tracking

import (
	"strconv"
	"unicode/utf8"
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

// AppendJSON appends the item as the service wants it: metadata only when
// there is a carrier code.
//
// Interface: Resources and their fields, tracking creation item.
func (it Item) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"referId":`...)
	dst = appendString(dst, it.ReferID)
	dst = append(dst, `,"rawTrackingNumber":`...)
	dst = appendString(dst, it.Number)
	if it.CarrierCode != "" {
		dst = append(dst, `,"metadata":{"carrierCode":`...)
		dst = appendString(dst, it.CarrierCode)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// AppendBatch appends the body of a create request for items.
//
// Interface: Endpoints, 1. Batch create (synchronous, v1).
func AppendBatch(dst []byte, items []Item) []byte {
	dst = append(dst, `{"data":[`...)
	for i, it := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = it.AppendJSON(dst)
	}
	return append(dst, "]}"...)
}

const hex = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD; validated items hold none.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			start = i + size
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Quote shows a value so that every character in it can be seen: control,
// invisible and non-UTF-8 parts as escapes.
func Quote(s string) string { return strconv.QuoteToGraphic(s) }
