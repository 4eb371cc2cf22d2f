//go:build !windows

package term

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// readerGone reports whether a write failed because the reader has gone away.
func readerGone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// canMove reports whether the terminal f understands escape sequences.
func canMove(*os.File) bool { return true }

// hideInput turns off the echo of a terminal until restore. Line editing and Ctrl-C as a signal are on.
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
