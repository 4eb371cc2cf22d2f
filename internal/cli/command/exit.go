package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/inbox"
	"github.com/waybill-cli/waybill/internal/intake"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/ledger"
	"github.com/waybill-cli/waybill/internal/query"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/store"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Code is the program's exit status.
type Code int

// The exit statuses. [Codes] explains each.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	NotFound    Code = 3
	Auth        Code = 4
	Refused     Code = 5
	Partial     Code = 6
	Unknown     Code = 7
	Pending     Code = 8
	Unverified  Code = 9
	Store       Code = 10
	Unreachable Code = 11
	Interrupted Code = 130
	Terminated  Code = 143
)

// CodeInfo is one line of the table of exit statuses.
type CodeInfo struct {
	Code    Code
	Word    string // `code` of a JSON error
	Meaning string
}

// Codes returns the table of exit statuses that help and README show.
func Codes() []CodeInfo {
	return []CodeInfo{
		{OK, "ok", "done; for bulk: every row accepted or already there"},
		{Failed, "failed", "unexpected error, address in use"},
		{Usage, "usage", "wrong flags, arguments, configuration or input, or no data rows (--allow-empty makes that 0); " +
			"nothing was sent"},
		{NotFound, "not_found", "not found: tracking, run or event"},
		{Auth, "auth", "API key missing or refused"},
		{Refused, "refused", "refused by the service; for bulk: every row rejected, " +
			"or the run stopped on an error that is not about rows"},
		{Partial, "partial", "some rows, REFs or targets failed, were skipped or differ, " +
			"or a condition such as --fail-if holds; the others are done"},
		{Unknown, "unknown", "sent, but no response or an unexpected one; re-run the same command"},
		{Pending, "pending", "timed out while processing, or before the condition was met"},
		{Unverified, "unverified", "a signature did not verify, or no signature scheme was found"},
		{Store, "store", "problem with the store or a disk (unreachable, locked, too new, full)"},
		{Unreachable, "unreachable", "no connection, or the service unavailable (429, 5xx) for as long as was tried; " +
			"repeating is safe"},
		{Interrupted, "interrupted", "SIGINT, after state was saved (the first lets running requests finish, " +
			"the second stops at once)"},
		{Terminated, "interrupted", "SIGTERM, in the same way"},
	}
}

// Precedence returns the codes by priority, for a command to which several apply.
func Precedence() []Code {
	return []Code{Store, Interrupted, Terminated, Auth, Unknown, Unreachable, Partial, Refused, Pending}
}

// Worst returns the code with the highest priority, or OK if all are OK.
func Worst(cs ...Code) Code {
	for _, c := range append(Precedence(), cs...) {
		if c != OK && slices.Contains(cs, c) {
			return c
		}
	}
	return OK
}

// CodeNamed returns the exit status with that word, or Failed if there is none.
func CodeNamed(word string) Code {
	for _, row := range Codes() {
		if row.Word == word {
			return row.Code
		}
	}
	return Failed
}

// Word returns the `code` of JSON errors with this status.
func (c Code) Word() string {
	for _, row := range Codes() {
		if row.Code == c {
			return row.Word
		}
	}
	return "failed"
}

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "interrupted" }

// Code returns the exit status of the signal.
func (e *SignalError) Code() Code {
	if e.Signal == syscall.SIGTERM {
		return Terminated
	}
	return Interrupted
}

// Reason distinguishes causes that share an exit status: `reason` of a JSON error.
type Reason string

// The reasons.
const (
	ReasonArguments Reason = "arguments" // an unknown command or flag, or a wrong argument
	ReasonInput     Reason = "input"     // bad rows, or a file that can't be read as rows
	ReasonSetting   Reason = "setting"   // a setting that is missing, unknown or wrong
	ReasonExists    Reason = "exists"    // the file or entry to create exists already
)

// UsageError is an error of the command line, the settings or the input.
type UsageError struct {
	Err    error
	Hint   string
	Reason Reason // empty for ReasonArguments
	Issues Issues // of an input
	Next   string // command to run once the input is right; empty for none
}

