package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Bounds of differences.
const (
	maxCompared        = 256 << 10 // bytes of an event
	maxDifferenceValue = 400       // bytes of each value that are shown
	maxDifferenceDepth = 64        // levels that are told apart; what is deeper differs as a whole
)

// differenceJSON is a value that two events do not share.
type differenceJSON struct {
	Path string  `json:"path"` // RFC 6901 pointer within the event; empty for the whole
	Was  *string `json:"was"`  // as sent, perhaps cut; null if it was not there
	Is   *string `json:"is"`
}

// differ finds differences.
type differ struct {
	found []differenceJSON
	more  bool         // there are further ones
	ended func() error // of the request's context
}

// differences compares two JSON texts, value by value and as sent: 1 and 1.0 differ,
// white space and the order of members do not. More is true beyond maxDifferent. It stops
// when ctx ends.
func differences(ctx context.Context, was, is []byte) (found []differenceJSON, more bool) {
	if !json.Valid(was) || !json.Valid(is) {
		return nil, false
	}
	d := differ{found: []differenceJSON{}, ended: ctx.Err}
	d.values("", 0, jsonscan.Whole(was).Raw, jsonscan.Whole(is).Raw)
	return d.found, d.more
}

// values compares two values; nil is one that is not there.
func (d *differ) values(path string, depth int, was, is []byte) {
	switch {
	case d.more || bytes.Equal(was, is) || d.ended() != nil:
	case depth < maxDifferenceDepth && len(was) > 0 && len(is) > 0 && was[0] == is[0] && (was[0] == '{' || was[0] == '['):
		compare := d.members
		if was[0] == '[' {
			compare = d.elements
		}
		compare(path, depth+1, was, is)
	case len(d.found) == maxDifferent:
		d.more = true
	default:
		d.found = append(d.found, differenceJSON{path, excerpt(was), excerpt(is)})
	}
}

// elements compares the elements of two arrays by place.
func (d *differ) elements(path string, depth int, was, is []byte) {
	nextWas, stopWas := iter.Pull(jsonscan.Values(was, 0))
	defer stopWas()
	nextIs, stopIs := iter.Pull(jsonscan.Values(is, 0))
	defer stopIs()
	for place := 0; !d.more; place++ {
		a, before := nextWas()
		b, after := nextIs()
		if !before && !after {
			return
		}
		if !bytes.Equal(a.Raw, b.Raw) {
			d.values(path+"/"+strconv.Itoa(place), depth, a.Raw, b.Raw)
		}
	}
}

// members compares the members of two objects by name, those of one name in their order.
func (d *differ) members(path string, depth int, was, is []byte) {
	before, names := children(was)
	after, added := children(is)
	for _, name := range added {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		a, b := before[name], after[name]
		for i := range max(len(a), len(b)) {
			var one, two []byte
			if i < len(a) {
				one = a[i]
			}
			if i < len(b) {
				two = b[i]
			}
			if !bytes.Equal(one, two) {
				d.values(path+"/"+jsonscan.Escape(name), depth, one, two)
			}
		}
	}
}

// children returns the members of an object by name, and the names in order.
func children(object []byte) (byName map[string][][]byte, names []string) {
	byName = map[string][][]byte{}
	for v := range jsonscan.Values(object, 0) {
		name, _ := jsonscan.Text(v.Name)
		if _, ok := byName[name]; !ok {
			names = append(names, name)
		}
		byName[name] = append(byName[name], v.Raw)
	}
	return byName, names
}

// excerpt returns the start of a value; nil for one that is not there.
func excerpt(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := string(raw)
	if len(text) > maxDifferenceValue {
		text = strings.ToValidUTF8(text[:maxDifferenceValue], "") + "…"
	}
	return &text
}
