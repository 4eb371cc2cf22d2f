package config

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// codec reads the values of one kind.
type codec struct {
	want func(setting) string // what the kind takes, in words
	tags []string             // YAML types of one text; nil for those of any text

	// decode reads one text. It is nil for a kind that has parts.
	decode func(setting, string) (any, *KeyError)

	// texts and node read the parts of a kind that has them: from several
	// texts, each one part, and from a file. Without texts only JSON will do.
	texts func(setting, []string) (any, *KeyError)
	node  func(setting, *yaml.Node) (any, *KeyError)
}

// words returns a codec.want that says the same of every setting.
func words(want string) func(setting) string { return func(setting) string { return want } }

// codec returns what reads the setting.
func (s setting) codec() codec {
	switch s.Kind {
	case KindChoice:
		return codec{want: func(s setting) string { return "one of " + strings.Join(s.Choices, ", ") }, decode: setting.choice}
	case KindBool:
		return codec{want: words("true or false"), tags: []string{"!!bool", "!!str"}, decode: setting.boolean}
	case KindInteger:
		want := func(s setting) string { return "a whole number" + s.bounds() }
		return codec{want: want, tags: []string{"!!int"}, decode: untyped(setting.integer)}
	case KindNumber:
		return codec{want: func(s setting) string { return "a number" + s.bounds() }, tags: []string{"!!int", "!!float"}, decode: setting.number}
	case KindDuration:
		return codec{want: words("a duration such as 30s, 2m, 1h or 7d"), decode: setting.duration}
	case KindSize:
		return codec{want: func(s setting) string {
			return "a size from " + Size(s.least).String() + " to " + Size(s.most).String()
		}, decode: setting.size}
	case KindPath:
		return codec{want: words("the path of a file"), decode: untyped(setting.plainText)}
	case KindSecret:
		return codec{want: words("text"), decode: setting.secret}
	case KindList:
		return codec{want: words("a list of texts"), texts: textsOf(setting.plainText), node: nodesOf(setting.plainText)}
	case KindIntegers:
		want := func(s setting) string { return "whole numbers" + s.bounds() }
		return codec{want: want, tags: []string{"!!int"}, texts: textsOf(setting.integer), node: nodesOf(setting.integer)}
	case KindNames:
		return codec{want: words("names with a text each"), texts: setting.namesFromTexts, node: setting.namesFromNode}
	case KindMatches:
		return codec{want: words("a list of {path, equals}"), node: func(s setting, n *yaml.Node) (any, *KeyError) {
			return items(n, s.want(), matchFromNode)
		}}
	case KindAbsents:
		return codec{want: words("a list of {status, message, path, equals}"), node: func(s setting, n *yaml.Node) (any, *KeyError) {
			return items(n, s.want(), absentFromNode)
		}}
	case KindSchemes:
		return codec{want: words("names with a signature scheme each"), node: setting.schemesFromNode}
	default:
		return codec{want: words("text"), decode: untyped(setting.plainText)}
	}
}

// untyped returns decode as a codec has it.
func untyped[T any](decode func(setting, string) (T, *KeyError)) func(setting, string) (any, *KeyError) {
	return func(s setting, t string) (any, *KeyError) { return decode(s, t) }
}

// textsOf reads a list from one text an item.
func textsOf[T any](decode func(setting, string) (T, *KeyError)) func(setting, []string) (any, *KeyError) {
	return func(s setting, texts []string) (any, *KeyError) {
		all := make([]T, len(texts))
		for i, t := range texts {
			var fault *KeyError
			if all[i], fault = decode(s, t); fault != nil {
				return nil, fault
			}
		}
		return all, nil
	}
}

// nodesOf reads a list of scalars from a file.
func nodesOf[T any](decode func(setting, string) (T, *KeyError)) func(setting, *yaml.Node) (any, *KeyError) {
	return func(s setting, n *yaml.Node) (any, *KeyError) {
		return items(n, s.want(), func(item *yaml.Node) (made T, fault *KeyError) {
			t, fault := s.scalar(item)
			if fault != nil {
				return made, fault
			}
			return decode(s, t)
		})
	}
}

// fromTexts decodes what a flag or an environment variable holds. A flag of a
// kind with parts may come several times; of others the last one counts.
func (s setting) fromTexts(texts []string) (any, *KeyError) {
	switch c := s.codec(); {
	case c.decode != nil:
		return c.decode(s, texts[len(texts)-1])
	case c.texts != nil:
		return c.texts(s, texts)
	}
	return nil, wrong("wants JSON: "+s.want(), "")
}

// fromNode decodes what stands in a file. A fault carries the line where it is
// nearer than the key.
func (s setting) fromNode(n *yaml.Node) (any, *KeyError) {
	c := s.codec()
	if c.node != nil {
		return c.node(s, n)
	}
	t, fault := s.scalar(n)
	if fault != nil {
		return nil, fault
	}
	return c.decode(s, t)
}

// fromVariable decodes an environment variable: JSON where the kind has parts
// and the text looks like it, else one text or several parted by commas.
func (s setting) fromVariable(t string) (any, *KeyError) {
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