// Issues are the first errors of an input, and the number of further ones.
type Issues struct {
	First []term.Issue
	More  int
}

// shownIssues is the number of input errors that are shown in full.
const shownIssues = 20

// Add adds an error.
func (s *Issues) Add(issue term.Issue) {
	if len(s.First) < shownIssues {
		s.First = append(s.First, issue)
	} else {
		s.More++
	}
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError with a hint, which may be empty.
func Usagef(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Inputf is [Usagef] for an input that can't be read as rows.
func Inputf(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint, Reason: ReasonInput}
}

// Existsf is [Usagef] for a file or entry that exists already.
func Existsf(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint, Reason: ReasonExists}
}

// ExitError is an error that knows its exit status.
type ExitError struct {
	Code Code
	Err  error
	Hint string
	Next string // command to run next
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// ErrTimeUp says that a wait ended before its condition was met.
var ErrTimeUp = errors.New("timed out")

// FoundError reports problems that a complete result shows: the result itself is valid.
type FoundError string

func (e FoundError) Error() string { return string(e) }

// As reports whether an error of type T is in the tree of err.
func As[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

type exitRule struct {
	match func(error) bool
	code  Code
	hint  string // for errors without a hint of their own
}

// exitRules returns the rules in order; the first match decides. The codes of [Precedence] keep its order. An ExitError
// never wraps an error of higher priority than the rules above its own.
func exitRules() []exitRule {
	return []exitRule{
		{As[*store.Error], Store, ""},
		{As[*disk.TempError], Store, "set " + disk.TempVariable + " to a folder with room that you can write to"},
		{diskError, Store, "free space on that disk, or write elsewhere; then re-run the same command"},
		{is(ledger.ErrBusy), Store, "wait for the other command or stop it, then re-run this one; " +
			"--timeout sets how long it waits"},
		{is(ledger.ErrText), Usage, "remove the characters that can't be stored"},
		{when(func(e *SignalError) bool { return e.Code() == Terminated }), Terminated, ""},
		{As[*SignalError], Interrupted, ""},
		{is(config.ErrNoAPIKey), Auth, "run `waybill init` or `waybill auth login`, " +
			"or set WAYBILL_API_KEY or api_key_file; the key is in the portal under Settings, API & Webhooks"},
		{As[*keyring.Error], Auth, ""},
		{is(tracking.ErrUnauthorized), Auth, "check the API key: WAYBILL_API_KEY, api_key_file, " +
			"or the portal under Settings, API & Webhooks"},
		{As[*UsageError], Usage, ""},
		{inputError, Usage, ""},
		{As[*config.KeyError], Usage, ""},
		{is(term.ErrNoAnswer), Usage, "answer the question, or run the command with --help for flags that take its place"},
		{As[*webhook.SchemeError], Usage, "`waybill help environment` lists the fields of a scheme"},
		{As[*intake.OptionError], Usage, ""},
		{is(render.ErrSheetFull), Usage, "use -o csv or -o jsonl, or filters for fewer rows"},
		{when(func(e *render.JQError) bool { return !e.Running }), Usage, "see the jq manual: https://jqlang.org/manual"},
		{As[*ExitError], Failed, ""}, // has its own code
		{is(tracking.ErrUndecided), Unknown, "see the response with -o json; " +
			"the setting query.absent says which responses mean \"not found\""},
		{As[*query.OtherError], Unknown, "see the response with -o json; nothing was recorded"},
		{As[*api.AnswerError], Unknown, "print the response with --debug; check base_url"},
		{As[*api.ConnectError], Unreachable, "check the network, base_url and proxy; repeating is safe"},
		{
			when(func(e *api.StatusError) bool { return e.Failure().Temporary || e.Status >= 500 }), Unreachable,
			"the service has problems; try again later",
		},
		{is(query.ErrInError), Partial, "`waybill list --status error` lists such trackings; " +
			"`waybill show REF -o json` has the whole error"},
		{is(ledger.ErrNoRun), NotFound, "list runs with `waybill runs list`"},
		{is(inbox.ErrNoEvent), NotFound, "`waybill events list --limit 0` shows all events"},
		{is(replay.ErrNoRefused), NotFound, "`waybill events list --refused` shows refused deliveries"},
		{is(inbox.ErrNoDelivery), NotFound, "`waybill events list --limit 0` shows all events"},
		{is(replay.ErrAmbiguous), Usage, "write more of the eventId, or the event's ID; " +
			"`waybill events list --columns id,event-id` shows both"},
		{is(replay.ErrPruned), NotFound, "use a delivery that was not pruned; list them with `waybill signature verify`"},
		{is(ledger.ErrErased), NotFound, "its data was erased with `waybill store erase`; the service was not asked"},
		{is(tracking.ErrAbsent), NotFound, "check the REF; list created trackings with `waybill list`"},
		{is(query.ErrRejected), Refused, "write rejected rows to a CSV with " +
			"`waybill runs rows ID --status rejected -o csv`, fix them, and create that file"},
		{As[*api.StatusError], Refused, ""},
		{is(ErrTimeUp), Pending, ""},
		{is(query.ErrNotSent), Pending, "find its run with `waybill runs list`, send it with `waybill runs resume ID`"},
		{is(syscall.EADDRINUSE), Failed, "stop the program that uses this address, " +
			"or pass another --addr (port 0 uses a free port)"},
		{when(func(e *net.OpError) bool { return e.Op == "listen" }), Failed, "pass an --addr of this computer, " +
			"such as 127.0.0.1:0, with a port of 1024 or higher (0 uses a free port)"},
		{is(context.Canceled), Interrupted, ""},
		{is(context.DeadlineExceeded), Pending, ""},
	}
}

func diskError(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.EIO},
		func(e error) bool { return errors.Is(err, e) })
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// when matches an error if the first error of type T in its tree satisfies isMet.
func when[T error](isMet func(T) bool) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[T](err)
		return ok && isMet(e)
	}
}

