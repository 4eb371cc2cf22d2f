package webhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// Capture is a delivery in a file. As JSON it is an object with receivedAt, method, path, query, headers and body.
// headers is a list of {name, value}, or an object of strings or lists of strings. Bytes that are not text are in
// base64,
// in bodyBase64, pathBase64, queryBase64 and a header's valueBase64.
//
// Reading returns the written delivery byte for byte, except that an empty path becomes / and an empty method POST.
type Capture struct {
	Sample

	From string // address of the sender, empty if unknown

	// Claims of the writer. Readers do not trust them.
	ID       string // its name in the store it was exported from
	Delivery int64  // its number in that store
	Verified string
}

type captureJSON struct {
	ID          string          `json:"id,omitempty"`
	Delivery    json.RawMessage `json:"delivery,omitempty"` // a number; a string in older exports
	ReceivedAt  time.Time       `json:"receivedAt,omitzero"`
	From        string          `json:"from,omitempty"`
	Verified    string          `json:"verified,omitempty"`
	Method      string          `json:"method"`
	Path        string          `json:"path,omitempty"`
	PathBase64  []byte          `json:"pathBase64,omitempty"`
	Query       string          `json:"query,omitempty"`
	QueryBase64 []byte          `json:"queryBase64,omitempty"`
	Headers     json.RawMessage `json:"headers"` // a list of {name, value}, or valueBase64 for bytes that are not text
	Body        *string         `json:"body,omitempty"`
	BodyBase64  []byte          `json:"bodyBase64,omitempty"`
}

type headerJSON struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	ValueBase64 []byte `json:"valueBase64,omitempty"`
}

// Problems of a capture.
var (
	errNoBody    = errors.New("has neither body nor bodyBase64")
	errTwoBodies = errors.New("has both body and bodyBase64")
	errHeaders   = errors.New("headers must be a list of {name, value}, or an object of strings or lists of strings")
	errNotUTF8   = errors.New("is not UTF-8; use bodyBase64 for a binary body")
	errUnpaired  = errors.New("a string contains half of a surrogate pair")
)

// MarshalJSON implements [json.Marshaler].
func (c Capture) MarshalJSON() ([]byte, error) {
	j := captureJSON{
		ID: c.ID, ReceivedAt: c.At.UTC(), From: strings.ToValidUTF8(c.From, "\ufffd"), Verified: c.Verified, Method: c.Method,
	}
	if c.Delivery != 0 {
		j.Delivery = strconv.AppendInt(nil, c.Delivery, 10)
	}
	j.Path, j.PathBase64 = textOrBytes(c.Path)
	j.Query, j.QueryBase64 = textOrBytes(c.RawQuery)
	if text, raw := textOrBytes(string(c.Body)); raw == nil {
		j.Body = &text
	} else {
		j.BodyBase64 = raw
	}
	headers := make([]headerJSON, len(c.Header))
	for i, f := range c.Header {
		headers[i].Name = f.Name
		headers[i].Value, headers[i].ValueBase64 = textOrBytes(f.Value)
	}
	var err error
	if j.Headers, err = json.Marshal(headers); err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

// textOrBytes returns s as text if JSON can hold it without growing longer than base64, else as bytes.
func textOrBytes(s string) (string, []byte) {
	controls := 0 // each takes six characters in JSON
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\n' && s[i] != '\r' && s[i] != '\t' {
			controls++
		}
	}
	if !utf8.ValidString(s) || controls > len(s)/16 {
		return "", []byte(s)
	}
	return s, nil
}

// UnmarshalJSON implements [json.Unmarshaler]. It returns an error for input that can't represent a delivery's bytes.
func (c *Capture) UnmarshalJSON(data []byte) error {
	if !utf8.Valid(data) {
		return errNotUTF8
	}
	var j captureJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return decodeError(err)
	}
	*c = Capture{
		Sample: Sample{
			Request: Request{
				Method: cmp.Or(j.Method, "POST"), Path: cmp.Or(j.Path+string(j.PathBase64), "/"),
				RawQuery: j.Query + string(j.QueryBase64), Body: j.BodyBase64,
			},
			At: j.ReceivedAt,
		},
		ID: j.ID, From: j.From, Verified: j.Verified,
	}
	c.Delivery, _ = strconv.ParseInt(string(j.Delivery), 10, 64) // nothing depends on it
	switch {
	case j.Body != nil && len(j.BodyBase64) > 0:
		return errTwoBodies
	case j.Body != nil:
		c.Body = []byte(*j.Body)
	case c.Body == nil:
		return errNoBody
	}
	var err error
	if c.Header, err = fieldsOf(j.Headers); err == nil && jsonscan.Unpaired(data) {
		return errUnpaired
	}
	return err
}

// decodeError returns a decoding error without names of Go types.
func decodeError(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err
	case wrong.Field == "":
		return fmt.Errorf("is a JSON %s, not an object", wrong.Value)
	default:
		return fmt.Errorf("%s is a JSON %s", wrong.Field, wrong.Value)
	}
}

// ParseCaptures reads deliveries from consecutive JSON objects, or from an array of them.
func ParseCaptures(data []byte) ([]Sample, error) {
	data = bytes.TrimSpace(data)
	var samples []Sample
	if len(data) > 0 && data[0] == '[' {
		var all []Capture
		if err := json.Unmarshal(data, &all); err != nil {
			return nil, fmt.Errorf("deliveries: %w", err)
		}
		for _, c := range all {
			samples = append(samples, c.Sample)
		}
		return samples, nil
	}
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var c Capture
		switch err := dec.Decode(&c); {
		case errors.Is(err, io.EOF):
			return samples, nil
		case err != nil:
			return nil, fmt.Errorf("delivery %d: %w", len(samples)+1, err)
		}
		samples = append(samples, c.Sample)
	}
}

func fieldsOf(raw json.RawMessage) ([]Field, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var list []headerJSON
	if json.Unmarshal(raw, &list) == nil {
		fields := make([]Field, len(list))
		for i, f := range list {
			fields[i] = Field{f.Name, f.Value + string(f.ValueBase64)}
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
