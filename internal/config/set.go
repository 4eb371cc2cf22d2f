package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Assignment gives a setting a value, written as its environment variable
// would hold it.
type Assignment struct{ Key, Value string }

// Set writes settings into the user file, below the profile if one is named,
// and leaves what else stands there as it is, comments too. The file is made
// if need be and is 0600 afterwards; it is replaced whole or not at all, and
// only by one that can be read again. It returns the file's path.
//
// Secrets are refused: their values do not go through command lines. The error
// is a [*KeyError].
func Set(src Sources, profile string, all ...Assignment) (string, error) {
	l := &loader{src: src, table: table()}
	var err error
	if l.paths, err = Locate(src); err != nil {
		return "", err
	}
	o := Origin{Level: FromUser, File: l.paths.User, Profile: profile}
	if o.File == "" {
		return "", wrong("no place for the user file is known: there is no home folder", "name a file with --config")
	}
	doc, fault := document(o.File)
	if fault != nil {
		return o.File, fault.at("", o)
	}
	want := map[string]any{}
	for _, a := range all {
		v, fault := l.assign(doc.Content[0], profile, a)
		if fault != nil {
			return o.File, fault.at(a.Key, Origin{Name: a.Key})
		}
		want[a.Key] = v
	}
	var text bytes.Buffer
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(doc), enc.Close()); err != nil {
		return o.File, (&KeyError{Message: err.Error(), Err: err}).at("", o)
	}
	if err := l.readsAs(text.Bytes(), o, want); err != nil {
		return o.File, err
	}
	if err := replace(o.File, text.Bytes()); err != nil {
		return o.File, (&KeyError{Message: cause(err), Hint: openHint(err), Err: err}).at("", o)
	}
	return o.File, nil
}

// document returns the file's YAML with a mapping in it; an empty one if there
// is no file.
func document(path string) (*yaml.Node, *KeyError) {
	empty := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Tag: "!!map"}}}
	data, _, fault := readSettings(path)
	if fault != nil {
		if errors.Is(fault, fs.ErrNotExist) {
			return empty, nil
		}
		return nil, fault
	}
	root, fault := parse(data)
	if fault != nil {
		return nil, fault
	}
	if root == nil {
		if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '#' {
			empty.Content[0].HeadComment = string(text)
		}
		return empty, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, syntaxFault(err)
	}
	return &doc, nil
}

// assign puts one value in its place and returns it decoded.
func (l *loader) assign(root *yaml.Node, profile string, a Assignment) (any, *KeyError) {
	s := l.find(a.Key)
	switch {
	case s.Key == "":
		return nil, &KeyError{Message: didYouMean("unknown key", a.Key, l.keys()), Hint: unknownHint}
	case s.Secret:
		return nil, wrong("is a secret", "write it into the file yourself, or name a file that holds it")
	case a.Value == "":
		return nil, &KeyError{Message: "wants " + s.want()}
	}
	v, fault := s.fromVariable(a.Value)
	if fault != nil {
		return nil, fault
	}
	v = l.placed(s, v, l.src.WorkDir)
	n, fault := nodeOf(v)
	if fault != nil {
		return nil, fault
	}
	place := strings.Split(a.Key, ".")
	if profile != "" {
		place = append([]string{profilesKey, profile}, place...)
	}
	return v, put(root, place, n)
}

// nodeOf writes a decoded value as YAML.
func nodeOf(v any) (*yaml.Node, *KeyError) {
	text, err := compactJSON(plain(v))
	if err != nil {
		return nil, &KeyError{Message: err.Error(), Err: err}
	}
	n, fault := parse([]byte(text))
	if fault == nil && n == nil {
		fault = wrong("has no value", "")
	}
	if fault == nil {
		block(n)
	}
	return n, fault
}

// block takes the brackets and quotes of JSON off; the encoder puts quotes
// where they are needed.
func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}

// put sets the value at a place, and makes the sections on the way.
func put(n *yaml.Node, place []string, v *yaml.Node) *KeyError {
	if missing(n) {
		*n = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", HeadComment: n.HeadComment, LineComment: n.LineComment, FootComment: n.FootComment}
	}
	if n.Kind != yaml.MappingNode {
		return &KeyError{Line: n.Line, Message: "wants keys and values below it"}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != place[0] {
			continue
		}
		if len(place) > 1 {
			return put(n.Content[i+1], place[1:], v)
		}
		v.LineComment = n.Content[i+1].LineComment
		n.Content[i+1] = v
		return nil
	}
	key, fault := nodeOf(place[0])
	if fault != nil {
		return fault
	}
	below := v
	if len(place) > 1 {
		below = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		fault = put(below, place[1:], v)
	}
	n.Content = append(n.Content, key, below)
	return fault
}

// readsAs refuses a file that would not be read with these values in it.
func (l *loader) readsAs(data []byte, o Origin, want map[string]any) error {
	root, fault := parse(data)
	if fault != nil {
		return fault.at("", o)
	}
	made := userFile{layer{FromUser, map[string]value{}}, map[string]layer{}}
	if err := l.fillUser(made, root, o); err != nil {
		return err
	}
	in := made.top
	if o.Profile != "" {
		in = made.profiles[o.Profile]
	}
	for key, v := range want {
		if !reflect.DeepEqual(in.values[key].v, v) {
			return wrong("can't be written so that it reads the same", "write it into the file yourself").at(key, o)
		}
	}
	return nil
}

// replace writes a file whole, for its owner alone. A link is followed.
func replace(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
