package term

import "golang.org/x/sys/unix"

// Requests for the settings of a terminal.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
