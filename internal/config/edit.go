package config

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// Change sets one key of the user file, or removes it.
type Change struct {
	Key   []string // the names on the way to it, such as webhook, schemes, mine
	Value any      // a string, a []string, a [webhook.Scheme] or a [*yaml.Node]; nil removes the key
}

// EditUser changes the user file and returns its path: what is not changed
// stays as it is, comments too. profile is the profile whose keys are meant.
// The file is made if need be, 0600 in a 0700 folder; it is never there in part, and never one that [Load] would refuse.
// What others change meanwhile is not lost. The error is a [*KeyError].
func EditUser(src Sources, profile string, changes ...Change) (string, error) {
	return editUser(src, profile, changes, func(userFile, string) error { return nil })
}

// editUser changes the user file if check agrees with how it would be read.
func editUser(src Sources, profile string, changes []Change, check func(made userFile, file string) error) (string, error) {
	for {
		d, err := OpenDraft(src)
		if err != nil {
			return "", err
		}
		data, fault := edited(d.Old, profile, changes)
		if fault != nil {
			return "", fault.at("", Origin{Level: FromUser, File: d.Path})
		}
		made, err := d.judge(data, profile, changes)
		if err != nil {
			return "", err
		}
		if err := check(made, d.Path); err != nil {
			return "", err
		}
		if err := d.Replace(data); !errors.Is(err, ErrChanged) {
			return d.Path, err
		}
	}
}

// judge returns what [Load] would read of data after changes, or why it would
// refuse it. A fault that the file had before, and that is not about what was
// changed, does not hinder.
func (d *Draft) judge(data []byte, profile string, changes []Change) (userFile, error) {
	made, err := d.read(data, d.Path)
	if err != nil {
		return made, err
	}
	err = d.decided(made, profile, d.Path)
	fault, isFault := errors.AsType[*KeyError](err)
	if err == nil || !isFault {
		return made, err
	}
	changed := func(c Change) bool { return strings.Join(c.Key, ".") == fault.Key }
	if old, e := d.read(d.Old, d.Path); e == nil && d.decided(old, profile, d.Path) != nil && !slices.ContainsFunc(changes, changed) {
		err = nil
	}
	return made, err
}

// edited returns the text of a user file with changes made. Empty lines stay where
// that changes no value.
func edited(old []byte, profile string, changes []Change) ([]byte, *KeyError) {
	made, fault := encoded(old, profile, changes)
	if fault != nil || !bytes.Contains(old, []byte("\n\n")) {
		return made, fault
	}
	spaced, fault := encoded(markBlank(old), profile, changes)
	spaced = append(bytes.TrimRight(blankMarks.ReplaceAll(spaced, nil), "\n"), '\n')
	if fault == nil && sameValues(made, spaced) {
		return spaced, nil
	}
	return made, nil
}

// sameValues reports whether two texts are YAML of the same values.
func sameValues(a, b []byte) bool {
	var one, two any
	return yaml.Unmarshal(a, &one) == nil && yaml.Unmarshal(b, &two) == nil && reflect.DeepEqual(one, two)
}

// blankMark takes the place of an empty line, which the encoder would drop.
const blankMark = "#\u00a0empty"

var blankMarks = regexp.MustCompile(`(?m)^ *` + blankMark + `$`)

// markBlank marks the empty lines of a YAML text, with the indentation of the line
// after them.
func markBlank(text []byte) []byte {
	lines := strings.Split(string(text), "\n")
	indent := ""
	for i, line := range slices.Backward(lines[:len(lines)-1]) { // the last ends in no newline
		if content := strings.TrimLeft(line, " "); strings.TrimSpace(line) != "" {
			indent = line[:len(line)-len(content)]
		} else {
			lines[i] = indent + blankMark
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// encoded is edited without the empty lines.
func encoded(old []byte, profile string, changes []Change) ([]byte, *KeyError) {
	root, fault := parse(old)
	if fault != nil {
		return nil, fault
	}
	doc := &yaml.Node{}
	var out bytes.Buffer
	if root == nil {
		doc = &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		if text := bytes.TrimSpace(old); len(text) > 0 && bytes.HasPrefix(text, []byte("#")) {
			out.Write(append(text, '\n')) // nothing but comments
		}
	} else if err := yaml.Unmarshal(old, doc); err != nil {
		return nil, syntaxFault(err)
	}
	for _, c := range changes {
		at := doc.Content[0]
		keys := profilePlace(profile, c.Key)
		if c.Value == nil {
			remove(at, keys, len(keys)-len(c.Key))
			continue
		}
		for _, key := range keys[:len(keys)-1] {
			if at, fault = child(at, key); fault != nil {
				return nil, fault
			}
		}
		put(at, keys[len(keys)-1], valueNode(c.Value))
	}
	if root := doc.Content[0]; len(root.Content) == 0 {
		if text := comments(doc.HeadComment, root.HeadComment, doc.FootComment); text != "" {
			out.WriteString(text + "\n")
		}
		return out.Bytes(), nil
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return nil, &KeyError{Message: cause(err), Err: err}
	}
	return out.Bytes(), nil
}

// below returns what a key of a mapping holds, nil if it is not there.
func below(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// child returns the mapping below a key, made if need be.
func child(n *yaml.Node, key string) (*yaml.Node, *KeyError) {
	old := below(n, key)
	if old == nil {
		old = &yaml.Node{Kind: yaml.MappingNode}
		n.Content = append(n.Content, textNode(key), old)
	}
	if missing(old) {
		*old = yaml.Node{Kind: yaml.MappingNode, HeadComment: old.HeadComment, LineComment: old.LineComment, FootComment: old.FootComment}
	}
	if len(old.Content) == 0 {
		old.Style = 0 // no braces once it is filled
	}
	if old.Kind != yaml.MappingNode {
		return nil, &KeyError{Line: old.Line, Message: "must be a mapping of keys and values"}
	}
	return old, nil
}

// remove removes what a path of keys names, and the sections that are empty
// without it, but for those of the first keep keys. Comments above it stay.
func remove(n *yaml.Node, keys []string, keep int) {
	i := 0
	for ; i < len(n.Content) && n.Content[i].Value != keys[0]; i += 2 {
	}
	if i == len(n.Content) {
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
	place := &n.HeadComment // of what is empty now
	switch {
	case i < len(n.Content):
		place = &n.Content[i].HeadComment
	case i > 0:
		place = &n.Content[i-2].FootComment
	}
	*place = comments(key.HeadComment, value.HeadComment, key.FootComment, *place)
}

// comments joins comments, with an empty line between them.
func comments(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(c string) bool { return c == "" }), "\n\n")
}

// put sets a key of a mapping. A comment beside the old value stays.
func put(n *yaml.Node, key string, v *yaml.Node) {
	if old := below(n, key); old != nil {
		v.LineComment = old.LineComment
		*old = *v
		return
	}
	n.Content = append(n.Content, textNode(key), v)
}

func valueNode(v any) *yaml.Node {
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case webhook.Scheme:
		return changedNode(v)
	case []string:
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, item := range v {
			list.Content = append(list.Content, textNode(item))
		}
		return list
	default:
		return textNode(fmt.Sprint(v))
	}
}

// textNode is a text, in quotes where it would be read as something else.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if strings.TrimSpace(s) != s || s == "" {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
