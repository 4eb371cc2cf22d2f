package term

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// readerGone reports whether a write failed because the reader has gone away.
func readerGone(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA) ||
		errors.Is(err, syscall.EPIPE)
}

// canMove turns on escape sequences for the console f and reports whether it understands them.
func canMove(f *os.File) bool {
	h := windows.Handle(f.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	if mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 {
		return true
	}
	return windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// hideInput turns off the echo of a console until restore. Line editing and Ctrl-C as a signal are on.
func hideInput(f *os.File) (restore func() error, err error) {
	h := windows.Handle(f.Fd())
	var shown uint32
	if err := windows.GetConsoleMode(h, &shown); err != nil {
		return nil, err
	}
	restore = func() error { return windows.SetConsoleMode(h, shown) }
	hidden := shown&^windows.ENABLE_ECHO_INPUT | windows.ENABLE_PROCESSED_INPUT | windows.ENABLE_LINE_INPUT
	return restore, windows.SetConsoleMode(h, hidden)
}
