package observed

import (
	"bytes"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Answer is an answer to a request, or an event of a [Delivery].
type Answer struct {
	Source Source
	Status int
	Header map[string][]string
	Body   []byte
	JSON   bool // Body is one whole JSON value
}

// Event is an event of a delivery.
type Event struct {
	Header map[string][]string // headers of its delivery; nil if an earlier event had them
	Body   []byte              // one whole JSON value
}

const (
	maxBody  = 4 << 20 // in bytes; members of larger bodies are not read
	maxDepth = 16      // of nested objects and arrays

	undocumented = false
)

// words are the literals of the names of members with values that extractor reads.
var words = strings.Fields(`"event" "status" "statusLabel" "statusTrack" "error" "code" "type" "errorCode" "reason"`)

// outline appends the value at i, of a member with that name, as extractor reads it: 0 in place of scalars that are
// no words, and equal neighbours in an array once. It returns the offset after the value.
func outline(dst, raw []byte, i int, name []byte) ([]byte, int) {
	if raw[i] != '{' && raw[i] != '[' {
		end, _ := jsonscan.SkipValue(raw, i)
		if slices.Contains(words, string(name)) || bytes.IndexByte(name, '\\') >= 0 {
			return append(dst, raw[i:end]...), end
		}
		return append(dst, '0'), end
	}
	dst = append(dst, raw[i])
	end := jsonscan.Each(raw, i, func(name []byte, _, at int) (end int) {
		from := len(dst)
		if name != nil {
			dst = append(append(dst, name...), ':')
		}
		dst, end = outline(dst, raw, at, name)
		if dst = append(dst, ','); name == nil && bytes.HasSuffix(dst[:from], dst[from:]) {
			dst = dst[:from]
		}
		return end
	})
	return append(bytes.TrimSuffix(dst, []byte(",")), raw[end-1]), end
}

type extractor struct {
	source   Source
	register register
	found    map[*Entry]bool // whether it is documented
}

func (x *extractor) add(kind Kind, value string, documented bool) {
	if len(value) > maxValue {
		value = strings.ToValidUTF8(value[:maxValue-len("…")], "") + "…"
	}
	x.found[x.register.entry(Key{kind, value})] = documented
}

// answer collects what an answer or an event contains.
func (x *extractor) answer(status int, header []string, outline []byte) {
	of, root := "answer", place{}
	if x.source == Delivery {
		of, root.object = string(Delivery), "event"
	} else {
		x.add(HTTPStatus, string(x.source)+" "+strconv.Itoa(status), status == 200) // "a successful response"
	}
	for _, name := range header {
		name = memberName(textproto.CanonicalMIMEHeaderKey(name))
		x.add(Header, of+" "+name, slices.Contains(standardHeaders, name))
	}
	x.value(root, outline, maxDepth)
}

type place struct {
	path       string
	object     string // object of the interface at this place; empty if none
	documented bool
}

// value collects the fields at a place. A value without members is a field, and so is one that is nested too deeply.
func (x *extractor) value(p place, raw []byte, depth int) {
	leaf := true
	if depth > 0 && len(p.path) < maxValue {
		switch raw[0] {
		case '[':
			element := p
			element.path += "[]"
			for v := range jsonscan.Values(raw, 0) {
				leaf = false
				x.value(element, v.Raw, depth-1)
			}
		case '{':
			members := membersOf(raw)
			leaf = len(members) == 0
			x.object(p, members, depth-1)
		}
	}
	if leaf && p.path != "" {
		x.add(Field, string(x.source)+" "+p.path, p.documented)
	}
}

func (x *extractor) object(p place, members []member, depth int) {
	exact := x.source == Delivery // the interface shows the place of everything
	if p.object == "" && !exact && isTracking(members) {
		p.object = "tracking"
	}
	if p.object == "tracking" || p.object == "summary" {
		x.status(members)
	}
	for _, m := range members {
		if kind := m.text(); p == (place{object: "event"}) && m.name == "event" && kind != "" {
			x.add(EventKind, vocabulary(kind), kind == deliveredEvent)
		}
		at := place{path: memberName(m.name)}
		if p.path != "" {
			at.path = p.path + "." + at.path
		}
		at.documented = shows(p.object, m.name) || !exact && showsInAnswer(p.object, m.name)
		if at.documented || !exact {
			at.object = part(p.object, m.name)
		}
		if m.name == "error" && string(m.raw) != "null" && (p.object != "" || !exact) {
			x.add(Error, strings.Join(append([]string{string(x.source), at.path}, codes(m.raw)...), " "), undocumented)
			continue
		}
		x.value(at, m.raw, depth)
	}
}

// status adds the status of an object: its number with each of its names.
func (x *extractor) status(members []member) {
	number, names := "", []string(nil)
	for _, m := range members {
		switch m.name {
		case "status":
			number = m.word()
		case "statusLabel", "statusTrack":
			if name := m.word(); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 && number != "" {
		names = []string{""}
	}
	for _, name := range names {
		status := strings.TrimSpace(number + " " + name)
		x.add(Status, status, slices.Contains(statuses, status))
	}
}

func codes(raw []byte) []string {
	var all []string
	for _, m := range membersOf(raw) {
		switch m.name {
		case "code", "type", "errorCode", "reason":
			if word := m.word(); word != "" {
				all = append(all, word)
			}
		}
	}
	return all
}

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

func (m member) text() string {
	if m.raw[0] != '"' {
		return ""
	}
	text, _ := jsonscan.Text(m.raw)
	return text
}

// word returns a string or a number as a word of a vocabulary, "" for other values and for an empty string.
func (m member) word() string {
	text := m.text()
	if strings.IndexByte("-0123456789", m.raw[0]) >= 0 {
		text = string(m.raw)
	}
	if text == "" {
		return ""
	}
	return vocabulary(text)
}

// unnamed replaces a name or a word that may be an identifier, or may name somebody.
const unnamed = "*"

// Limits of a word: a longer text may be an identifier, or a sentence that names somebody.
const (
	maxWords = 3
	maxWord  = 64 // bytes
)

// Forms of words: letters, signs, and up to three digits in one place. Digits next to a hyphen are part of an
// identifier.
var (
	nameForm   = form(`_$@`)
	textForm   = form(`_.:/ `)
	numberForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?\d{1,5}$`) })
)

func form(signs string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		inner, outer := "[a-zA-Z"+signs+"]", "[-a-zA-Z"+signs+"]"
		return regexp.MustCompile("^(?:" + outer + "*" + inner + `)?\d{0,3}(?:` + inner + outer + "*)?$")
	})
}

func isWord(s string, form *regexp.Regexp) bool {
	return len(s) <= maxWord && len(strings.Fields(s)) <= maxWords && form.MatchString(s) &&
		strings.ContainsAny(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz")
}

// memberName returns the name of a member or a header, or [unnamed].
func memberName(name string) string {
	if isWord(name, nameForm()) {
		return name
	}
	return unnamed
}

// vocabulary returns the text of a status, an event kind or a code, or [unnamed].
func vocabulary(s string) string {
	if isWord(s, textForm()) || numberForm().MatchString(s) {
		return s
	}
	return unnamed
}

// objects lists the fields of each object. A test compares it with the interface document.
//
// Interface: Resources and their fields.
// Interface: Events.
var objects = map[string][]string{
	"event":    {"eventId", "event", "eventTime", "data"},
	"tracking": {"trackingNumber", "status", "statusTrack", "routerId", "summary", "detail", "error"},
	"summary": {
		"id", "trackingNumber", "status", "statusLabel", "latestEvent", "latestCheckpointTime", "transitTime",
		"created", "updated",
	},
	"detail":     {"trackingNumber", "statusSummary", "trackingEvents"},
	"checkpoint": {"eventType", "eventCity", "eventState", "eventZIPCode", "eventTimestamp", "GMTTimestamp"},
	"item":       {"referId", "rawTrackingNumber", "metadata"},
	"metadata":   {"carrierCode"},
}

// statuses are the documented statuses, in the form of entries; deliveredEvent is the kind of event that they came
// with.
//
// Interface: States and transitions.
var (
	statuses       = []string{"1", "DELIVERED", "delivered", "1 DELIVERED", "1 delivered"}
	deliveredEvent = "router.delivered"
)

func shows(name, member string) bool { return slices.Contains(objects[name], member) }

// showsInAnswer adds to shows for an answer. Of its form the interface shows only the member message: a tracking may
// have there what its parts and a creation item have.
//
// Interface: Endpoints, 3. Query a tracking.
func showsInAnswer(name, member string) bool {
	shown := func(of string) bool { return shows(of, member) }
	return member == "message" ||
		name == "tracking" && slices.ContainsFunc([]string{"summary", "detail", "item", "metadata"}, shown)
}

// part returns the object that a member of an object is, "" if none.
func part(of, member string) string {
	switch member {
	case "summary", "detail", "metadata":
		return member
	case "trackingEvents":
		return "checkpoint"
	case "data":
		if of == "event" {
			return "tracking"
		}
	}
	return ""
}

// isTracking reports whether an object of an answer is a tracking.
//
// Assumed: the form of answers is not shown, so trackings are recognised by their members at any place.
func isTracking(members []member) bool {
	names := []string{
		"trackingNumber", "rawTrackingNumber", "referId", "routerId", "statusTrack", "statusLabel", "summary", "detail",
		"trackingEvents",
	}
	return slices.ContainsFunc(members, func(m member) bool { return slices.Contains(names, m.name) })
}

// standardHeaders are defined by standards of HTTP, in their canonical spelling.
var standardHeaders = strings.Fields(`Accept Accept-Encoding Accept-Language Accept-Ranges Age Allow Alt-Svc
Authorization Cache-Control Connection Content-Disposition Content-Encoding Content-Language Content-Length
Content-Location Content-Range Content-Security-Policy Content-Type Cookie Date Etag Expect Expires Forwarded From Host
If-Match If-Modified-Since If-None-Match Keep-Alive Last-Modified Link Location Origin Permissions-Policy Pragma
Priority Proxy-Authenticate Proxy-Authorization Range Referer Referrer-Policy Retry-After Server Set-Cookie
Strict-Transport-Security Te Trailer Transfer-Encoding Upgrade
	User-Agent Vary Via Warning Www-Authenticate X-Content-Type-Options X-Frame-Options`)
