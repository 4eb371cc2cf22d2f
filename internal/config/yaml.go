package config

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxFile is the maximum size of a settings file, in bytes.
const MaxFile = 1 << 20

// maxDepth is the maximum nesting depth of a settings file; a scheme in a profile needs 6.
const maxDepth = 20

// ParseYAML returns the YAML document in data and its root; nil if the document is empty or null. It refuses ambiguous
// YAML: a second document, anchors and aliases, tags, and duplicate keys.
func ParseYAML(data []byte) (doc, root *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	doc = &yaml.Node{}
	err = dec.Decode(doc)
	if errors.Is(err, io.EOF) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, syntaxFault(err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, nil, syntaxFault(err)
		}
		return nil, nil, wrong("contains more than one YAML document", "keep one and remove the line `---` before the others")
	}
	root = doc.Content[0]
	if err := unambiguous(root, 0); err != nil || missing(root) {
		return nil, nil, err
	}
	return doc, root, nil
}

// syntaxFault converts an error of the parser, whose text contains the line and quotes from the file. It removes the
// quotes, which may be part of a secret.
func syntaxFault(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // no line if the number is too large
		text = text[len(m[0]):]
	}
	text = regexp.MustCompile(`'[^']{2,}'`).ReplaceAllString(text, "…")
	const hint = "put values with special characters in quotes, and indent with spaces"
	return &KeyError{Line: line, Message: "not valid YAML: " + text, Hint: hint}
}

// unambiguous refuses YAML that could mislead a reader of the file.
func unambiguous(n *yaml.Node, depth int) error {
	refuse := func(message string) error { return &KeyError{Line: n.Line, Message: message} }
	switch {
	case depth > maxDepth:
		return refuse("nested too deep")
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return refuse("anchors and aliases (& and *) are not allowed; put a value that starts with one in quotes")
	case n.Style&yaml.TaggedStyle != 0:
		return refuse("tags (!) are not allowed; put a value that starts with one in quotes")
	}
	for _, child := range n.Content {
		if err := unambiguous(child, depth+1); err != nil {
			return err
		}
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return &KeyError{Line: key.Line, Message: "a key must be plain text"}
		}
		if first, twice := lines[key.Value]; twice {
			message := "appears twice, first in line " + strconv.Itoa(first)
			return &KeyError{Line: key.Line, Key: short(key.Value), Message: message}
		}
		lines[key.Value] = key.Line
	}
	return nil
}

func missing(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// pairs returns the keys and values of a mapping, in order; nil for a missing or null mapping.
func pairs(n *yaml.Node, want string) ([]pair, error) {
	if n == nil || missing(n) {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, &KeyError{Line: n.Line, Message: "must be " + want}
	}
	var all []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, pair{n.Content[i].Value, n.Content[i].Line, n.Content[i+1]})
	}
	return all, nil
}

// decodeKeys decodes the settings of a table in a mapping and its sections. It returns the valid ones by key, and the
// first fault.
func decodeKeys(root *yaml.Node, table []Setting, o Origin) (layer, error) {
	known := keysOf(table)
	made := layer{}
	var first error
	var section func(n *yaml.Node, prefix string)
	section = func(n *yaml.Node, prefix string) {
		own, err := pairs(n, "a mapping of keys and values")
		first = cmp.Or(first, at(err, strings.TrimSuffix(prefix, "."), o))
		for _, p := range own {
			key, place := prefix+p.key, o
			place.Line = p.line
			var v any
			var err error
			switch i := slices.Index(known, key); {
			case strings.Contains(p.key, "."):
				err = wrong("unknown key: keys with dots are not supported, write each part on a line of its own", unknownHint)
			case i >= 0:
				if v, err = table[i].fromNode(p.value); err == nil {
					made[key] = value{v, place}
				}
			case slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, key+".") }):
				section(p.value, key+".")
			default:
				err = wrong(didYouMean("unknown key", key, known), unknownHint)
			}
			first = cmp.Or(first, at(err, short(key), place))
		}
	}
	section(root, "")
	return made, first
}

func keysOf(table []Setting) []string {
	all := make([]string, len(table))
	for i, s := range table {
		all[i] = s.Key
	}
	return all
}

const unknownHint = "`waybill help environment` lists every key"
