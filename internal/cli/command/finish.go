package command

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/term"
)

// Finish reports an error, once, and returns the exit status.
func (f *Factory) Finish(ctx context.Context, err error) Code {
	if err == nil {
		return OK
	}
	message := messageOf(err)
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) && !As[*SignalError](err) {
		whole := errors.Join(cause, err)
		if message = messageOf(whole); As[*SignalError](cause) && isOnlyCanceled(err) {
			message = cause.Error()
		}
		err = whole
	}
	code, hint := CodeAndHint(err)
	if errors.Is(err, term.ErrClosed) && code == Failed {
		return OK // the reader went away, and nothing else is wrong
	}
	failure := term.Failure{Code: code.Word(), Reason: string(reasonOf(err, code)), Message: message, Hint: hint,
		Next: nextOf(err), Place: placeOf(err)}
	if rest, ok := strings.CutPrefix(failure.Message, ErrTimeUp.Error()+": "); ok {
		failure.Label, failure.Message = "Timed out:", rest
	}
	if s := (*api.StatusError)(nil); errors.As(err, &s) {
		failure.HTTPStatus, failure.RetryAfter = s.Status, s.Pause
	}
	if e := (*UsageError)(nil); errors.As(err, &e) {
		failure.Errors, failure.More = e.Issues.First, e.Issues.More
	}
	f.App.IO.Fail(failure)
	return code
}

func placeOf(err error) *term.Issue {
	if e := (*intake.FileError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint()}
	}
	if e := (*intake.ColumnError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Sheet: e.Sheet, Line: e.Line, Message: e.Error(), Hint: e.Hint()}
	}
	if e := (*intake.WorkbookError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Sheet: e.Sheet, Cell: e.Err.Cell, Message: e.Err.Message, Hint: e.Hint()}
	}
	return nil
}

// isOnlyCanceled reports whether err says no more than where the end of its context came.
func isOnlyCanceled(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(many.Unwrap(), func(e error) bool { return !isOnlyCanceled(e) })
	}
	if next := errors.Unwrap(err); next != nil {
		return isOnlyCanceled(next)
	}
	return errors.Is(err, context.Canceled)
}

func messageOf(err error) string {
	// Addr is nil if there is no such address.
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "listen" && op.Addr != nil {
		return "listen on " + op.Addr.String() + ": " + op.Err.Error()
	}
	var lines []string
	text := strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), ErrTimeUp.Error())
	for line := range strings.SplitSeq(text, "\n") {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func nextOf(err error) string {
	if e := (*ExitError)(nil); errors.As(err, &e) {
		return e.Next
	}
	if e := (*UsageError)(nil); errors.As(err, &e) {
		return e.Next
	}
	return ""
}
