package observed

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Answer is an answer to a request.
type Answer struct {
	Source Source
	Status int
	Header map[string][]string
	Body   []byte
	JSON   bool // Body is one whole JSON value
}

// Event is an event of a delivery.
type Event struct {
	Header map[string][]string // of the delivery; nil if an earlier event brought it
	Body   []byte              // one whole JSON value
}

// maxBody is how long a body may be whose members are read, in bytes.
const maxBody = 4 << 20

// large is the form of a longer body.
const large = "(large)"

// finding is what one answer or event shows of a key.
type finding struct {
	sample     string
	documented bool
}

// extractor collects what one answer or event holds.
type extractor struct {
	source Source
	found  map[Key]finding
}

func (x *extractor) add(kind Kind, name string, documented bool, sample func() string) {
	limit := maxName
	if kind == Shape {
		limit = maxShape
	}
	k := Key{kind, cut(name, limit)}
	old, ok := x.found[k]
	switch {
	case !ok:
		x.found[k] = finding{cut(sample(), maxSample), documented}
	case kind == Status:
		names := joinNames(old.sample, sample())
		x.found[k] = finding{names, documentedStatus(name, names)}
	}
}

// text returns what returns s.
func text(s string) func() string { return func() string { return s } }

// answer collects what an answer holds.
func (x *extractor) answer(a Answer) {
	x.headers("answer", a.Header)
	status := strconv.Itoa(a.Status)
	x.add(HTTPStatus, string(a.Source)+" "+status, a.Status == 200, text("")) // "a successful response"
	form := bodyForm(a)
	sample := text("")
	if a.JSON {
		root := jsonscan.Whole(a.Body).Raw
		x.value(place{}, root)
		form = shapeOf(root)
		sample = sampleOf(root)
	}
	x.add(Shape, string(a.Source)+" "+form, a.Source == Query && form == documentedShape, sample)
}

// bodyForm names a body that is not JSON.
func bodyForm(a Answer) string {
	body := bytes.TrimSpace(a.Body)
	switch {
	case len(body) > maxBody:
		return large
	case len(body) == 0:
		return "(empty)"
	case body[0] == '<':
		return "(HTML or XML)"
	}
	return "(no JSON)"
}

// event collects what an event holds.
func (x *extractor) event(e Event) {
	x.headers(string(Delivery), e.Header)
	if len(e.Body) > maxBody {
		x.add(Shape, string(Delivery)+" "+large, false, text(""))
		return
	}
	root := jsonscan.Whole(e.Body).Raw
	x.value(place{class: classEvent}, root)
	if root[0] != '{' {
		return
	}
	kind, number := "", ""
	for _, m := range membersOf(root) {
		switch m.name {
		case "event":
			kind = m.text()
		case "data":
			for _, d := range membersOf(m.raw) {
				if d.name == "status" {
					number = vocabulary(d.literal())
				}
			}
		}
	}
	if kind != "" {
		x.add(EventKind, vocabulary(kind), kind == deliveredEvent, text(number))
	}
}

// headers adds the names of headers, with one value masked.
func (x *extractor) headers(of string, header map[string][]string) {
	for name, values := range header {
		name = canonical(name)
		value := ""
		if len(values) > 0 {
			value = cut(mask(values[0]), maskedText)
		}
		x.add(Header, of+" "+name, slices.Contains(standardHeaders, name), text(value))
	}
}

// place is where a value stands.
type place struct {
	path  string
	name  string // of the member
	class class  // that the interface gives the place; 0 for none
}

func (p place) member(name string) place {
	if p.path != "" {
		name = p.path + "." + name
	}
	return place{path: name}
}

// maxDepth is how many levels of objects and arrays are read.
const maxDepth = 16

// value collects what stands at a place.
func (x *extractor) value(p place, raw []byte) {
	if len(p.path) >= maxName {
		return
	}
	switch raw[0] {
	case '[':
		p.path += "[]"
		if p.class != classCheckpoint {
			p.name = ""
		}
		for v := range jsonscan.Values(raw, 0) {
			x.value(p, v.Raw)
		}
	case '{':
		x.object(p, membersOf(raw))
	}
}

func (x *extractor) object(p place, members []member) {
	exact := x.source == Delivery // the interface shows where everything stands
	c := p.class
	if !exact {
		c |= classify(p.name, members)
	}
	if c&(classTracking|classSummary) != 0 {
		x.status(members)
	}
	for _, m := range members {
		at := p.member(memberName(m.name))
		at.name, at.class = m.name, c.part(m.name)
		isError := m.name == "error" && string(m.raw) != "null"
		if isError && (c != 0 || !exact) {
			x.add(Error, string(x.source)+" "+at.path+" "+errorForm(m.raw), false, sampleOf(m.raw))
		}
		documented := c.has(m.name, !exact)
		if c != 0 || !m.leads() && !m.blank() || documented {
			x.add(Field, string(x.source)+" "+at.path, documented, sampleOf(m.raw))
		}
		if !isError && (documented || !exact && m.leads()) {
			x.value(at, m.raw)
		}
	}
}

// status adds the status of an object, by its number or else by its name.
func (x *extractor) status(members []member) {
	number, names := "", ""
	for _, m := range members {
		switch m.name {
		case "status":
			if m.raw[0] != '{' && m.raw[0] != '[' && string(m.raw) != "null" {
				number = vocabulary(m.literal())
			}
		case "statusLabel", "statusTrack":
			names = joinNames(names, vocabulary(m.text()))
		}
	}
	if number == "" {
		number = names
	}
	if number != "" {
		x.add(Status, number, documentedStatus(number, names), text(names))
	}
}

// member is one of an object.
type member struct {
	name string
	raw  []byte
}

// membersOf returns the members of an object, none of another value.
func membersOf(raw []byte) []member {
	if raw[0] != '{' {
		return nil
	}
	var all []member
	for v := range jsonscan.Values(raw, 0) {
		name, _ := jsonscan.Text(v.Name)
		all = append(all, member{name, v.Raw})
	}
	return all
}

// text returns a string, empty for another value.
func (m member) text() string {
	if m.raw[0] != '"' {
		return ""
	}
	text, _ := jsonscan.Text(m.raw)
	return text
}

// literal returns the text of a string, and what stands there of another value.
func (m member) literal() string {
	if m.raw[0] == '"' {
		return m.text()
	}
	return string(m.raw)
}

// blank reports whether a member is null, or an object or array with nothing in it.
func (m member) blank() bool {
	if m.raw[0] == '{' || m.raw[0] == '[' {
		for range jsonscan.Values(m.raw, 0) {
			return false
		}
		return true
	}
	return string(m.raw) == "null"
}

// leads reports whether an object that the interface shows stands inside a member of
// an answer.
func (m member) leads() bool { return leads(m.name, m.raw, maxDepth) }

func leads(name string, raw []byte, depth int) bool {
	switch {
	case depth == 0:
		return false
	case raw[0] == '[':
		for v := range jsonscan.Values(raw, 0) {
			if leads("", v.Raw, depth-1) {
				return true
			}
		}
	case raw[0] == '{':
		members := membersOf(raw)
		return classify(name, members) != 0 || slices.ContainsFunc(members, func(m member) bool { return leads(m.name, m.raw, depth-1) })
	}
	return false
}
