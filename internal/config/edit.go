package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Change sets one key of the user file.
type Change struct {
	Key   []string // the names on the way to it, such as webhook, schemes, mine
	Value any      // a string, a []string, a [webhook.Scheme] or a [*yaml.Node]
}

// EditUser changes the user file and returns its path: what is not changed
// stays as it is, comments too. profile is the profile whose keys are meant,
// empty for those at the top. The file is made if need be, 0600 in a 0700
// folder; it is never there in part, and never one that [Load] would refuse.
// The error is a [*KeyError].
func EditUser(src Sources, profile string, changes ...Change) (string, error) {
	return editUser(src, profile, changes, func(userFile, string) error { return nil })
}

// editUser changes the user file if check agrees with how it would be read.
func editUser(src Sources, profile string, changes []Change, check func(made userFile, file string) error) (string, error) {
	l, err := newLoader(src)
	if err != nil {
		return "", err
	}
	path := l.paths.User
	o := Origin{Level: FromUser, File: path}
	if path == "" {
		return "", wrong("no user file: there is no home folder", "pass --config FILE").at("", o)
	}
	fault := refuseForeignLinks(path)
	var old []byte
	if fault == nil && l.paths.UserExists {
		var info fs.FileInfo
		if old, info, fault = readSettings(path); fault == nil {
			fault = refuseChangers(path, disk.ChangersOf(path, info))
		}
	}
	if fault != nil {
		return "", fault.at("", o)
	}
	data, fault := edited(old, profile, changes)
	if fault != nil {
		return "", fault.at("", o)
	}
	root, fault := parse(data)
	if fault != nil {
		return "", fault.at("", o)
	}
	made := userFile{layer{}, map[string]layer{}}
	if err := l.fillUser(made, root, o); err != nil {
		return "", err
	}
	if err := check(made, path); err != nil {
		return "", err
	}
	if err := replaceFile(path, data); err != nil {
		return "", (&KeyError{Message: "not written: " + cause(err), Hint: "check the folder and its permissions", Err: err}).at("", o)
	}
	return path, nil
}

// edited returns the text of a user file with changes made.
func edited(old []byte, profile string, changes []Change) ([]byte, *KeyError) {
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
		keys := c.Key
		if profile != "" {
			keys = append([]string{profilesKey, profile}, keys...)
		}
		for _, key := range keys[:len(keys)-1] {
			if at, fault = child(at, key); fault != nil {
				return nil, fault
			}
		}
		put(at, keys[len(keys)-1], valueNode(c.Value))
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
	if old.Kind != yaml.MappingNode {
		return nil, &KeyError{Line: old.Line, Message: "must be a mapping of keys and values"}
	}
	return old, nil
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

// replaceFile puts data in the place of a file, whole or not at all. A link is
// followed, so that it stays one.
func replaceFile(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".config.*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
