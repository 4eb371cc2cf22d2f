package intake

import (
	"bufio"
	"errors"
	"io"
)

// errEnd says that a text is at its end.
var errEnd = errors.New("end of text")

// readAhead is how many bytes beyond a record a window has.
const readAhead = 64 << 10

// window is a buffered part of a stream.
type window struct {
	*bufio.Reader
	err error // why there is no more; errEnd at the end
}

func newWindow(r io.Reader) *window {
	return &window{Reader: bufio.NewReaderSize(r, MaxRecord+readAhead)}
}

// bytes returns the bytes of the window, valid until more is called.
func (w *window) bytes() []byte {
	b, _ := w.Peek(w.Buffered()) // they are there
	return b
}

func (w *window) drop(n int) { _, _ = w.Discard(n) } // they are there

// more reads further bytes. It returns false when there are none; err says why.
func (w *window) more() bool {
	if w.err != nil {
		return false
	}
	_, err := w.Peek(w.Buffered() + 1)
	if err == io.EOF {
		w.err = errEnd
	} else if err != nil {
		w.err = hideEOF(err)
	}
	return err == nil
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
	for w.Buffered() < n && w.more() {
	}
	return w.bytes()
}

// Read returns the bytes of the window, then the rest of the stream.
func (w *window) Read(p []byte) (int, error) {
	if w.Buffered() == 0 && !w.more() {
		if errors.Is(w.err, errEnd) {
			return 0, io.EOF
		}
		return 0, w.err
	}
	return w.Reader.Read(p)
}
