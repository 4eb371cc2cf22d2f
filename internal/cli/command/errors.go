package command

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// SignalError is why a context ended when a signal came.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "interrupted" }

// Code returns the exit status of the signal.
func (e *SignalError) Code() Code {
	if e.Signal == syscall.SIGTERM {
		return Terminated
	}
	return Interrupted
}

// UsageError is an error of the command line, the settings or the input.
type UsageError struct {
	Err  error
	Hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError with a hint, which may be empty.
func Usagef(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint}
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

// PartialError says that some of many things failed.
type PartialError struct {
	Failed, All int
	What        string // plural noun
	First       error
}

func (e *PartialError) Error() string {
	return fmt.Sprintf("%s of %s %s failed, the first: %v", Number(int64(e.Failed)), Number(int64(e.All)), e.What, e.First)
}

// ErrTimeUp says that a wait ended before its condition was met.
var ErrTimeUp = errors.New("timed out")

// ErrFound says that a result is whole, and lists what is wrong.
var ErrFound = errors.New("problems found")

// As reports whether an error of type T is in the tree of err.
func As[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
