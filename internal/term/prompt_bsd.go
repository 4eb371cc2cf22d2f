//go:build !linux && !windows

package term

import "golang.org/x/sys/unix"

// Requests for the settings of a terminal.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
