package webhook

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

type sourceKind int

const (
	sourceNone sourceKind = iota
	sourceHeader
	sourceQuery
	sourceJSON
	sourceSibling // another entry next to the signature, in list and kv
)

type source struct {
	kind sourceKind
	name string // of a header, parameter or entry
	path jsonscan.Pointer
}

// parseSource reads KIND:NAME; false if the kind is unknown or the name is invalid.
func parseSource(s string) (source, bool) {
	kind, name, ok := strings.Cut(s, ":")
	if !ok || name == "" {
		return source{}, false
	}
	switch kind {
	case "header":
		return source{kind: sourceHeader, name: name}, IsToken(name)
	case "query":
		return source{kind: sourceQuery, name: name}, true
	case "json":
		path, ok := jsonscan.ParsePointer(name)
		return source{kind: sourceJSON, name: name, path: path}, ok && len(path) > 0
	case "sig":
		return source{kind: sourceSibling, name: name}, !strings.ContainsAny(name, ",= \t")
	default:
		return source{}, false
	}
}

// IsToken reports whether s can be a method or header name.
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// same reports whether two sources are the same. Header names are case-insensitive.
func (p source) same(other source) bool {
	if p.kind == sourceHeader && other.kind == sourceHeader {
		return strings.EqualFold(p.name, other.name)
	}
	return p.kind == other.kind && p.name == other.name
}

type delivery struct {
	Request
	isJSON *bool // whether the body is JSON; nil until needed
}

// find also returns how often the value occurs. Query values keep their percent escapes.
func (d *delivery) find(p source) (value []byte, times int) {
	switch p.kind {
	case sourceHeader:
		all := d.values(p.name)
		if len(all) > 0 {
			value = []byte(all[0])
		}
		return value, len(all)
	case sourceQuery:
		return d.parameter(p.name)
	case sourceJSON:
		return d.pointer(p.path)
	default:
		return nil, 0
	}
}

// found returns the result of find in the form of a trace. from names p.
func (d *delivery) found(p source, from string) Found {
	value, times := d.find(p)
	return Found{From: from, Value: string(value), Times: times}
}

// unlessOnce says why a value that occurs that often can't be used: missing if it does not occur.
func unlessOnce(times int, missing Reason) Reason {
	switch times {
	case 0:
		return missing
	case 1:
		return ""
	default:
		return ReasonHeaderRepeated
	}
}

// parameter returns the first value with its escapes, and how often the name occurs.
func (d *delivery) parameter(name string) (value []byte, times int) {
	for pair := range strings.SplitSeq(d.RawQuery, "&") {
		key, escaped, _ := strings.Cut(pair, "=")
		if bare, err := url.QueryUnescape(key); err != nil || bare != name {
			continue
		}
		if times++; times == 1 {
			value = []byte(escaped)
		}
	}
	return value, times
}

// pointer treats null, and text that is not valid Unicode, as absent. For a string it returns the text.
func (d *delivery) pointer(path jsonscan.Pointer) (value []byte, times int) {
	if !d.hasJSON() {
		return nil, 0
	}
	raw, times := path.Find(d.Body)
	if times == 0 || raw[0] == 'n' {
		return nil, 0
	}
	if raw[0] != '"' {
		return raw, times
	}
	s, clean := text(raw)
	if !clean {
		return nil, 0
	}
	return []byte(s), times
}

// lacks reports whether the body is JSON that has no value, or null, at a pointer.
func (d *delivery) lacks(path jsonscan.Pointer) bool {
	if !d.hasJSON() {
		return false
	}
	raw, times := path.Find(d.Body)
	return times == 0 || times == 1 && raw[0] == 'n'
}

func (d *delivery) hasJSON() bool {
	if d.isJSON == nil {
		valid := json.Valid(d.Body)
		d.isJSON = &valid
	}
	return *d.isJSON
}

// Field is one header line. Names are case-insensitive.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Request is a delivery as it was received, before any decoding.
type Request struct {
	Method   string
	Path     string  // escaped as sent, without the query
	RawQuery string  // escaped as sent, without the question mark
	Header   []Field // repeated names kept, in order of arrival if it is known
	Body     []byte
}

func (r Request) values(name string) []string {
	var all []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}

// text replaces NUL and invalid Unicode with U+FFFD; clean is false if there was any.
func text(literal []byte) (s string, clean bool) {
	s, clean = jsonscan.Text(literal)
	if strings.IndexByte(s, 0) >= 0 {
		return strings.ReplaceAll(s, "\x00", string(utf8.RuneError)), false
	}
	return s, clean
}

// scalar is false for null, objects, arrays and text that is not clean. Numbers are returned as literals.
func scalar(raw []byte) (string, bool) {
	switch raw[0] {
	case '"':
		return text(raw)
	case '{', '[', 'n':
		return "", false
	default:
		return string(raw), true
	}
}
