package intake

import (
	"errors"
	"io"
)

const (
	readSize      = 256 << 10 // bytes
	maxEmptyReads = 100       // reads in a row that bring nothing
)

// errEnd says that a text is at its end.
var errEnd = errors.New("end of text")

// window is the part of a stream that is being looked at. It grows as far as
// its user asks for more.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int
	err        error // why there is no more; errEnd at the end
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, readSize)}
}

// bytes returns what is in view. It is valid until more is called.
func (w *window) bytes() []byte { return w.buf[w.start:w.end] }

// drop takes the first n bytes out of view.
func (w *window) drop(n int) { w.start += n }

// more brings further bytes into view. It returns false when there are none;
// err then says why.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	if w.start > 0 {
		copy(w.buf, w.buf[w.start:w.end])
		w.start, w.end = 0, w.end-w.start
	}
	if w.end == len(w.buf) {
		w.buf = append(w.buf, make([]byte, len(w.buf))...)
	}
	for range maxEmptyReads {
		n, err := w.r.Read(w.buf[w.end:])
		w.end += n
		if err == io.EOF {
			w.err = errEnd
		} else if err != nil {
			w.err = hideEOF(err)
		}
		if n > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
	w.err = io.ErrNoProgress
	return false
}

// hideEOF returns the error of a reader in a form that can't be taken for the
// end of its text, even if it wraps io.EOF.
func hideEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New(err.Error())
	}
	return err
}

// fill brings n bytes into view, or as many as there are.
func (w *window) fill(n int) []byte {
	for len(w.bytes()) < n && w.more() {
	}
	return w.bytes()
}

// Read gives what is in view, then what comes after it, as it arrives.
func (w *window) Read(p []byte) (int, error) {
	if w.start == w.end && !w.more() {
		if errors.Is(w.err, errEnd) {
			return 0, io.EOF
		}
		return 0, w.err
	}
	n := copy(p, w.bytes())
	w.drop(n)
	return n, nil
}
