package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// SchemeYAML returns a scheme as it is written in a file: its kind, and the parts that differ from their defaults.
func SchemeYAML(s webhook.Scheme) string {
	text, _ := yaml.Marshal(schemeNode(s)) // texts and a boolean always encode
	return string(text)
}

func schemeNode(s webhook.Scheme) *yaml.Node {
	s = s.WithDefaults()
	defaults := webhook.Scheme{}.WithDefaults()
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range webhook.Settings() {
		value := *p.Of(&s)
		if value == *p.Of(&defaults) && p.Name != "kind" {
			continue
		}
		text := textNode(value)
		if text.Style == 0 && strings.ContainsAny(value, "{}:,;&|\n ") {
			text.Style = yaml.DoubleQuotedStyle
		}
		put(n, strings.Split(p.Name, "."), text)
	}
	if s.Timestamp.Tolerance != defaults.Timestamp.Tolerance {
		put(n, []string{"timestamp", "tolerance"}, textNode(config.FormatDuration(s.Timestamp.Tolerance)))
	}
	if s.AcceptWeak {
		put(n, []string{"accept_weak"}, nodeOf(true))
	}
	for _, part := range n.Content {
		if part.Kind == yaml.MappingNode {
			part.Style = yaml.FlowStyle
		}
	}
	return n
}

// nodeOf returns JSON types, a []string, a [config.Secret] or a [webhook.Scheme] as YAML.
func nodeOf(v any) *yaml.Node {
	switch v := v.(type) {
	case config.Secret:
		return textNode(v.Reveal())
	case webhook.Scheme:
		return schemeNode(v)
	}
	n := &yaml.Node{}
	_ = n.Encode(v) // JSON types always encode
	if _, isList := v.([]string); isList {
		n.Style = yaml.FlowStyle
	}
	return n
}

// find returns the index of a key in the content of a mapping; -1 if there is none.
func find(n *yaml.Node, key string) int {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// put sets the value at a path of keys, and makes the sections on the way, unless one of them is no mapping. The line
// comment of the old value stays.
func put(n *yaml.Node, place []string, v *yaml.Node) {
	for _, key := range place {
		if n.ShortTag() == "!!null" {
			n.Kind, n.Tag, n.Value = yaml.MappingNode, "", ""
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		i := find(n, key)
		if i < 0 {
			i = len(n.Content)
			n.Content = append(n.Content, textNode(key), &yaml.Node{Kind: yaml.MappingNode})
		}
		if n = n.Content[i+1]; len(n.Content) == 0 {
			n.Style = 0 // no braces once it has content
		}
	}
	v.LineComment = n.LineComment
	*n = *v
}

// remove removes the value at the path keys, and sections that become empty, except the first keep ones. Comments stay.
func remove(n *yaml.Node, keys []string, keep int) {
	i := find(n, keys[0])
	if i < 0 {
		return
	}
	key, value := n.Content[i], n.Content[i+1]
	if len(keys) > 1 {
		remove(value, keys[1:], keep-1)
		if len(value.Content) == 0 && keep > 0 {
			key.FootComment, value.HeadComment = comments(value.HeadComment, key.FootComment), ""
		}
		if len(value.Content) > 0 || keep > 0 {
			return
		}
	}
	n.Content = slices.Delete(n.Content, i, i+2)
	place := &n.HeadComment // if n is empty now
	switch {
	case i < len(n.Content):
		place = &n.Content[i].HeadComment
	case i > 0:
		place = &n.Content[i-2].FootComment
	}
	*place = comments(key.HeadComment, value.HeadComment, key.FootComment, *place)
}

func comments(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), "\n\n")
}

// textNode returns a string as YAML, in quotes where it would otherwise be read as something else.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if strings.TrimSpace(s) != s || s == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
