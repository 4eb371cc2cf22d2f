package events

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// maxCaptureLine is how long a line of an import may be, in bytes.
const maxCaptureLine = signature.MaxDeliveryFile

// linesError says which lines of an input are bad.
type linesError struct {
	issues []term.Issue // the first of them
	more   int
}

func (e *linesError) Error() string {
	return command.Plural(len(e.issues)+e.more, "bad line") + "; nothing was imported"
}

// Issues returns the first bad lines, and how many more there are.
func (e *linesError) Issues() (first []term.Issue, more int) { return e.issues, e.more }

// countCaptures reads all of the input and returns how many deliveries it
// holds. Bad lines are a usage error that holds a linesError.
func countCaptures(ctx context.Context, in *input.Input) (int64, error) {
	var bad linesError
	good := int64(0)
	for line, err := range captureLines(in) {
		switch {
		case err != nil:
			return 0, err
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case line.err == nil:
			good++
		case len(bad.issues) < input.ShownProblems:
			bad.issues = append(bad.issues, term.Issue{File: line.file, Line: line.number, Message: line.err.Error()})
		default:
			bad.more++
		}
	}
	switch {
	case len(bad.issues) > 0:
		return 0, &command.UsageError{Err: &bad, Hint: `each line is a JSON object: {"receivedAt": TIME, "method", "path", "query", "headers": [{"name", "value"}], "body"}`}
	case good == 0:
		return 0, command.Usagef("`waybill events export` writes them", "no deliveries in the input")
	}
	return good, nil
}

// captureLine is one line of an input that is not blank.
type captureLine struct {
	file    string
	number  int // from 1
	capture webhook.Capture
	err     error // what is wrong with it
}

// captureLines yields the lines of all sources, from their beginning. An error
// of reading ends it.
func captureLines(in *input.Input) iter.Seq2[captureLine, error] {
	return func(yield func(captureLine, error) bool) {
		for _, src := range in.Sources {
			if more, err := linesOf(src, yield); err != nil {
				yield(captureLine{}, fmt.Errorf("read %s: %w", src.Name, input.WithoutPath(err)))
				return
			} else if !more {
				return
			}
		}
	}
}

// linesOf yields the lines of one source, and reports whether more are wanted.
func linesOf(src input.Source, yield func(captureLine, error) bool) (bool, error) {
	if _, err := src.File.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	lines := bufio.NewReaderSize(src.File, 64<<10)
	for n := 1; ; n++ {
		line, err := readLine(lines, maxCaptureLine)
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !errors.Is(err, errLongLine) {
			return false, err
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && !yield(parseCapture(src, n, line, err), nil) {
			return false, nil
		}
		if end {
			return true, nil
		}
	}
}

func parseCapture(src input.Source, number int, line []byte, err error) captureLine {
	l := captureLine{file: src.Name, number: number}
	switch {
	case errors.Is(err, errLongLine):
		l.err = err
	case line[0] == '[':
		l.err = errArray
	default:
		l.err = json.Unmarshal(line, &l.capture)
	}
	return l
}

var (
	errLongLine = fmt.Errorf("is longer than %d bytes", maxCaptureLine)
	errArray    = errors.New("is an array: write one delivery a line")
)

// readLine returns the next line, without its end; with io.EOF the last one.
// Of a line longer than limit it returns [errLongLine] and a line that is no JSON.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit+1; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		if (long || len(line) > limit) && (err == nil || errors.Is(err, io.EOF)) {
			return []byte("{"), errLongLine
		}
		return line, err
	}
}
