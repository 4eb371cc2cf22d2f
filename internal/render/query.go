package render

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/waybill-cli/waybill/internal/term"
)

var errFormat = errors.New("csv and xlsx can't be filtered: use -o json or -o jsonl")

// JQError is a jq expression that does not compile or, if Running, failed on
// a value.
type JQError struct {
	Expr    string
	Running bool
	Err     error
}

func (e *JQError) Error() string { return fmt.Sprintf("--jq %q: %v", e.Expr, e.Err) }

func (e *JQError) Unwrap() error { return e.Err }

// query is a compiled expression. It sees the value and nothing else: no
// environment, no further input, no files.
type query struct {
	expr string
	code *gojq.Code
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
	return &query{expr, code}, nil
}

// run hands each result of v to emit: a string as it is, any other value as
// JSON in one line.
func (q *query) run(ctx context.Context, v any, emit func(line []byte) error) error {
	results := q.code.RunWithContext(ctx, v)
	for {
		r, ok := results.Next()
		if !ok {
			return nil
		}
		var line []byte
		switch r := r.(type) {
		case error:
			return q.failed(ctx, r)
		case string:
			line = []byte(r)
		default:
			text, err := gojq.Marshal(r)
			if err != nil {
				return &JQError{Expr: q.expr, Running: true, Err: err}
			}
			line = term.EscapeJSON(nil, text)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
}

// failed says what it means that a run ended with err.
func (q *query) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
		return nil // the expression asked to stop
	}
	return &JQError{Expr: q.expr, Running: true, Err: err}
}

// decode decodes JSON into maps, slices and scalars, numbers with all their
// digits.
func decode(encoded []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("decode for jq: %w", err)
	}
	return v, nil
}
