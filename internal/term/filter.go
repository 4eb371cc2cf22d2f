package term

import "unicode/utf8"

// filter is the last thing that bytes meet on their way to a terminal. It
// lets printable UTF-8, newline and tab through and makes all else visible.
// How the bytes are cut into writes does not matter: what may be the start of
// a longer character waits for the rest.
type filter struct {
	held []byte // start of a character whose rest has not come, at most 3 bytes
	buf  []byte
}

// plain returns what to write for p. The result is valid until the next call.
func (f *filter) plain(p []byte) []byte {
	if len(f.held) > 0 {
		f.buf = append(append(f.buf[:0], f.held...), p...)
		f.held = f.held[:0]
		p = append([]byte(nil), f.buf...)
	}
	whole := len(p) - incomplete(p)
	f.held = append(f.held, p[whole:]...)
	p = p[:whole]
	if cleanPrefix(p, true) == len(p) {
		return p
	}
	f.buf = appendVisible(f.buf[:0], p, true)
	return f.buf
}

// styled is plain for text with colour sequences of our own, which pass if
// color is on and are left out if not. p ends with a whole character.
func (f *filter) styled(p []byte, color bool) []byte {
	f.buf = f.flush(f.buf[:0])
	for len(p) > 0 {
		n := cleanPrefix(p, true)
		f.buf = append(f.buf, p[:n]...)
		p = p[n:]
		if len(p) == 0 {
			break
		}
		if own := ownSequence(p); own != nil {
			if color {
				f.buf = append(f.buf, own...)
			}
			p = p[len(own):]
			continue
		}
		r, size := utf8.DecodeRune(p)
		f.buf = appendEscape(f.buf, r, p[:size])
		p = p[size:]
	}
	return f.buf
}

// flush appends what is held back, made visible: its rest did not come.
func (f *filter) flush(dst []byte) []byte {
	dst = appendVisible(dst, f.held, true)
	f.held = f.held[:0]
	return dst
}

// incomplete returns how many bytes at the end of p are the beginning of a
// character that may go on.
func incomplete(p []byte) int {
	for n := 1; n <= min(len(p), utf8.UTFMax-1); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
