package config

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// textTags are the YAML types that are taken for a text.
var textTags = []string{"!!str", "!!int", "!!float", "!!timestamp"}

// scalar returns the one text of n, if it has one of the types that the kind
// takes. A number is taken for a text as it is written.
func (s Setting) scalar(n *yaml.Node) (string, *KeyError) {
	tags := s.codec().tags
	if tags == nil {
		tags = textTags
	}
	t, problem := scalar(n, tags...)
	if problem != "" {
		return "", &KeyError{Line: n.Line, Message: "must be " + s.want() + problem}
	}
	return t, nil
}

// scalar returns the text of n, or why it is none of these types.
func scalar(n *yaml.Node, tags ...string) (text, problem string) {
	switch {
	case missing(n):
		return "", ", but has no value"
	case n.Kind != yaml.ScalarNode:
		return "", ", not a list or keys"
	}
	for _, t := range tags {
		if n.ShortTag() == t {
			return n.Value, ""
		}
	}
	if n.ShortTag() == "!!bool" {
		return "", ", not true or false (put it in quotes if it is a string)"
	}
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		return "", ", not " + strconv.Quote(short(n.Value)) + " in quotes"
	}
	return "", ", not " + strconv.Quote(short(n.Value))
}

func items[T any](n *yaml.Node, want string, decode func(*yaml.Node) (T, *KeyError)) ([]T, *KeyError) {
	if n.Kind != yaml.SequenceNode {
		return nil, &KeyError{Line: n.Line, Message: "must be " + want + " in [ ] or with a - before each"}
	}
	all := make([]T, 0, len(n.Content))
	for _, item := range n.Content {
		v, fault := decode(item)
		if fault != nil {
			if fault.Line == 0 {
				fault.Line = item.Line
			}
			return nil, fault
		}
		all = append(all, v)
	}
	return all, nil
}

func (s Setting) namesFromNode(n *yaml.Node) (any, *KeyError) {
	own, fault := pairs(n, s.want())
	if fault != nil {
		return nil, fault
	}
	all := s.collect()
	for _, p := range own {
		t, problem := scalar(p.value, textTags...)
		if problem != "" {
			return nil, &KeyError{Line: p.line, Message: "name " + strconv.Quote(short(p.key)) + ": must be a string" + problem}
		}
		if fault := all.add(p.key, t); fault != nil {
			fault.Line = p.line
			return nil, fault
		}
	}
	return all.all, nil
}

// mapsFromNode reads what namesFromNode reads, by name.
func (s Setting) mapsFromNode(n *yaml.Node) (any, *KeyError) {
	own, fault := pairs(n, s.want())
	if fault != nil {
		return nil, fault
	}
	all := mappings{}
	for _, p := range own {
		if want := mapName(p.key); want != "" {
			return nil, &KeyError{Line: p.line, Message: "name " + strconv.Quote(short(p.key)) + ": must be " + want}
		}
		one, fault := s.namesFromNode(p.value)
		if fault != nil {
			fault.Message = p.key + ": " + fault.Message
			return nil, fault
		}
		all[p.key], _ = one.(names)
	}
	return all, nil
}

func (s Setting) schemesFromNode(n *yaml.Node) (any, *KeyError) {
	own, fault := pairs(n, s.want())
	if fault != nil {
		return nil, fault
	}
	all := schemes{}
	for _, p := range own {
		if want := oneLineFilled(p.key); want != "" {
			return nil, &KeyError{Line: p.line, Message: "name " + strconv.Quote(short(p.key)) + ": must be " + want}
		}
		scheme, fault := schemeFromNode(p.value)
		if fault != nil {
			fault.Message = strings.TrimSuffix(p.key+"."+fault.Key, ".") + ": " + fault.Message
			fault.Key = ""
			return nil, fault
		}
		all[p.key] = scheme
	}
	return all, nil
}

func schemeFromNode(n *yaml.Node) (webhook.Scheme, *KeyError) {
	parts, fault := flatten(n, "", schemeNames())
	if fault != nil {
		return webhook.Scheme{}, fault
	}
	s := webhook.Scheme{}.WithDefaults()
	for _, p := range parts {
		tags := textTags
		if p.key == acceptWeak {
			tags = []string{"!!bool"}
		}
		t, problem := scalar(p.value, tags...)
		if problem != "" {
			return webhook.Scheme{}, &KeyError{Key: p.key, Line: p.line, Message: "must be a string" + problem}
		}
		if fault := setPart(&s, p.key, t); fault != nil {
			return webhook.Scheme{}, fault.at(p.key, Origin{Line: p.line})
		}
	}
	return s, nil
}

func matchFromNode(n *yaml.Node) (tracking.Match, *KeyError) {
	a, fault := conditions(n, "path", "equals")
	return a.Match, fault
}

func absentFromNode(n *yaml.Node) (tracking.Absent, *KeyError) {
	return conditions(n, "status", "message", "path", "equals")
}

// conditions decodes {status, message, path, equals}, of which only the
// allowed ones may be there.
func conditions(n *yaml.Node, allowed ...string) (tracking.Absent, *KeyError) {
	own, fault := pairs(n, "{"+strings.Join(allowed, ", ")+"}")
	if fault != nil {
		return tracking.Absent{}, fault
	}
	var a tracking.Absent
	given := map[string]bool{}
	for _, p := range own {
		if !slices.Contains(allowed, p.key) {
			return tracking.Absent{}, &KeyError{Line: p.line, Message: didYouMean("unknown key "+strconv.Quote(short(p.key)), p.key, allowed)}
		}
		if problem := setCondition(&a, p.key, p.value); problem != "" {
			return tracking.Absent{}, &KeyError{Line: p.line, Message: p.key + ": must be " + problem}
		}
		given[p.key] = true
	}
	switch {
	case len(given) == 0:
		return tracking.Absent{}, &KeyError{Line: n.Line, Message: "an entry must have " + strings.Join(allowed, ", ")}
	case given["path"] != given["equals"]:
		return tracking.Absent{}, &KeyError{Line: n.Line, Message: "path and equals must be set together"}
	}
	return a, nil
}

// setCondition sets one condition and returns what is wanted if n is not it.
func setCondition(a *tracking.Absent, key string, n *yaml.Node) string {
	switch key {
	case "status":
		s := Setting{Kind: KindInteger, least: 100, most: 599}
		v, fault := s.fromNode(n)
		if fault != nil {
			return "an HTTP status"
		}
		a.Status, _ = v.(int)
	case "message":
		t, problem := scalar(n, "!!str", "!!int", "!!float")
		if problem != "" || t == "" {
			return "text that is not empty"
		}
		a.Message = t
	case "path":
		t, problem := scalar(n, "!!str")
		if problem != "" || pointer(t) != "" {
			return "an RFC 6901 pointer such as /meta/code"
		}
		a.Match.Path = t
	case "equals":
		lit, ok := jsonLiteral(n)
		if !ok {
			return "one string, number, true, false, null, {} or []"
		}
		a.Match.Equals = lit
	}
	return ""
}

// jsonLiteral writes a scalar, or what is empty, as JSON does. A number stays
// as written.
func jsonLiteral(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		return "{}", true
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "[]", true
	case n.Kind != yaml.ScalarNode:
		return "", false
	}
	switch n.ShortTag() {
	case "!!null":
		return "null", true
	case "!!bool":
		return strings.ToLower(n.Value), true
	case "!!int", "!!float":
		return n.Value, json.Valid([]byte(n.Value))
	}
	text, err := compactJSON(n.Value)
	return text, err == nil
}
