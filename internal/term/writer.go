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

// ErrClosed is the error of a write whose reader has gone away, as `head` does
// when it has seen enough. It is no failure: the program ends quietly.
//
// It comes about only in a program that ignores SIGPIPE (signal.Ignore):
// otherwise the runtime ends the program at such a write to stdout or stderr.
var ErrClosed = errors.New("output cut: its reader ended")

const defaultWidth = 80

// Writer is one output stream, safe for concurrent use.
//
// On a terminal only printable text, newline and tab get through; all other bytes become visible escapes, and so does a
// character that is cut between two writes. Elsewhere bytes pass unchanged. After a write has failed, every later one
// fails with the same error.
type Writer struct {
	w        io.Writer
	file     *os.File // w, if it is one
	screen   *screen  // its lock guards all below
	err      error
	terminal bool
	movable  bool // the cursor may be moved
	color    bool
	width    int    // columns if the terminal does not tell, 0 if not known either
	holding  bool   // see Hold
	held     []byte // what waits for Release
}

// maxWaiting is how many bytes wait for [Writer.Release] at most.
const maxWaiting = 64 << 10

// Plain returns a Writer for what is no terminal and has no colour, such as a file.
func Plain(w io.Writer) *Writer {
	file, _ := w.(*os.File)
	return &Writer{w: w, file: file, screen: &screen{}}
}

// IsTerminal reports whether the stream is a terminal.
func (w *Writer) IsTerminal() bool { return w.terminal }

// Width returns the columns of the terminal now, 0 if the stream is none.
func (w *Writer) Width() int {
	if !w.terminal {
		return 0
	}
	wide, _ := w.size()
	return cmp.Or(wide, max(w.width, 0), defaultWidth)
}

// size returns the columns and lines of the terminal now, 0 if it does not tell.
func (w *Writer) size() (wide, high int) {
	if w.file == nil {
		return 0, 0
	}
	wide, high, _ = term.GetSize(int(w.file.Fd()))
	return max(wide, 0), max(high, 0)
}

// Write writes p, foreign as it may be. No sequence in it reaches a terminal.
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

// Printf writes human text. Every argument is made visible as one line, but for a [Styled], which is taken as it is.
// The format is our own text and may hold newlines.
func (w *Writer) Printf(format string, args ...any) error {
	_, err := w.WriteStyled(sprintf(format, args))
	return err
}

// Hold lets what is written from now on wait until [Writer.Release], 64 KiB of it at
// most, so that many short lines are one write. A terminal gets each at once.
func (w *Writer) Hold() {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	w.holding = !w.terminal
}

// Release ends [Writer.Hold] and writes what waits.
func (w *Writer) Release() error {
	w.screen.mu.Lock()
	defer w.screen.mu.Unlock()
	w.holding = false
	return w.writeHeld()
}

// writeHeld writes what waits. The screen is locked.
func (w *Writer) writeHeld() error {
	if len(w.held) > 0 && w.err == nil {
		_, w.err = w.write(w.held)
	}
	w.held = w.held[:0]
	return w.err
}

// put writes p as it is. The screen is locked.
func (w *Writer) put(p []byte) (int, error) {
	if w.err != nil || len(p) == 0 {
		return 0, w.err
	}
	if !w.holding || len(w.held)+len(p) > maxWaiting {
		if err := w.writeHeld(); err != nil {
			return 0, err
		}
	}
	if w.holding && len(p) <= maxWaiting {
		w.held = append(w.held, p...)
		return len(p), nil
	}
	n, err := w.write(p)
	w.err = err
	return n, err
}

// write writes p now, or returns why it can't be written.
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
	_, _ = io.WriteString(s, text) // a fmt.State takes everything
}

// plain is the last thing that bytes meet on their way to a terminal. It lets printable UTF-8, newline and tab through
// and makes all else visible.
func plain(p []byte) []byte {
	if cleanPrefix(p, severalLines) == len(p) {
		return p
	}
	return appendVisible(nil, p, severalLines)
}

// styled is plain with our own colour sequences, left out unless color is on.
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
