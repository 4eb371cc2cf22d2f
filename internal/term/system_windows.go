package term

import (
	"errors"
	"os"
	"syscall"
)

// Errors of a write to a pipe without reader.
const (
	errBrokenPipe = syscall.Errno(109)
	errNoData     = syscall.Errno(232)
)

// readerGone reports whether a write failed because nobody reads any more.
func readerGone(err error) bool {
	return errors.Is(err, errBrokenPipe) || errors.Is(err, errNoData) || errors.Is(err, syscall.EPIPE)
}

const virtualTerminal = 0x0004 // ENABLE_VIRTUAL_TERMINAL_PROCESSING

// canMove makes the console f understand sequences and reports whether it does.
func canMove(f *os.File) bool {
	h := syscall.Handle(f.Fd())
	var mode uint32
	if err := syscall.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	if mode&virtualTerminal != 0 {
		return true
	}
	return setMode(h, mode|virtualTerminal) == nil
}

func setMode(h syscall.Handle, mode uint32) error {
	set := syscall.NewLazyDLL("kernel32.dll").NewProc("SetConsoleMode")
	if ok, _, err := set.Call(uintptr(h), uintptr(mode)); ok == 0 {
		return err
	}
	return nil
}

const (
	processedInput = 0x0001 // ENABLE_PROCESSED_INPUT: Ctrl-C is a signal
	lineInput      = 0x0002 // ENABLE_LINE_INPUT
	echoInput      = 0x0004 // ENABLE_ECHO_INPUT
)

// hideInput makes a console not show what is typed, until restore. Lines are edited, and Ctrl-C is a signal.
func hideInput(f *os.File) (restore func() error, err error) {
	h := syscall.Handle(f.Fd())
	var shown uint32
	if err := syscall.GetConsoleMode(h, &shown); err != nil {
		return nil, err
	}
	restore = func() error { return setMode(h, shown) }
	return restore, setMode(h, shown&^echoInput|processedInput|lineInput)
}
