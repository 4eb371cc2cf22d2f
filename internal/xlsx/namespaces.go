package xlsx

import (
	"bytes"
	"slices"
)

// space is the name space of a prefix, in the element of a depth that declares it.
type space struct {
	prefix, uri string
	depth       int
}

func (s *scanner) declare() error {
	for attrs := s.attrs; ; {
		name, uri, rest, err := attr(attrs)
		if err != nil || name == nil {
			return err
		}
		if after, found := bytes.CutPrefix(name, []byte("xmlns")); found && (len(after) == 0 || after[0] == ':') {
			s.spaces = append(s.spaces, space{string(bytes.TrimPrefix(after, []byte(":"))), string(uri), s.depth})
		}
		attrs = rest
	}
}

// spaceOf returns the name space of an element, or its prefix if that is declared nowhere.
func (s *scanner) spaceOf(name []byte) string {
	prefix, _, found := bytes.Cut(name, []byte{':'})
	if !found {
		prefix = nil
	}
	for _, declared := range slices.Backward(s.spaces) {
		if declared.prefix == string(prefix) {
			return declared.uri
		}
	}
	return string(prefix)
}

// known returns the name of an element without prefix, or nothing in another name space than the root's.
func (s *scanner) known(name []byte) []byte {
	if s.spaceOf(name) != s.root {
		return nil
	}
	return local(name)
}

func local(name []byte) []byte {
	if _, after, ok := bytes.Cut(name, []byte{':'}); ok {
		return after
	}
	return name
}

// attribute returns an attribute of the start tag, with any prefix; empty if there is none.
func (s *scanner) attribute(name string) (string, error) {
	attrs := s.attrs
	for {
		key, value, rest, err := attr(attrs)
		if err != nil || key == nil {
			return "", err
		}
		if string(local(key)) == name && !bytes.HasPrefix(key, []byte("xmlns")) {
			b, err := appendUnescaped(nil, value)
			return string(b), err
		}
		attrs = rest
	}
}
