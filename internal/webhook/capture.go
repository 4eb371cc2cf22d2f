package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// capture is a delivery in a file. Field names are in camelCase and headers a
// list of {name, value}, or an object of texts or lists of texts.
type capture struct {
	ReceivedAt time.Time       `json:"receivedAt"`
	Method     string          `json:"method"`
	Path       string          `json:"path"`
	Query      string          `json:"query"`
	Headers    json.RawMessage `json:"headers"`
	Body       *string         `json:"body"`
	BodyBase64 []byte          `json:"bodyBase64"` // instead of a body that is no text
}

// ParseCaptures reads deliveries from a file of JSON: one object after the
// other, as in JSON Lines, or an array of them.
func ParseCaptures(data []byte) ([]Sample, error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var all []capture
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, fmt.Errorf("deliveries: %w", err)
		}
		return samplesOf(all)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var all []capture
	for {
		var c capture
		err := dec.Decode(&c)
		if errors.Is(err, io.EOF) {
			return samplesOf(all)
		}
		if err != nil {
			return nil, fmt.Errorf("delivery %d: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
}

var errNoBody = errors.New("has neither body nor bodyBase64")

func samplesOf(all []capture) ([]Sample, error) {
	samples := make([]Sample, len(all))
	for i, c := range all {
		s := Sample{At: c.ReceivedAt, Request: Request{Method: c.Method, Path: c.Path, RawQuery: c.Query, Body: c.BodyBase64}}
		if s.Method == "" {
			s.Method = "POST"
		}
		if s.Path == "" {
			s.Path = "/"
		}
		if c.Body != nil {
			s.Body = []byte(*c.Body)
		}
		if s.Body == nil {
			return nil, fmt.Errorf("delivery %d: %w", i+1, errNoBody)
		}
		var err error
		if s.Header, err = fieldsOf(c.Headers); err != nil {
			return nil, fmt.Errorf("delivery %d: headers: %w", i+1, err)
		}
		samples[i] = s
	}
	return samples, nil
}

var errHeaders = errors.New("want a list of {name, value}, or an object of texts or lists of texts")

func fieldsOf(raw json.RawMessage) ([]Field, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var list []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	if json.Unmarshal(raw, &list) == nil {
		fields := make([]Field, len(list))
		for i, f := range list {
			fields[i] = Field(f)
		}
		return fields, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil, errHeaders
	}
	var fields []Field
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var values []string
		var one string
		switch {
		case json.Unmarshal(object[name], &one) == nil:
			values = []string{one}
		case json.Unmarshal(object[name], &values) != nil:
			return nil, errHeaders
		}
		for _, v := range values {
			fields = append(fields, Field{name, v})
		}
	}
	return fields, nil
}
