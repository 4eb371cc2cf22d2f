package config

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Change sets or removes a setting in the user file.
type Change struct {
	Key string // of a setting, or of one name in a setting, such as carriers.UPS
	// A string in the form of the environment variable, a [Secret], a []string, a map[string]string or a
	// [webhook.Scheme]; nil removes the key, known or not.
	Value any
}

// Set changes a profile in the user file and returns the file's path. Everything else stays as it is, comments too. The
// profile in force can be set only in [DefaultProfile]. The file is created if missing, 0600 in a 0700 folder, and
// replaced atomically. A change that [Load] would refuse is an error. Concurrent changes by others are not lost.
//
// A secret as a string is refused: secrets must not be on command lines. The error is a [*KeyError].
func Set(src Sources, profile string, changes ...Change) (string, error) {
	for {
		d, err := OpenDraft(src)
		if err != nil {
			return "", err
		}
		var nodes []*yaml.Node
		for _, c := range changes {
			n, err := d.loader.node(c)
			if err != nil {
				return "", at(err, c.Key, Origin{Name: c.Key})
			}
			nodes = append(nodes, n)
		}
		data, err := edited(d.Old, profile, changes, nodes)
		if err != nil {
			return "", cmp.Or(d.fault, at(err, "", Origin{Level: FromUser, File: d.Path}))
		}
		if err := d.checkChanges(data, profile, changes); err != nil {
			return "", err
		}
		if err := d.Replace(data); !errors.Is(err, ErrChanged) {
			return d.Path, err
		}
	}
}

// checkChanges returns why [Load] would refuse data, the changed file. An earlier fault in another setting is ignored.
func (d *Draft) checkChanges(data []byte, profile string, changes []Change) error {
	made, err := d.loader.decodeUser(data, d.Path)
	if err != nil {
		return err
	}
	err = d.decided(made, profile)
	if fault, isFault := errors.AsType[*KeyError](err); isFault && d.fault == nil && d.decided(d.made, profile) != nil &&
		!slices.ContainsFunc(changes, func(c Change) bool { return c.Key == fault.Key }) {
		return nil
	}
	return err
}

// named splits the key of a name in a map into the map's setting and the name as stored; the zero setting for others.
func named(key string) (Setting, string) {
	for _, s := range table() {
		name, ok := strings.CutPrefix(key, s.Key+".")
		if !ok || s.Kind != KindNames && s.Kind != KindMaps && s.Kind != KindSchemes {
			continue
		}
		if s.fields {
			name = cmp.Or(field(name), name)
		}
		return s, name
	}
	return Setting{}, ""
}

// CheckKey reports whether a setting is a secret. For an unknown key, the error is a [*KeyError] with the nearest key.
func CheckKey(key string) (secret bool, err error) {
	s := settingOf(key)
	if parent, name := named(key); s.Key != "" || parent.Key != "" && strings.TrimSpace(name) != "" {
		return s.Kind == KindSecret, nil
	}
	return false, unknownKey(key, keysOf(table()))
}

func placeOf(key string) []string {
	if s, name := named(key); name != "" {
		return append(strings.Split(s.Key, "."), name)
	}
	return strings.Split(key, ".")
}

func (l *loader) node(c Change) (*yaml.Node, error) {
	s := settingOf(c.Key)
	switch v := c.Value.(type) {
	case nil:
		return nil, nil
	case string:
		return l.stringNode(c.Key, v)
	case Secret:
		_, err := s.fromText(v.Reveal())
		if err == nil && s.Key == "api_key" {
			err = checkAPIKey(v)
		}
		return textNode(v.Reveal()), err
	case webhook.Scheme:
		return changedNode(v), nil
	default:
		return nodeOf(v), nil
	}
}

// stringNode returns as YAML a key's value t, which has the form of the environment variable.
func (l *loader) stringNode(key, t string) (*yaml.Node, error) {
	s := settingOf(key)
	parent, name := named(key)
	switch {
	case s.Key == "" && parent.Kind == KindNames:
		_, err := parent.checkName(name, t, map[string]string{})
		return textNode(t), err
	case parent.Key != "":
		return nil, wrong("can't be set alone", "write all of "+parent.Key+" into the file with `waybill config edit`")
	case s.Key == "":
		return nil, wrong(didYouMean("unknown key", key, keysOf(table())), unknownHint)
	case s.Kind == KindSecret:
		return nil, wrong("is a secret", "edit the file by hand, or set the path of a file that contains it")
	case t == "":
		return nil, wrong("must be "+s.codec().want, "")
	}
	v, err := s.fromVariable(t)
	if err != nil {
		return nil, err
	}
	v = l.withAbsolutePaths(s, v, l.src.WorkDir)
	n := nodeOf(plain(v))
	if again, err := s.fromNode(n); err != nil || !reflect.DeepEqual(again, v) { // such as a number of 20 digits
		return nil, wrong(notUnchanged, "edit the file by hand")
	}
	return n, nil
}

