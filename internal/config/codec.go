package config

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/tracking"
)

// names maps names to values. Its distinct type keeps viper from lower-casing and splitting the names.
type names map[string]any

type codec struct {
	want string                        // the values that the setting accepts, in words
	tags []string                      // YAML types of a single text; textTags if nil
	node func(*yaml.Node) (any, error) // decodes a composite kind from a file
}

// textTags are the YAML tags that are accepted as text.
var textTags = []string{"!!str", "!!int", "!!float", "!!timestamp"}

func (s Setting) codec() codec {
	bounds := " from " + plainNumber(s.least) + " to " + plainNumber(s.most)
	switch s.Kind {
	case KindChoice:
		last := len(s.Choices) - 1
		return codec{want: strings.Join(s.Choices[:last], ", ") + " or " + s.Choices[last]}
	case KindBool:
		return codec{want: "true or false", tags: []string{"!!bool", "!!str"}}
	case KindInteger:
		return codec{want: "a whole number" + bounds, tags: []string{"!!int"}}
	case KindNumber:
		return codec{want: "a number" + bounds, tags: []string{"!!int", "!!float"}}
	case KindDuration:
		return codec{want: "a duration such as 30s, 2m, 1h or 7d"}
	case KindSize:
		return codec{want: "a size from " + Size(s.least).String() + " to " + Size(s.most).String()}
	case KindPath:
		return codec{want: "the path of a file"}
	case KindList:
		return codec{want: "a list of strings", node: s.items(s.oneItem)}
	case KindIntegers:
		return codec{want: "whole numbers" + bounds, tags: []string{"!!int"}, node: s.items(s.oneItem)}
	case KindNames:
		return codec{want: "names with a string each", node: s.byName(nameValue)}
	case KindMaps:
		mapping := Setting{Kind: KindNames, fields: true, check: emptyError}
		return codec{want: "mappings by name", node: s.byName(mapping.fromNode)}
	case KindMatches:
		return codec{want: "a list of {path, equals}", node: s.items(s.condition)}
	case KindAbsents:
		return codec{want: "a list of {status, message, path, equals}", node: s.items(s.condition)}
	case KindSchemes:
		return codec{want: "signature schemes by name", node: s.byName(schemeFromNode)}
	case kindLiteral:
		return codec{want: "one string, number, true, false, null, {} or []", node: s.literal}
	default:
		return codec{want: "text"}
	}
}

