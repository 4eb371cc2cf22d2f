package render

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/waybill-cli/waybill/internal/term"
)

const indent = "  "

// JSON prints one value, indented, or on one line if the format is jsonl. With jq it prints each result on a line of
// its own, strings without quotes. A [json.RawMessage] inside v keeps the digits of its numbers, its order and its
// duplicate names; jq keeps only the digits.
func (p *Printer) JSON(ctx context.Context, v any) error {
	encoded, err := encode(v)
	if err != nil {
		return err
	}
	s := sink{out: p.out}
	switch {
	case p.query != nil:
		err = p.filter(ctx, &s, encoded)
	case p.format == JSONL:
		_, err = p.out.Write(append(encoded, '\n'))
	default:
		s.buf = append(indented(s.buf, encoded, ""), '\n')
	}
	return cmp.Or(err, s.flush())
}

func (p *Printer) filter(ctx context.Context, s *sink, encoded []byte) error {
	v, err := decode(encoded)
	if err != nil {
		return err
	}
	return p.query.run(ctx, v, s)
}

func encode(v any) ([]byte, error) {
	encoded, err := term.EncodeJSON(v)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return encoded, nil
}

// Indented returns JSON with each value on its own line, and invalid JSON unchanged.
func Indented(encoded []byte) []byte { return indented(nil, encoded, "") }

// indented appends what [Indented] returns, with a prefix before each further line. JSON with thousands of levels stays
// on one line.
func indented(dst, encoded []byte, prefix string) []byte {
	var b bytes.Buffer
	if indentGrowth(encoded) > maxIndentGrowth*len(encoded)+1<<16 || json.Indent(&b, encoded, prefix, indent) != nil {
		return append(dst, encoded...)
	}
	return append(dst, b.Bytes()...)
}

// maxIndentGrowth is how many times longer indenting may make JSON; for JSON that people read it is below 4.
const maxIndentGrowth = 16

// indentGrowth returns the approximate number of bytes of white space that indenting adds.
func indentGrowth(encoded []byte) int {
	size, depth, text := 0, 0, false
	for i := 0; i < len(encoded); i++ {
		switch c := encoded[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == '[':
			depth++
			size += 1 + len(indent)*depth
		case c == '}', c == ']':
			depth--
			fallthrough
		case c == ',':
			size += 1 + len(indent)*depth
		}
	}
	return size
}

// List prints many values of one result as they are added: as an array, or as lines. It is not safe for concurrent use.
type List struct {
	ctx    context.Context //nolint:containedctx // a list is written within one call of its maker
	p      *Printer
	sink   sink
	count  int
	values []any // all values, if an expression needs the whole array
	err    error
}

// List begins a list. With jq, jsonl runs the expression on each element, and json on the whole array, which is then
// held in memory until Close; otherwise memory use is constant. The end of the context ends a running expression.
func (p *Printer) List(ctx context.Context) *List {
	return &List{ctx: ctx, p: p, sink: sink{out: p.out, live: p.live}, values: []any{}}
}

// Add prints the next element, or buffers it. After an error, it returns the same error again.
func (l *List) Add(v any) error {
	if l.err == nil {
		l.err = l.add(v)
	}
	return l.err
}

func (l *List) add(v any) error {
	encoded, err := encode(v)
	if err != nil {
		return err
	}
	l.count++
	switch {
	case l.p.query != nil && l.p.format == JSONL:
		return l.p.filter(l.ctx, &l.sink, encoded)
	case l.p.query != nil:
		v, err := decode(encoded)
		if err != nil {
			return err
		}
		l.values = append(l.values, v)
		return nil
	case l.p.format == JSONL:
		l.sink.buf = append(append(l.sink.buf, encoded...), '\n')
	default:
		start := ",\n" + indent
		if l.count == 1 {
			start = "[\n" + indent
		}
		l.sink.buf = indented(append(l.sink.buf, start...), encoded, indent)
	}
	return l.sink.ended()
}

// Close prints buffered elements and completes the JSON. It must be called for every list, also after an error. A list
// without elements is `[]`, in jsonl nothing. If Add failed, Close returns its error.
func (l *List) Close() error {
	err := l.close()
	return cmp.Or(l.err, err)
}

func (l *List) close() error {
	switch {
	case l.p.format == JSONL:
	case l.p.query != nil:
		if l.err != nil {
			return l.err
		}
		if err := l.p.query.run(l.ctx, l.values, &l.sink); err != nil {
			_ = l.sink.flush() // what there is of it; err is the cause
			return err
		}
	case l.count == 0:
		l.sink.buf = append(l.sink.buf, "[]\n"...)
	default:
		l.sink.buf = append(l.sink.buf, "\n]\n"...)
	}
	return l.sink.flush()
}

var errFormat = errors.New("csv and xlsx can't be filtered: use -o json or -o jsonl")

// JQError reports a jq expression that does not compile or, if Running, failed on a value.
type JQError struct {
	Expr    string
	Running bool
	Err     error
}

func (e *JQError) Error() string { return fmt.Sprintf("--jq %q: %v", e.Expr, e.Err) }

func (e *JQError) Unwrap() error { return e.Err }

// query is a compiled jq expression. It has access only to the value: no environment, no further input, no files.
type query struct {
	expr string
	code *gojq.Code
	last any // last result; nil before the first
}

func compile(expr string) (*query, error) {
	parsed, err := gojq.Parse(expr)
	if err != nil {
		return nil, &JQError{Expr: expr, Err: err}
	}
	code, err := gojq.Compile(parsed)
	if err != nil {
		return nil, &JQError{Expr: expr, Err: err}
	}
	return &query{expr: expr, code: code}, nil
}

// run writes each result of v on a line: a string as it is, anything else as JSON.
func (q *query) run(ctx context.Context, v any, s *sink) error {
	results := q.code.RunWithContext(ctx, v)
	for {
		r, ok := results.Next()
		if !ok {
			return nil
		}
		q.last = r
		switch r := r.(type) {
		case error:
			return q.failed(ctx, r)
		case string:
			s.buf = append(s.buf, r...)
		default:
			text, err := gojq.Marshal(r)
			if err != nil {
				return &JQError{Expr: q.expr, Running: true, Err: err}
			}
			s.buf = term.EscapeJSON(s.buf, text)
		}
		s.buf = append(s.buf, '\n')
		if err := s.ended(); err != nil {
			return err
		}
	}
}

func (q *query) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
		return nil // the expression asked to stop
	}
	return &JQError{Expr: q.expr, Running: true, Err: err}
}

// decode decodes JSON into maps, slices and scalars. Numbers keep all their digits.
func decode(encoded []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode for jq: %w", err)
	}
	return v, nil
}
