// Package termtest is for tests: it reads what programs write to a terminal.
package termtest

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Output returns all that is written to the terminal behind ptmx, until the last program has closed it.
func Output(ptmx *os.File) io.Reader { return output{ptmx} }

type output struct{ ptmx *os.File }

// Read implements [io.Reader]. Linux looks for bytes before it looks whether the terminal is closed: its first EIO may
// come before the bytes that were written in between, its second can't.
func (o output) Read(p []byte) (int, error) {
	n, err := o.ptmx.Read(p)
	if errors.Is(err, syscall.EIO) {
		n, err = o.ptmx.Read(p)
	}
	if errors.Is(err, syscall.EIO) {
		return 0, io.EOF
	}
	return n, err
}
