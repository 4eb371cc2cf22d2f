package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// codec reads the values of one kind.
type codec struct {
	want string   // what the setting takes, in words
	tags []string // YAML types of one text; nil for those of any text

	// decode reads one text. It is nil for a kind that has parts.
	decode func(string) (any, *KeyError)

	// texts and node read the parts of a kind that has them: from several
	// texts, each one part, and from a file. Without texts only JSON will do.
	texts func([]string) (any, *KeyError)
	node  func(*yaml.Node) (any, *KeyError)
}

// oneOf lists two words or more, such as "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (s Setting) codec() codec {
	switch s.Kind {
	case KindChoice:
		return codec{want: oneOf(s.Choices), decode: s.choice}
	case KindBool:
		return codec{want: "true or false", tags: []string{"!!bool", "!!str"}, decode: s.boolean}
	case KindInteger:
		return codec{want: "a whole number" + s.bounds(), tags: []string{"!!int"}, decode: untyped(s.integer)}
	case KindNumber:
		return codec{want: "a number" + s.bounds(), tags: []string{"!!int", "!!float"}, decode: s.number}
	case KindDuration:
		return codec{want: "a duration such as 30s, 2m, 1h or 7d", decode: s.duration}
	case KindSize:
		return codec{want: "a size from " + Size(s.least).String() + " to " + Size(s.most).String(), decode: s.size}
	case KindPath:
		return codec{want: "the path of a file", decode: untyped(s.plainText)}
	case KindSecret:
		return codec{want: "text", decode: s.secret}
	case KindList:
		return codec{want: "a list of strings", texts: textsOf(s.plainText), node: nodesOf(s, s.plainText)}
	case KindIntegers:
		return codec{
			want: "whole numbers" + s.bounds(), tags: []string{"!!int"},
			texts: textsOf(s.integer), node: nodesOf(s, s.integer),
		}
	case KindNames:
		return codec{want: "names with a string each", texts: s.namesFromTexts, node: s.namesFromNode}
	case KindMaps:
		return codec{want: "mappings by name", node: s.mapsFromNode}
	case KindMatches:
		return codec{want: "a list of {path, equals}", node: func(n *yaml.Node) (any, *KeyError) {
			return items(n, s.want(), matchFromNode)
		}}
	case KindAbsents:
		return codec{want: "a list of {status, message, path, equals}", node: func(n *yaml.Node) (any, *KeyError) {
			return items(n, s.want(), absentFromNode)
		}}
	case KindSchemes:
		return codec{want: "signature schemes by name", node: s.schemesFromNode}
	default:
		return codec{want: "text", decode: untyped(s.plainText)}
	}
}

// untyped returns decode as a codec has it.
func untyped[T any](decode func(string) (T, *KeyError)) func(string) (any, *KeyError) {
	return func(t string) (any, *KeyError) { return decode(t) }
}

// textsOf reads a list from one text an item.
func textsOf[T any](decode func(string) (T, *KeyError)) func([]string) (any, *KeyError) {
	return func(texts []string) (any, *KeyError) {
		all := make([]T, len(texts))
		for i, t := range texts {
			var fault *KeyError
			if all[i], fault = decode(t); fault != nil {
				return nil, fault
			}
		}
		return all, nil
	}
}

// nodesOf reads a list of scalars from a file.
func nodesOf[T any](s Setting, decode func(string) (T, *KeyError)) func(*yaml.Node) (any, *KeyError) {
	return func(n *yaml.Node) (any, *KeyError) {
		return items(n, s.want(), func(item *yaml.Node) (made T, fault *KeyError) {
			t, fault := s.scalar(item)
			if fault != nil {
				return made, fault
			}
			return decode(t)
		})
	}
}

// fromTexts decodes what a flag or an environment variable holds. A flag of a
// kind with parts may come several times; of others the last one counts.
func (s Setting) fromTexts(texts []string) (any, *KeyError) {
	switch c := s.codec(); {
	case c.decode != nil:
		return c.decode(texts[len(texts)-1])
	case c.texts != nil:
		return c.texts(texts)
	}
	return nil, wrong("must be JSON: "+s.want(), "")
}

// fromNode decodes what stands in a file. A fault carries the line where it is
// nearer than the key.
func (s Setting) fromNode(n *yaml.Node) (any, *KeyError) {
	c := s.codec()
	if c.node != nil {
		return c.node(n)
	}
	t, fault := s.scalar(n)
	if fault != nil {
		return nil, fault
	}
	return c.decode(t)
}

// fromVariable decodes an environment variable: JSON where the kind has parts
// and the text looks like it, else one text or several parted by commas.
func (s Setting) fromVariable(t string) (any, *KeyError) {
	if s.codec().node == nil {
		return s.fromTexts([]string{t})
	}
	if t[0] != '[' && t[0] != '{' {
		parts := strings.Split(t, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return s.fromTexts(parts)
	}
	n, fault := parse([]byte(t))
	if fault == nil {
		var v any
		if v, fault = s.fromNode(n); fault == nil {
			return v, nil
		}
	}
	fault.Line = 0 // of the variable: it would be taken for one of a file
	return nil, fault
}
