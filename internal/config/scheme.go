package config

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/jsonscan"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// The parts of a scheme that are no text.
const (
	tolerance  = "timestamp.tolerance"
	acceptWeak = "accept_weak"
)

// sources are the kinds of KIND:NAME that a part may be. Whether the parts fit
// together is not checked here.
var sources = map[string][]string{
	"signature.from": {"header", "query", "json"},
	"timestamp.from": {"", "header", "sig", "json"},
}

func schemeNames() []string {
	all := []string{tolerance, acceptWeak}
	for _, p := range webhook.Settings() {
		all = append(all, p.Name)
	}
	return all
}

func setPart(s *webhook.Scheme, name, value string) *KeyError {
	if name == tolerance {
		d, err := ParseDuration(value)
		if err != nil {
			return wrong(err.Error(), "")
		}
		if d <= 0 {
			return wrong("must be more than 0, not \""+short(value)+"\"", "omit it to use 5m")
		}
		s.Timestamp.Tolerance = d
		return nil
	}
	if name == acceptWeak {
		if s.AcceptWeak = value == "true"; !s.AcceptWeak && value != "false" {
			return wrong("must be true or false, not \""+short(value)+"\"", "")
		}
		return nil
	}
	parts := webhook.Settings()
	p := parts[slices.IndexFunc(parts, func(p webhook.Setting) bool { return p.Name == name })]
	if want := unmet(p, value); want != "" {
		return wrong("must be "+want+", not \""+short(value)+"\"", "")
	}
	*p.Of(s) = value
	return nil
}

// unmet returns what the part wants if value is not it.
func unmet(p webhook.Setting, value string) string {
	defaults := webhook.Scheme{}.WithDefaults()
	if p.Words != nil && !slices.Contains(p.Words, value) && (value != "" || *p.Of(&defaults) != "") {
		return "one of " + p.Choices()
	}
	kinds := sources[p.Name]
	if kinds == nil || value == "" && slices.Contains(kinds, "") {
		return ""
	}
	kind, name, _ := strings.Cut(value, ":")
	if kind == "" || !slices.Contains(kinds, kind) || name == "" && kind != "json" {
		return "one of " + strings.Join(slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == "" }), ":…, ") + ":…"
	}
	if kind == "json" {
		return pointer(name)
	}
	return oneLineFilled(name)
}

// schemeEntry gives a scheme as it stands in a file.
func schemeEntry(s webhook.Scheme) map[string]any {
	var all map[string]any
	_ = schemeNode(s, nil).Decode(&all) // texts and a boolean always decode
	return all
}

// SchemeSettings gives a scheme as it stands in a file, every part with its
// value, as maps of JSON's own types.
func SchemeSettings(s webhook.Scheme) map[string]any { return schemeEntry(s.WithDefaults()) }

// SchemeYAML gives a scheme as it is written into a file: the parts that differ
// from their defaults, and the kind.
func SchemeYAML(s webhook.Scheme) string {
	text, _ := yaml.Marshal(changedNode(s)) // texts and a boolean always encode
	return string(text)
}

// changedNode is a scheme without the parts that have their defaults.
func changedNode(s webhook.Scheme) *yaml.Node {
	defaults := webhook.Scheme{}.WithDefaults()
	return schemeNode(s.WithDefaults(), &defaults)
}

// schemeNode is a scheme for a file: its kind and every part that differs from
// the defaults; every part without defaults.
func schemeNode(s webhook.Scheme, defaults *webhook.Scheme) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, value *yaml.Node) {
		at := n
		if section, last, nested := strings.Cut(name, "."); nested {
			at, _ = child(n, section) // what was made here is a mapping
			at.Style = yaml.FlowStyle
			name = last
		}
		at.Content = append(at.Content, textNode(name), value)
	}
	for _, p := range webhook.Settings() {
		value := *p.Of(&s)
		if defaults != nil && value == *p.Of(defaults) && p.Name != "kind" {
			continue
		}
		text := textNode(value)
		if text.Style == 0 && strings.ContainsAny(value, "{}:,;&|\n ") {
			text.Style = yaml.DoubleQuotedStyle
		}
		put(p.Name, text)
	}
	if defaults == nil || s.Timestamp.Tolerance != defaults.Timestamp.Tolerance {
		put(tolerance, textNode(FormatDuration(s.Timestamp.Tolerance)))
	}
	if defaults == nil || s.AcceptWeak != defaults.AcceptWeak {
		put(acceptWeak, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(s.AcceptWeak)})
	}
	return n
}

// pointer wants an RFC 6901 pointer.
func pointer(s string) string {
	if _, ok := jsonscan.ParsePointer(s); !ok {
		return "an RFC 6901 pointer such as /meta/code"
	}
	return ""
}
