package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// outcome is one line of the table that turns errors into exit statuses.
type outcome struct {
	match func(error) bool
	code  Code
	hint  string // for errors that bring none of their own
}

// outcomes is read from the top; the first match decides. It stands in the
// order in which causes win where several apply.
func outcomes() []outcome {
	return []outcome{
		{As[*store.Error], Store, ""},
		{diskTrouble, Store, "make room on that disk, or write elsewhere; then repeat the command"},
		{is(ledger.ErrBusy), Store, "wait for the other command to end or stop it, then run this one again; --timeout sets how long it waits"},
		{is(store.ErrText), Usage, "remove the characters the store can't keep"},
		{terminated, Terminated, ""},
		{As[*SignalError], Interrupted, ""},
		{is(config.ErrNoAPIKey), Auth, "set WAYBILL_API_KEY or api_key_file; the key is in the portal under Settings, API & Webhooks"},
		{is(api.ErrUnauthorized), Auth, "check the API key: WAYBILL_API_KEY, api_key_file, or the portal under Settings, API & Webhooks"},
		{As[*UsageError], Usage, ""},
		{As[issuer], Usage, ""},
		{As[*config.KeyError], Usage, ""},
		{As[*webhook.SchemeError], Usage, "`waybill help environment` and docs name the fields of a scheme"},
		{asInput, Usage, ""},
		{jqWrong, Usage, "see the jq manual for the language"},
		{As[*ExitError], Failed, ""}, // brings its own code
		{As[*PartialError], Partial, ""},
		{waitedForNobody, Unreachable, "check the network, base_url and proxy; repeating is safe"},
		{is(ErrTimeUp), Pending, ""},
		{is(app.ErrNothingKnown), NotFound, "name one with --refer-id R --tracking-number N; `waybill list` shows what was created from here"},
		{is(ledger.ErrNoRun), NotFound, "`waybill runs list` shows the runs"},
		{is(inbox.ErrNoEvent), NotFound, "`waybill events list --limit 0` shows all events"},
		{is(inbox.ErrNoDelivery), NotFound, "`waybill events list --limit 0` shows all events"},
		{is(replay.ErrPruned), NotFound, "choose a delivery that is still whole: `waybill signature verify` lists them"},
		{is(tracking.ErrAbsent), NotFound, "check the REF; `waybill list` shows what was created from here"},
		{is(api.ErrUndecided), Unknown, "see the answer with -o json; `query.absent` in the configuration tells what \"no such tracking\" looks like"},
		{As[*api.AnswerError], Unknown, "see the answer with --debug; check base_url"},
		{As[*api.ConnectError], Unreachable, "check the network, base_url and proxy; repeating is safe"},
		{passing, Unreachable, "the service has trouble; try again later"},
		{As[*api.StatusError], Refused, ""},
		{is(syscall.EADDRINUSE), Failed, "another program listens there: stop it, or choose another --addr (port 0 takes a free one)"},
		{cannotListen, Failed, "choose an --addr of this computer, such as 127.0.0.1:0, with a port from 1024 on (0 takes a free one)"},
		{is(context.Canceled), Interrupted, ""},
	}
}

// diskTrouble reports whether a disk did not take what was written, be it that
// of --out or of the file that standard output goes to.
func diskTrouble(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.EIO}, func(e error) bool { return errors.Is(err, e) })
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func terminated(err error) bool {
	var s *SignalError
	return errors.As(err, &s) && s.Code() == Terminated
}

func asInput(err error) bool {
	return As[*intake.FormatError](err) || As[*intake.EncodingError](err) || As[*intake.OptionError](err) ||
		As[*intake.ColumnError](err) || As[*intake.SyntaxError](err) || As[*intake.MixError](err) || errors.Is(err, intake.ErrNoRows)
}

func jqWrong(err error) bool {
	var e *render.JQError
	return errors.As(err, &e) && !e.Running
}

func passing(err error) bool {
	var status *api.StatusError
	return errors.As(err, &status) && (status.Temporary() || status.Status >= 500)
}

