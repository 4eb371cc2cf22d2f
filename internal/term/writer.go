package term

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// ErrClosed is the error of a write whose reader has gone away, as `head` does when it has read enough. It is not a
// failure: the program ends quietly.
//
// It occurs only in a program that ignores SIGPIPE (signal.Ignore); otherwise the runtime ends the program at such a
// write to stdout or stderr.
var ErrClosed = errors.New("output cut: its reader ended")

const defaultWidth = 80

// Writer is one output stream, safe for concurrent use.
//
// To a terminal it writes only printable text, newline and tab; all other bytes become visible escapes, as do the bytes
// of a character that is split between two writes. Elsewhere bytes pass unchanged. After a failed write, every later
// write fails with the same error.
type Writer struct {
	w        io.Writer
	file     *os.File // w, if it is a file
	screen   *screen  // its lock guards the fields below
	err      error
	terminal bool
	movable  bool // the cursor may be moved
	color    bool
	width    int    // columns if the terminal does not report them, 0 if unknown
	holding  bool   // see Hold
	buffered []byte // output waiting for Release
}

// maxWaiting is the maximum number of bytes held until [Writer.Release].
const maxWaiting = 64 << 10

// Plain returns a Writer without colour for a stream that is not a terminal, such as a file.
func Plain(w io.Writer) *Writer {
	file, _ := w.(*os.File)
	return &Writer{w: w, file: file, screen: &screen{}}
}

// IsTerminal reports whether the stream is a terminal.
func (w *Writer) IsTerminal() bool { return w.terminal }

// Width returns the current number of columns of the terminal; 0 if the stream is not a terminal.
func (w *Writer) Width() int {
	if !w.terminal {
		return 0
	}
	wide, _ := w.size()
	return cmp.Or(wide, max(w.width, 0), defaultWidth)
}

// size returns the current columns and lines of the terminal; 0 if unknown.
func (w *Writer) size() (wide, high int) {
	if w.file == nil {
		return 0, 0
	}
	wide, high, _ = term.GetSize(int(w.file.Fd()))
	return max(wide, 0), max(high, 0)
}

// Write writes p, which may be foreign. No escape sequence in it reaches a terminal.
func (w *Writer) Write(p []byte) (int, error) { return w.filtered(p, plain) }

// WriteStyled writes whole lines made of [Styled] parts and visible text.
func (w *Writer) WriteStyled(p []byte) (int, error) {
	return w.filtered(p, func(p []byte) []byte { return styled(p, w.color) })
}

func (w *Writer) filtered(p []byte, filter func([]byte) []byte) (int, error) {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	if !w.terminal {
		return w.put(p)
	}
	if _, err := w.put(filter(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Printf writes human text. Every argument is made visible as one line, except a [Styled], which is written unchanged.
// The format must be our own text and may contain newlines.
func (w *Writer) Printf(format string, args ...any) error {
	_, err := w.WriteStyled(sprintf(format, args))
	return err
}

// Hold buffers up to 64 KiB of later writes until [Writer.Release], so that many short lines are one write. It does
// nothing on a terminal.
func (w *Writer) Hold() {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	w.holding = !w.terminal
}

// Release ends [Writer.Hold] and writes the buffer.
func (w *Writer) Release() error {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	w.holding = false
	return w.writeBuffered()
}

// writeBuffered writes the buffer of [Writer.Hold]. The screen is locked.
func (w *Writer) writeBuffered() error {
	if len(w.buffered) > 0 && w.err == nil {
		_, w.err = w.write(w.buffered)
	}
	w.buffered = w.buffered[:0]
	return w.err
}

// put writes or buffers p unchanged. The screen is locked.
func (w *Writer) put(p []byte) (int, error) {
	if w.err != nil || len(p) == 0 {
		return 0, w.err
	}
	if !w.holding || len(w.buffered)+len(p) > maxWaiting {
		if err := w.writeBuffered(); err != nil {
			return 0, err
		}
	}
	if w.holding && len(p) <= maxWaiting {
		w.buffered = append(w.buffered, p...)
		return len(p), nil
	}
	n, err := w.write(p)
	w.err = err
	return n, err
}

// write writes p without buffering. A short write is an error.
func (w *Writer) write(p []byte) (n int, err error) {
	if w.terminal {
		n, err = w.screen.put(w.w, p)
	} else {
		n, err = w.w.Write(p)
	}
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, closedError(err)
}

func closedError(err error) error {
	if err != nil && (readerGone(err) || errors.Is(err, io.ErrClosedPipe)) {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return err
}

func sprintf(format string, args []any) []byte {
	safe := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case nil, bool, float32, float64, int: // an int may be a width
			safe[i] = a
		default:
			safe[i] = argument{a}
		}
	}
	return fmt.Appendf(nil, format, safe...)
}

type argument struct{ v any }

// Format implements [fmt.Formatter].
func (a argument) Format(s fmt.State, verb rune) {
	text := fmt.Sprintf(fmt.FormatString(s, verb), a.v)
	if _, ok := a.v.(Styled); !ok {
		text = Visible(text)
	}
	_, _ = io.WriteString(s, text) // a fmt.State accepts every write
}

// plain is the last filter before a terminal. It passes printable UTF-8, newline and tab, and escapes everything else.
func plain(p []byte) []byte {
	if cleanPrefix(p, severalLines) == len(p) {
		return p
	}
	return appendVisible(nil, p, severalLines)
}

// styled is plain, but passes our own colour sequences if color is true, else drops them.
func styled(p []byte, color bool) []byte {
	var dst []byte
	for {
		n := cleanPrefix(p, severalLines)
		dst = append(dst, p[:n]...)
		if p = p[n:]; len(p) == 0 {
			return dst
		}
		if own := ownSequence(p); own != nil {
			if color {
				dst = append(dst, own...)
			}
			p = p[len(own):]
			continue
		}
		r, size := utf8.DecodeRune(p)
		dst = appendEscape(dst, r, p[:size])
		p = p[size:]
	}
}
