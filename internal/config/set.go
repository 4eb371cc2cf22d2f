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
		nodes := make([]*yaml.Node, len(changes))
		for i, c := range changes {
			v, err := d.loader.valueOf(c)
			if err != nil {
				return "", err
			}
			nodes[i] = nodeOf(v)
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

// placeOf returns the keys that lead to a key of a profile in the user file.
func placeOf(profile, key string) []string {
	place := strings.Split(key, ".")
	if s, name := named(key); name != "" {
		place = append(strings.Split(s.Key, "."), name)
	}
	if profile == DefaultProfile {
		return place
	}
	return append([]string{profilesKey, profile}, place...)
}

// valueOf checks the value of a change, and returns it as it is written in the file.
func (l *loader) valueOf(c Change) (v any, err error) {
	switch given := c.Value.(type) {
	case string:
		v, err = l.fromString(c.Key, given)
	case Secret:
		v = given.Reveal()
		if c.Key == "api_key" {
			err = checkAPIKey(given)
		}
	default:
		v = given
	}
	return v, at(err, c.Key, Origin{Name: c.Key})
}

// fromString decodes the value t of a key, which has the form of the environment variable, to JSON types.
func (l *loader) fromString(key, t string) (any, error) {
	s := settingOf(key)
	parent, name := named(key)
	isSecret, err := CheckKey(key)
	switch {
	case err != nil:
		return nil, err
	case parent.Kind == KindNames:
		_, err := parent.checkName(name, t, map[string]string{})
		return t, err
	case parent.Key != "":
		return nil, wrong("can't be set alone", "write all of "+parent.Key+" into the file with `waybill config edit`")
	case isSecret:
		return nil, wrong("is a secret", "edit the file by hand, or set the path of a file that contains it")
	case t == "":
		return nil, wrong("must be "+s.codec().want, "")
	}
	v, err := s.fromVariable(t)
	if err != nil {
		return nil, err
	}
	v = l.withAbsolutePaths(s, v, l.src.WorkDir)
	written := plain(v)
	if again, err := s.fromNode(nodeOf(written)); err != nil || !reflect.DeepEqual(again, v) { // as of 20 digits
		return nil, wrong(notUnchanged, "edit the file by hand")
	}
	return written, nil
}

const notUnchanged = "can't be written to the file unchanged"

// nodeOf returns JSON types, a []string or a [webhook.Scheme] as YAML.
func nodeOf(v any) *yaml.Node {
	if s, isScheme := v.(webhook.Scheme); isScheme {
		return schemeNode(s)
	}
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
	doc, root, err := parse(old)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if doc == nil {
		root = &yaml.Node{Kind: yaml.MappingNode}
		doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}
		if text := bytes.TrimSpace(old); bytes.HasPrefix(text, []byte("#")) {
			out.Write(append(text, '\n')) // only comments
		}
	}
	for i, c := range changes {
		place := placeOf(profile, c.Key)
		if c.Value == nil {
			remove(root, place, len(place)-len(placeOf(DefaultProfile, c.Key)))
		} else {
			put(root, place, nodes[i])
		}
	}
	if len(root.Content) == 0 {
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

// find returns the index of a key in the content of a mapping; -1 if there is none.
func find(n *yaml.Node, key string) int {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
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
		if missing(n) {
			n.Kind, n.Tag, n.Value = yaml.MappingNode, "", ""
		}
		if len(n.Content) == 0 {
			n.Style = 0 // no braces once it has content
		}
		if n.Kind != yaml.MappingNode {
			return
		}
		i := find(n, key)
		if i < 0 {
			i = len(n.Content)
			n.Content = append(n.Content, textNode(key), &yaml.Node{Kind: yaml.MappingNode})
		}
		n = n.Content[i+1]
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
