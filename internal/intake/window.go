package intake

import (
	"errors"
	"io"
)

const (
	readSize      = 256 << 10 // bytes
	maxEmptyReads = 100       // empty reads in a row
)

// errEnd says that a text is at its end.
var errEnd = errors.New("end of text")

// window is a buffered part of a stream. It grows when its user asks for more.
type window struct {
	r          io.Reader
	buf        []byte
	start, end int
	err        error // why there is no more; errEnd at the end
}

func newWindow(r io.Reader) *window {
	return &window{r: r, buf: make([]byte, readSize)}
}

// bytes returns the bytes of the window, valid until more is called.
func (w *window) bytes() []byte { return w.buf[w.start:w.end] }

// drop removes the first n bytes.
func (w *window) drop(n int) { w.start += n }

// more reads further bytes. It returns false when there are none; err says why.
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

// hideEOF returns err as one that is not io.EOF and does not wrap it.
func hideEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New(err.Error())
	}
	return err
}

// fill reads until the window has n bytes, or as many as there are.
func (w *window) fill(n int) []byte {
	for len(w.bytes()) < n && w.more() {
	}
	return w.bytes()
}

// Read returns the bytes of the window, then the rest of the stream.
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