func cannotListen(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "listen"
}

// waitedForNobody matches a wait for what the service was not there to tell.
func waitedForNobody(err error) bool { return errors.Is(err, ErrTimeUp) && As[*api.ConnectError](err) }

// issuer is an error that lists what is wrong with an input: the first issues,
// and how many more there are. Nothing was done with the input.
type issuer interface {
	error
	Issues() (first []term.Issue, more int)
}

// ExitError is an error that knows its exit status.
type ExitError struct {
	Code Code
	Err  error
	Hint string
	Next string // command that goes on
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// Explain says which exit status an error has, and what to do about it.
func Explain(err error) (Code, string) {
	if err == nil {
		return OK, ""
	}
	for _, o := range outcomes() {
		if !o.match(err) {
			continue
		}
		code, hint := o.code, HintOf(err)
		if own := (*ExitError)(nil); errors.As(err, &own) && o.code == Failed {
			code = own.Code
		}
		if hint == "" {
			hint = o.hint
		}
		return code, hint
	}
	return Failed, ""
}

// HintOf returns the hint an error brings with it.
func HintOf(err error) string {
	if e := (*ExitError)(nil); errors.As(err, &e) && e.Hint != "" {
		return e.Hint
	}
	if e := (*UsageError)(nil); errors.As(err, &e) {
		return e.Hint
	}
	if e := (*config.KeyError)(nil); errors.As(err, &e) {
		return e.Hint
	}
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) {
		return hinter.Hint()
	}
	return ""
}

// Finish reports an error, once, and returns the exit status.
func (r *Factory) Finish(ctx context.Context, err error) Code {
	if err == nil {
		return OK
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) && !As[*SignalError](err) {
		err = errors.Join(cause, err)
	}
	code, hint := Explain(err)
	if errors.Is(err, term.ErrClosed) && code == Failed {
		return OK // the reader went away, and nothing else is wrong
	}
	f := term.Failure{Code: code.word(), Message: messageOf(err), Hint: hint, Next: nextOf(err)}
	if s := (*api.StatusError)(nil); errors.As(err, &s) {
		f.HTTPStatus, f.RetryAfter = s.Status, s.Pause
	}
	if e := issuer(nil); errors.As(err, &e) {
		f.Errors, f.More = e.Issues()
	}
	f.Place = placeOf(err)
	r.App.IO.Fail(f)
	return code
}

// placeOf returns the place of an input where it can't be read any further, or
// nil.
func placeOf(err error) *term.Issue {
	if e := (*intake.SyntaxError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Line: e.Line, Column: e.Column, Message: e.Message, Hint: e.Hint()}
	}
	if e := (*intake.ColumnError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Line: e.Line, Message: e.Error(), Hint: e.Hint()}
	}
	if e := (*intake.EncodingError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Message: e.Reason, Hint: e.Hint()}
	}
	if e := (*intake.FormatError)(nil); errors.As(err, &e) {
		return &term.Issue{File: e.File, Message: e.Error(), Hint: e.Hint()}
	}
	return nil
}

// messageOf is the text of an error; several joined ones stand in one line.
func messageOf(err error) string {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "listen" && op.Addr != nil { // nil if there is no such address
		return "listen on " + op.Addr.String() + ": " + op.Err.Error()
	}
	return err.Error()
}

// nextOf is the command that goes on where this one stopped.
func nextOf(err error) string {
	if e := (*ExitError)(nil); errors.As(err, &e) {
		return e.Next
	}
	var next interface{ Next() string }
	if errors.As(err, &next) {
		return next.Next()
	}
	return ""
}

// ElapsedSeconds rounds to milliseconds.
func ElapsedSeconds(since time.Time) float64 { return float64(time.Since(since).Milliseconds()) / 1000 }

// PartialError says that some of many failed.
type PartialError struct {
	Failed, All int
	What        string
	First       error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%d of %d %s failed, the first: %v", e.Failed, e.All, e.What, e.First)
}

// ErrTimeUp says that the time for waiting ran out.
var ErrTimeUp = errors.New("the time is up")
