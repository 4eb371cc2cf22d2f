package term

import (
	"bytes"
	"strings"
)

// Style is how a piece of text stands out where colour is on.
type Style int

// The styles. Normal is the zero value and changes nothing.
const (
	Normal Style = iota
	Heading
	Good
	Bad
	Caution
	Faint
	Accent
)

// Styled is text that [Writer.Style] made: nothing foreign in it is raw, and
// any colour in it is our own.
type Styled string

const resetSequence = "\x1b[0m"

// sequence returns what switches s on. Together with the reset these are the
// only sequences that a styled write may hold.
func (s Style) sequence() string {
	switch s {
	case Heading:
		return "\x1b[1m"
	case Good:
		return "\x1b[32m"
	case Bad:
		return "\x1b[31m"
	case Caution:
		return "\x1b[33m"
	case Faint:
		return "\x1b[2m"
	case Accent:
		return "\x1b[36m"
	}
	return ""
}

// Style returns text made visible as one line, in colour if w has any.
func (w *Writer) Style(s Style, text string) Styled {
	return w.dress(s, Visible(text))
}

// dress is [Writer.Style] for text that is visible already.
func (w *Writer) dress(s Style, text string) Styled {
	on := s.sequence()
	if on == "" || text == "" || !w.color {
		return Styled(text)
	}
	return Styled(on + text + resetSequence)
}

// ownSequence returns the sequence of ours that p begins with, nil if none.
func ownSequence(p []byte) []byte {
	if bytes.HasPrefix(p, []byte(resetSequence)) {
		return p[:len(resetSequence)]
	}
	for s := Heading; s <= Accent; s++ {
		if on := s.sequence(); bytes.HasPrefix(p, []byte(on)) {
			return p[:len(on)]
		}
	}
	return nil
}

// uncoloured returns s without our sequences.
func uncoloured(s Styled) string {
	var b strings.Builder
	for p := []byte(s); len(p) > 0; {
		if own := ownSequence(p); own != nil {
			p = p[len(own):]
			continue
		}
		b.WriteByte(p[0])
		p = p[1:]
	}
	return b.String()
}
