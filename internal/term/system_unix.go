//go:build !windows

package term

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone reports whether a write failed because the reader has closed.
func readerGone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// canMove reports whether the terminal f supports escape sequences.
func canMove(*os.File) bool { return true }

// hideInput turns off a terminal's echo until restore is called. Line editing stays on, and Ctrl-C is a signal.
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