const notUnchanged = "can't be written to the file unchanged"

func nodeOf(v any) *yaml.Node {
	n := &yaml.Node{}
	_ = n.Encode(v) // JSON types always encode
	if _, isList := v.([]string); isList {
		n.Style = yaml.FlowStyle
	}
	return n
}

// edited applies changes, whose values are nodes, to a user file. It keeps empty lines unless that would alter a value.
func edited(old []byte, profile string, changes []Change, nodes []*yaml.Node) ([]byte, error) {
	made, err := encoded(old, profile, changes, nodes)
	if err != nil || !bytes.Contains(old, []byte("\n\n")) {
		return made, err
	}
	spaced, err := encoded(markBlank(old), profile, changes, nodes)
	spaced = regexp.MustCompile(`(?m)^ *`+blankMark+`$`).ReplaceAll(spaced, nil)
	spaced = append(bytes.TrimRight(spaced, "\n"), '\n')
	if err == nil && sameValues(made, spaced) {
		return spaced, nil
	}
	return made, nil
}

func sameValues(a, b []byte) bool {
	var one, two any
	return yaml.Unmarshal(a, &one) == nil && yaml.Unmarshal(b, &two) == nil && reflect.DeepEqual(one, two)
}

// blankMark replaces an empty line, which the encoder would drop.
const blankMark = "#\u00a0empty"

// markBlank marks the empty lines of a YAML text, indented like the line after them.
func markBlank(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	indent := ""
	for i, line := range slices.Backward(lines[:len(lines)-1]) { // the last line does not end in a newline
		if content := strings.TrimLeft(line, " "); strings.TrimSpace(line) != "" {
			indent = line[:len(line)-len(content)]
		} else {
			lines[i] = indent + blankMark
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// encoded does what edited does, but drops empty lines.
func encoded(old []byte, profile string, changes []Change, nodes []*yaml.Node) ([]byte, error) {
	root, err := parse(old)
	if err != nil {
		return nil, err
	}
	doc := &yaml.Node{}
	var out bytes.Buffer
	if root == nil {
		doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		if text := bytes.TrimSpace(old); len(text) > 0 && bytes.HasPrefix(text, []byte("#")) {
			out.Write(append(text, '\n')) // only comments
		}
	} else if err := yaml.Unmarshal(old, doc); err != nil {
		return nil, syntaxFault(err)
	}
	for i, c := range changes {
		section := doc.Content[0]
		place := placeOf(c.Key)
		keys := profilePlace(profile, place)
		if nodes[i] == nil {
			remove(section, keys, len(keys)-len(place))
			continue
		}
		for _, key := range keys[:len(keys)-1] {
			if section, err = child(section, key); err != nil {
				return nil, err
			}
		}
		put(section, keys[len(keys)-1], nodes[i])
	}
	if root := doc.Content[0]; len(root.Content) == 0 {
		if text := comments(doc.HeadComment, root.HeadComment, doc.FootComment); text != "" {
			out.WriteString(text + "\n")
		}
		return out.Bytes(), nil
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	var want, got any
	err = errors.Join(enc.Encode(doc), enc.Close(), doc.Decode(&want))
	if err != nil || yaml.Unmarshal(out.Bytes(), &got) != nil || !reflect.DeepEqual(want, got) {
		return nil, wrong(notUnchanged, "edit the file by hand")
	}
	return out.Bytes(), nil
}

// below returns the value of a key; nil if it is missing or n is not a mapping.
func below(n *yaml.Node, key string) *yaml.Node {
	own, _ := pairs(n, "")
	if i := slices.IndexFunc(own, func(p pair) bool { return p.key == key }); i >= 0 {
		return own[i].value
	}
	return nil
}

func child(n *yaml.Node, key string) (*yaml.Node, error) {
	old := below(n, key)
	if old == nil {
		old = &yaml.Node{Kind: yaml.MappingNode}
		n.Content = append(n.Content, textNode(key), old)
	}
	if missing(old) {
		old.Kind, old.Tag, old.Value = yaml.MappingNode, "", ""
	}
	if len(old.Content) == 0 {
		old.Style = 0 // no braces once it has content
	}
	if old.Kind != yaml.MappingNode {
		return nil, &KeyError{Line: old.Line, Message: "must be a mapping of keys and values"}
	}
	return old, nil
}

// remove removes the value at the path keys, and sections that become empty, except the first keep ones. Comments stay.
func remove(n *yaml.Node, keys []string, keep int) {
	own, _ := pairs(n, "")
	i := 2 * slices.IndexFunc(own, func(p pair) bool { return p.key == keys[0] })
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

// put sets a key of a mapping. The line comment of the old value stays.
func put(n *yaml.Node, key string, v *yaml.Node) {
	if old := below(n, key); old != nil {
		v.LineComment = old.LineComment
		*old = *v
		return
	}
	n.Content = append(n.Content, textNode(key), v)
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