// fromTexts decodes a flag or a variable. For a kind with parts, each text is a part; for others, the last text counts.
func (s Setting) fromTexts(texts []string) (any, error) {
	c := s.codec()
	switch {
	case s.Kind == KindNames:
		return s.namesFromTexts(texts)
	case c.node == nil:
		return s.fromText(texts[len(texts)-1])
	case s.Kind != KindList && s.Kind != KindIntegers:
		return nil, wrong("must be JSON: "+c.want, "")
	}
	all := make([]any, len(texts))
	for i, t := range texts {
		var err error
		if all[i], err = s.fromText(t); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fromVariable decodes a variable. For a kind with parts, it is JSON if it starts with [ or {, else split at commas.
func (s Setting) fromVariable(t string) (any, error) {
	if s.codec().node == nil {
		return s.fromText(t)
	}
	if t[0] != '[' && t[0] != '{' {
		parts := strings.Split(t, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return s.fromTexts(parts)
	}
	_, n, err := ParseYAML([]byte(t))
	var v any
	if err == nil {
		v, err = s.fromNode(n)
	}
	if fault, ok := errors.AsType[*KeyError](err); ok {
		fault.Line = 0 // a line of the variable would be mistaken for one of a file
	}
	return v, err
}

// fromNode decodes a value in a file. A fault has a line if that is more exact than the line of the key.
func (s Setting) fromNode(n *yaml.Node) (any, error) {
	if c := s.codec(); c.node != nil {
		return c.node(n)
	}
	return s.oneItem(n)
}

// oneItem decodes one scalar. A number that is accepted as text keeps its spelling.
func (s Setting) oneItem(n *yaml.Node) (any, error) {
	c := s.codec()
	if c.tags == nil {
		c.tags = textTags
	}
	t, problem := scalar(n, c.tags...)
	if problem != "" {
		return nil, &KeyError{Line: n.Line, Message: "must be " + c.want + problem}
	}
	return s.fromText(t)
}

func scalar(n *yaml.Node, tags ...string) (text, problem string) {
	switch {
	case missing(n):
		return "", ", but has no value"
	case n.Kind != yaml.ScalarNode:
		return "", ", not a list or keys"
	case slices.Contains(tags, n.ShortTag()):
		return n.Value, ""
	case n.ShortTag() == "!!bool":
		return "", ", not true or false (put it in quotes if it is a string)"
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return "", ", not " + quoted(n.Value) + " in quotes"
	}
	return "", ", not " + quoted(n.Value)
}

func (s Setting) fromText(t string) (any, error) {
	switch s.Kind {
	case KindChoice:
		if !slices.Contains(s.Choices, t) {
			return nil, wrong(didYouMean(mustBe(s.codec().want, t), t, s.Choices), "")
		}
		return t, nil
	case KindBool:
		yes := slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(t))
		if !yes && !slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(t)) {
			return nil, wrong(mustBe(s.codec().want, t), "")
		}
		return yes, nil
	case KindInteger, KindIntegers:
		n, err := strconv.Atoi(t)
		return n, s.bounded(t, float64(n), err)
	case KindNumber:
		n, err := strconv.ParseFloat(t, 64)
		return n, s.bounded(t, n, err)
	case KindDuration:
		d, err := ParseDuration(t)
		if err != nil {
			return nil, wrong(err.Error(), "")
		}
		return d, nil
	case KindSize:
		n, err := ParseSize(t)
		if err != nil {
			return nil, wrong(err.Error(), "")
		}
		return n, s.bounded(t, float64(n), nil)
	case KindSecret:
		return cleanSecret([]byte(t))
	}
	if s.check == nil || t == "" && s.preset == "" {
		return t, nil
	}
	switch want := s.check(t); {
	case want == "":
		return t, nil
	case s.private:
		return nil, wrong("must be "+want, "")
	default:
		return nil, wrong(mustBe(want, t), "")
	}
}

func (s Setting) bounded(t string, n float64, err error) error {
	if err != nil || math.IsNaN(n) || n < s.least || n > s.most {
		return wrong(mustBe(s.codec().want, t), "")
	}
	return nil
}

func mustBe(want, t string) string { return "must be " + want + ", not " + quoted(t) }

func (s Setting) items(decode func(*yaml.Node) (any, error)) func(*yaml.Node) (any, error) {
	return func(n *yaml.Node) (any, error) {
		if n.Kind != yaml.SequenceNode {
			return nil, &KeyError{Line: n.Line, Message: "must be " + s.codec().want + " in [ ] or with a - before each"}
		}
		all := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if all[i], err = decode(item); err != nil {
				return nil, at(err, "", Origin{Line: item.Line})
			}
		}
		return all, nil
	}
}

func (s Setting) byName(decode func(*yaml.Node) (any, error)) func(*yaml.Node) (any, error) {
	return func(n *yaml.Node) (any, error) {
		own, err := pairs(n, s.codec().want)
		if err != nil {
			return nil, err
		}
		all, taken := names{}, map[string]string{}
		for _, p := range own {
			v, err := decode(p.value)
			name := p.key
			switch fault, _ := errors.AsType[*KeyError](err); {
			case fault == nil:
				name, err = s.checkName(p.key, v, taken)
			case s.Kind == KindNames:
				err = in(nameOf(p.key), err)
			default:
				err = in(strings.TrimSuffix(p.key+"."+fault.Key, "."), err)
				fault.Key = ""
			}
			if err != nil {
				return nil, at(err, "", Origin{Line: p.line})
			}
			all[name] = v
		}
		return all, nil
	}
}

func nameValue(n *yaml.Node) (any, error) {
	t, problem := scalar(n, textTags...)
	if problem != "" {
		return nil, wrong("must be a string"+problem, "")
	}
	return t, nil
}

func (s Setting) namesFromTexts(texts []string) (any, error) {
	all, taken := names{}, map[string]string{}
	for _, t := range texts {
		if name, ok := strings.CutPrefix(t, savedMark); ok && s.fields {
			if _, twice := all[savedMark]; twice {
				return nil, wrong("must name one saved mapping, not two", "")
			}
			all[savedMark] = name
			continue
		}
		i := strings.IndexByte(t, '=')
		if s.lastCut {
			i = strings.LastIndexByte(t, '=')
		}
		if i < 0 {
			return nil, wrong(mustBe("NAME=VALUE", t), s.Help)
		}
		name, err := s.checkName(t[:i], t[i+1:], taken)
		if err != nil {
			return nil, err
		}
		all[name] = t[i+1:]
	}
	return all, nil
}

// checkName returns a name as it is stored, and adds it to taken, which maps folded names to names. It is an error if
// the name or its value is invalid, or if taken has an equal name.
func (s Setting) checkName(name string, value any, taken map[string]string) (string, error) {
	want := filledLineError(name)
	switch {
	case s.fields:
		if want = ""; field(name) == "" {
			known := MapFields()
			return "", wrong(didYouMean("unknown name "+quoted(name), name, known), "known: "+strings.Join(known, ", "))
		}
		name = field(name)
	case s.Kind == KindMaps:
		want = mapNameError(name)
	}
	other, twice := taken[s.foldedName(name)]
	t, isText := value.(string)
	switch {
	case want != "":
		return "", in(nameOf(name), wrong("must be "+want, ""))
	case twice && name != other:
		return "", wrong(nameOf(name)+" appears twice (also as "+quoted(other)+")", "")
	case twice:
		return "", wrong(nameOf(name)+" appears twice", "")
	case isText && s.check != nil && s.check(t) != "":
		return "", in(nameOf(name), wrong(mustBe(s.check(t), t), ""))
	}
	taken[s.foldedName(name)] = name
	return name, nil
}

func nameOf(name string) string { return "name " + quoted(name) }

// foldedName returns the form in which names compare: carriers and statuses ignore case and surrounding space.
func (s Setting) foldedName(name string) string {
	if s.Kind != KindNames || s.fields {
		return name
	}
	return strings.ToLower(strings.TrimSpace(name))
}

// conditionParts returns the parts of {status, message, path, equals}; a match has only the last two.
func conditionParts() []Setting {
	return []Setting{
		{Key: "status", Kind: KindInteger, least: 100, most: 599},
		{Key: "message", Kind: KindText, check: emptyError},
		{Key: "path", Kind: KindText, check: pointer},
		{Key: "equals", Kind: kindLiteral},
	}
}

func (s Setting) condition(n *yaml.Node) (any, error) {
	known := conditionParts()
	if s.Kind == KindMatches {
		known = known[2:]
	}
	parts, err := decodeKeys(n, known, Origin{})
	_, hasPath := parts["path"]
	equals, hasEquals := parts["equals"]
	switch fault, isFault := errors.AsType[*KeyError](err); {
	case isFault && fault.Key != "":
		err, fault.Key = in(fault.Key, err), ""
		return nil, err
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, wrong("an entry must have "+strings.Join(keysOf(known), ", "), "")
	case hasPath != hasEquals:
		return nil, wrong("path and equals must be set together", "")
	}
	match := tracking.Match{Path: parts["path"].text(), Equals: equals.text()}
	if s.Kind == KindMatches {
		return match, nil
	}
	status, _ := parts["status"].v.(int)
	return tracking.Absent{Status: status, Message: parts["message"].text(), Match: match}, nil
}

// literal returns a scalar, {} or [] as JSON text. A number keeps its spelling.
func (s Setting) literal(n *yaml.Node) (any, error) {
	var v any = n.Value
	switch n.ShortTag() {
	case "!!int", "!!float":
		v = json.RawMessage(n.Value) // no JSON text for a number that JSON lacks
	case "!!null", "!!bool", "!!map", "!!seq":
		_ = n.Decode(&v) // these always decode
	}
	text := compactJSON(v)
	if text == "" || len(n.Content) > 0 {
		return nil, wrong("must be "+s.codec().want, "")
	}
	return text, nil
}
