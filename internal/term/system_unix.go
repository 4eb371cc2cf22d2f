//go:build !windows

package term

import (
	"errors"
	"os"
	"syscall"
)

// readerGone reports whether a write failed because nobody reads any more.
func readerGone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// canMove reports whether the terminal f understands sequences.
func canMove(*os.File) bool { return true }
