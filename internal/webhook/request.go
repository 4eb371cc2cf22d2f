package webhook

import "strings"

// Field is one header line. Names compare without case.
type Field struct {
	Name  string
	Value string
}

// Request is a delivery as it was received, before any decoding.
type Request struct {
	Method   string
	Path     string  // escaped as sent, without the query
	RawQuery string  // escaped as sent, without the question mark
	Header   []Field // repeated names kept, in the order they came in where that is known
	Body     []byte
}

func (r Request) values(name string) []string {
	var all []string
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}
