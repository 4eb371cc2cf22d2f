package webhook

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Placeholders that stand alone; the others name a source.
const (
	partBody      = "body"
	partTimestamp = "timestamp"
	partSecret    = "secret"
	partMethod    = "method"
	partURL       = "url"
	partPath      = "path"
	partForm      = "formsorted"
)

const placeholders = "{body}, {timestamp}, {secret}, {method}, {url}, {path}, " +
	"{header:NAME}, {query:NAME}, {json:/PATH} or {formsorted}"

// part is text, or a placeholder. Parsed before any request is read, no text of a sender can become one.
type part struct {
	name   string // of a placeholder: what stands between its braces; empty for text
	text   string
	source source // that a placeholder names
}

func parseTemplate(s string) ([]part, *SchemeError) {
	var parts []part
	rest := s
	for rest != "" {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			return append(parts, part{text: rest}), nil
		}
		end := strings.IndexByte(rest, '}')
		if rest[open] == '}' || end < 0 {
			return nil, wrong("signed", "%q has an unmatched brace; braces are for placeholders only", s)
		}
		if open > 0 {
			parts = append(parts, part{text: rest[:open]})
		}
		p, ok := parsePlaceholder(rest[open+1 : end])
		if !ok {
			return nil, wrong("signed", "unknown placeholder %q; use %s", rest[open:end+1], placeholders)
		}
		parts = append(parts, p)
		rest = rest[end+1:]
	}
	return parts, nil
}

func parsePlaceholder(name string) (part, bool) {
	switch name {
	case partBody, partTimestamp, partSecret, partMethod, partURL, partPath, partForm:
		return part{name: name}, true
	}
	at, ok := parseSource(name)
	return part{name: name, source: at}, ok && at.kind != sourceSibling
}

func has(parts []part, placeholder string) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.name == placeholder })
}

// readParts returns all parts of a delivery that are signed, and the first reason why one can't be used.
func (c *compiled) readParts(d *delivery, timestamp Found) (parts []Part, why Reason) {
	parts = slices.Grow(parts, len(c.parts))
	for _, p := range c.parts {
		part := Part{Name: p.name}
		part.Bytes, part.Reason = c.pieceOf(p, d, timestamp)
		parts, why = append(parts, part), cmp.Or(why, part.Reason)
	}
	return parts, why
}

// pieceOf is nil for the secret: see compiled.mac.
func (c *compiled) pieceOf(p part, d *delivery, timestamp Found) ([]byte, Reason) {
	switch p.name {
	case "":
		return []byte(p.text), ""
	case partBody:
		return d.Body, ""
	case partTimestamp:
		if timestamp.Times == 0 {
			return nil, ReasonTimestampMissing
		}
		return []byte(timestamp.Value), ""
	case partSecret:
		return nil, ""
	case partMethod:
		return []byte(d.Method), ""
	case partURL:
		return []byte(c.scheme.PublicURL), ""
	case partPath:
		return []byte(d.Path), ""
	case partForm:
		if form, ok := sortedForm(d.Body); ok {
			return form, ""
		}
		return nil, ReasonSignedPartMissing
	}
	if p.source.kind == sourceJSON && d.lacks(p.source.path) {
		return nil, "" // senders that sign several fields sign none as empty
	}
	value, times := d.find(p.source)
	if why := unlessOnce(times, ReasonSignedPartMissing); why != "" {
		return nil, why
	}
	return value, ""
}

// sortedForm has each distinct field as name and value without escapes, sorted; false for no form.
func sortedForm(body []byte) ([]byte, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, false
	}
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			out = append(append(out, name...), value...)
		}
	}
	return out, true
}
