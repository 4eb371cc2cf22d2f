//go:build !windows

package term

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone reports whether a write failed because nobody reads any more.
func readerGone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// canMove reports whether the terminal f understands sequences.
func canMove(*os.File) bool { return true }

// hideInput makes a terminal not show what is typed, until restore. Lines are edited, and Ctrl-C is a signal.
func hideInput(f *os.File) (restore func() error, err error) {
	shown, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return nil, err
	}
	hidden := *shown
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	restore = func() error { return unix.IoctlSetTermios(int(f.Fd()), setTermios, shown) }
	return restore, unix.IoctlSetTermios(int(f.Fd()), setTermios, &hidden)
}
