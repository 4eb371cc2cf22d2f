package tracking

import (
	"encoding/json"
	"iter"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Body is the body of an answer, parsed once. A nil Body is that of no answer:
// it is not JSON and holds nothing. It is not for concurrent use.
type Body struct {
	raw    []byte
	root   *value  // nil if raw is not one whole JSON value
	answer *Answer // nil until asked for
	named  []Key   // every number and referId in the answer, with or without a tracking
}

// ReadBody parses raw, which must not change afterwards.
func ReadBody(raw []byte) *Body {
	b := &Body{raw: raw}
	if root, ok := parse(raw); ok {
		b.root = root
	}
	return b
}

// JSON reports whether the body is one whole JSON value.
func (b *Body) JSON() bool { return b != nil && b.root != nil }

// Wrong reports whether the body has a sign of error: `success: false`, a
// non-null `error`, or `code` or `meta.code` of 400 and above. What is not JSON
// has none.
//
// Assumed: what success of a create looks like is not shown; `create.accepted` refines it.
func (b *Body) Wrong() bool { return b.JSON() && signOfError(b.root) }

// ErrorText returns the message of an error body: the text of
// `message`, `error`, `error.message`, `detail` or `title`, or empty.
//
// Assumed: the structure of error bodies is not shown.
func (b *Body) ErrorText() string {
	if !b.JSON() || b.root.kind != object {
		return ""
	}
	return errorText(b.root, 0)
}

// Pointer returns the JSON literal that an RFC 6901 pointer names, and false
// if the body is not JSON or has no such value.
func (b *Body) Pointer(pointer string) (json.RawMessage, bool) {
	if !b.JSON() {
		return nil, false
	}
	p, ok := jsonscan.ParsePointer(pointer)
	if !ok {
		return nil, false
	}
	raw, times := p.Find(b.root.raw)
	return raw, times > 0
}

// DistinctivePointers yields pointers to values that may distinguish one kind
// of answer from another: the whole body if it is a scalar or empty, else its
// members that are, in their order.
func (b *Body) DistinctivePointers() iter.Seq[string] {
	return func(yield func(string) bool) {
		if !b.JSON() {
			return
		}
		if b.root.distinctive() {
			yield("")
			return
		}
		for _, m := range b.root.members {
			if m.value.distinctive() && !yield("/"+jsonscan.Escape(m.name)) {
				return
			}
		}
	}
}

func (v *value) distinctive() bool { return v.kind == scalar || len(v.members)+len(v.items) == 0 }
