package tracking

import (
	"encoding/json"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// maxDepth is how deeply an answer may be nested before it is taken as
// unreadable; the documented objects are three deep.
const maxDepth = 200

type kind int

const (
	scalar kind = iota
	object
	list
)

// value is one JSON value. Members keep their exact names and order; duplicates
// are kept.
type value struct {
	kind    kind
	raw     []byte // the literal as sent
	members []member
	items   []*value
}

type member struct {
	name  string
	value *value
}

// parse reads one whole JSON value; false if raw is anything else, or nested
// too deeply. The value shares the bytes of raw.
func parse(raw []byte) (*value, bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	p := parser{raw: raw}
	v := p.value(jsonscan.SkipSpace(raw, 0), 0)
	return v, !p.tooDeep
}

type parser struct {
	raw     []byte
	tooDeep bool
	pool    []value // values allocated ahead
}

// What is allocated at once: values, and members of an object.
const (
	poolSize     = 64
	membersAhead = 8
)

// value reads the value that begins at i.
func (p *parser) value(i, depth int) *value {
	if len(p.pool) == 0 {
		p.pool = make([]value, poolSize)
	}
	v := &p.pool[0]
	p.pool = p.pool[1:]
	p.tooDeep = p.tooDeep || depth > maxDepth
	c := p.raw[i]
	if c == '{' {
		v.kind = object
	} else if c == '[' {
		v.kind = list
	}
	var end int
	if v.kind == scalar || p.tooDeep {
		end, _ = jsonscan.SkipValue(p.raw, i)
	} else {
		end = jsonscan.Each(p.raw, i, func(name []byte, _, at int) int {
			inner := p.value(at, depth+1)
			if name == nil {
				v.items = append(v.items, inner)
			} else {
				if v.members == nil {
					v.members = make([]member, 0, membersAhead)
				}
				v.members = append(v.members, member{p.name(name), inner})
			}
			return at + len(inner.raw)
		})
	}
	v.raw = p.raw[i:end]
	return v
}

// knownNames are the names that answers are known to have.
var knownNames = map[string]string{
	"eventType": "eventType", "eventCity": "eventCity", "eventState": "eventState", "eventZIPCode": "eventZIPCode",
	"eventTimestamp": "eventTimestamp", "GMTTimestamp": "GMTTimestamp", "referId": "referId", "rawTrackingNumber": "rawTrackingNumber",
	"trackingNumber": "trackingNumber", "status": "status", "statusLabel": "statusLabel", "statusTrack": "statusTrack",
	"statusSummary": "statusSummary", "latestEvent": "latestEvent", "latestCheckpointTime": "latestCheckpointTime", "transitTime": "transitTime",
	"created": "created", "updated": "updated", "summary": "summary", "detail": "detail",
	"trackingEvents": "trackingEvents", "routerId": "routerId", "id": "id", "data": "data",
	"message": "message", "error": "error", "code": "code", "success": "success",
}

// name returns the text of a member's name. Known ones take no memory.
func (*parser) name(literal []byte) string {
	if known, ok := knownNames[string(literal[1:len(literal)-1])]; ok {
		return known
	}
	name, _ := jsonscan.Text(literal)
	return name
}

func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (v *value) null() bool { return v.kind == scalar && string(v.raw) == "null" }

// text returns the text of a JSON string, else empty.
func (v *value) text() string {
	if v == nil || v.kind != scalar || len(v.raw) == 0 || v.raw[0] != '"' {
		return ""
	}
	text, _ := jsonscan.Text(v.raw)
	return text
}

func (v *value) str(name string) string { return v.get(name).text() }

// literal returns the scalar member of that name as sent, empty if it is
// absent, null or not a scalar.
func (v *value) literal(name string) string {
	m := v.get(name)
	if m == nil || m.kind != scalar || m.null() {
		return ""
	}
	return string(m.raw)
}
