package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
)

// RecoverRows marks rows as unknown that a process was sending when it ended, and warns about them.
func RecoverRows(ctx context.Context, s *app.Session, rows ledger.Queue) error {
	lost, err := rows.Recover(ctx)
	if lost > 0 {
		s.IO.Warning("another waybill ended or was cut off while sending %s; the outcome is unknown", Plural(lost, "row"))
	}
	return err
}

// RunName returns a run's ID as commands take it.
func RunName(run int64) string { return strconv.FormatInt(run, 10) }

// RejectedCSV returns the command that writes a run's rejected rows to a CSV file.
func (c *Call) RejectedCSV(run int64) string {
	status := string(ledger.Rejected)
	return c.CommandLine("runs", "rows", RunName(run), "--status", status, "-o", "csv", "--out", "bad.csv")
}

// OpenRun opens the store and finds a run by its ID or `last`. Its error matches [ledger.ErrNoRun] if there is none.
func OpenRun(ctx context.Context, s *app.Session, id string) (*app.Store, int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	last := strings.EqualFold(id, "last")
	if !last && (err != nil || n < 1) {
		return nil, 0, Usagef("run IDs are numbers, or `last`; list them with `waybill runs list`", "%q is not a run ID", id)
	}
	db, err := s.ExistingStore(ctx)
	if err != nil {
		return nil, 0, err
	}
	if db == nil {
		return nil, 0, fmt.Errorf("%w: %s", ledger.ErrNoRun, id)
	}
	if last {
		for run, err := range db.History.Runs(ctx, 1) {
			if err != nil {
				return nil, 0, err
			}
			n = run.ID
		}
	}
	if _, err := db.Queue.CountRows(ctx, n); err != nil {
		return nil, 0, err
	}
	ReadyRuns(ctx, s, db)
	return db, n, nil
}

// ReadyRuns is [RecoverRows], but leaves a read-only store alone and turns a failure into a warning.
func ReadyRuns(ctx context.Context, s *app.Session, db *app.Store) {
	if s.ReadOnly {
		return
	}
	if err := RecoverRows(ctx, s, db.Queue); err != nil {
		s.IO.Warning("rows of processes that ended still have the state sending: %v", err)
	}
}

// Ready is the JSON line that a server prints once it accepts connections.
type Ready struct {
	Type string `json:"type"` // ready
	URL  string `json:"url"`
}

// AnnounceReady publishes the URL of a ready server: in file unless that is "", and as a JSON line or by show.
func (c *Call) AnnounceReady(ctx context.Context, url, file string, show func() error) error {
	if err := WriteReadyFile(ctx, url, file); err != nil {
		return err
	}
	if c.Out.Format() == render.JSONL {
		return c.Out.Object(Ready{"ready", url})
	}
	return show()
}

// WriteReadyFile writes the URL of a server to file, unless that is "".
func WriteReadyFile(ctx context.Context, url, file string) error {
	if file == "" {
		return nil
	}
	f, err := NewAtomicFile(ctx, file)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write([]byte(url + "\n")); err != nil {
		return err
	}
	return f.Commit()
}

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
		return OK // only the reader of the output went away
	}
	failure := term.Failure{Code: code.Word(), Reason: string(reasonOf(err, code)), Message: message, Hint: hint}
	failure.Place = placeOf(err)
	if rest, ok := strings.CutPrefix(failure.Message, ErrTimeUp.Error()+": "); ok {
		failure.Label, failure.Message = "Timed out:", rest
	}
	if s, ok := errors.AsType[*api.StatusError](err); ok {
		failure.HTTPStatus, failure.RetryAfter = s.Status, s.Pause
	}
	if e, ok := errors.AsType[*UsageError](err); ok {
		failure.Errors, failure.More, failure.Next = e.Issues.First, e.Issues.More, e.Next
	}
	if e, ok := errors.AsType[*ExitError](err); ok {
		failure.Next = e.Next
	}
	f.App.IO.Fail(failure)
	return code
}

func placeOf(err error) *term.Issue {
	if e, ok := errors.AsType[*intake.FileError](err); ok {
		return &term.Issue{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint()}
	}
	if e, ok := errors.AsType[*intake.ColumnError](err); ok {
		return &term.Issue{File: e.File, Sheet: e.Sheet, Line: e.Line, Message: e.Error(), Hint: e.Hint()}
	}
	if e, ok := errors.AsType[*intake.WorkbookError](err); ok {
		return &term.Issue{File: e.File, Sheet: e.Sheet, Cell: e.Err.Cell, Message: e.Err.Message, Hint: e.Hint()}
	}
	return nil
}

// isOnlyCanceled reports whether err consists of nothing but the cancellation of a context.
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
	// Addr is nil if the address could not be parsed.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "listen" && op.Addr != nil {
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
