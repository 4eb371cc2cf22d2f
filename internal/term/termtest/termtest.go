// Package termtest is for tests: it reads what programs write to a terminal.
package termtest

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// Output returns everything written to the terminal behind ptmx, until the last program has closed it.
func Output(ptmx *os.File) io.Reader { return output{ptmx} }

type output struct{ ptmx *os.File }

// Read implements [io.Reader]. Linux checks for bytes before it checks whether the terminal is closed, so bytes written
// in between may follow the first EIO, but not the second.
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