func inputError(err error) bool {
	return As[*intake.FileError](err) || As[*intake.ColumnError](err) ||
		As[*intake.MixError](err) || As[*intake.WorkbookError](err) || errors.Is(err, intake.ErrNoRows)
}

// CodeAndHint returns the exit status of an error and a hint that says what to do.
func CodeAndHint(err error) (Code, string) {
	if err == nil {
		return OK, ""
	}
	for _, o := range exitRules() {
		if !o.match(err) {
			continue
		}
		code := o.code
		if own, ok := errors.AsType[*ExitError](err); ok && o.code == Failed {
			code = own.Code
		}
		return code, cmp.Or(HintOf(err), o.hint)
	}
	return Failed, ""
}

// CodeOf returns the exit status of an error.
func CodeOf(err error) Code {
	code, _ := CodeAndHint(err)
	return code
}

// reasonOf returns the reason of a usage error, or ReasonSetting for a missing API key; "" for other errors.
func reasonOf(err error, code Code) Reason {
	usage, setting := (*UsageError)(nil), (*config.KeyError)(nil)
	switch {
	case errors.Is(err, config.ErrNoAPIKey):
		return ReasonSetting
	case code != Usage:
		return ""
	case inputError(err), errors.Is(err, ledger.ErrText):
		return ReasonInput
	case errors.As(err, &setting) && setting.Origin.Level != config.FromFlag, As[*webhook.SchemeError](err):
		return ReasonSetting
	case errors.As(err, &usage):
		return cmp.Or(usage.Reason, ReasonArguments)
	}
	return ReasonArguments
}

// HintOf returns the hint of the error itself, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*ExitError](err); ok && e.Hint != "" {
		return e.Hint
	}
	if e, ok := errors.AsType[*UsageError](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*config.KeyError](err); ok {
		return e.Hint
	}
	var hinter interface{ Hint() string }
	if errors.As(err, &hinter) {
		return hinter.Hint()
	}
	return ""
}
