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

// canMove makes the console f understand sequences and reports whether it
// does.
func canMove(f *os.File) bool {
	h := syscall.Handle(f.Fd())
	var mode uint32
	if err := syscall.GetConsoleMode(h, &mode); err != nil {
		return false
	}
	if mode&virtualTerminal != 0 {
		return true
	}
	set := syscall.NewLazyDLL("kernel32.dll").NewProc("SetConsoleMode")
	ok, _, _ := set.Call(uintptr(h), uintptr(mode|virtualTerminal))
	return ok != 0
}
