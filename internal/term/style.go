package term

import "bytes"

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

// styleSequences are what switches styles on. Together with the reset these are
// the only sequences that a styled write may hold.
var styleSequences = [...]string{
	Heading: "\x1b[1m",
	Good:    "\x1b[32m",
	Bad:     "\x1b[31m",
	Caution: "\x1b[33m",
	Faint:   "\x1b[2m",
	Accent:  "\x1b[36m",
}

func (s Style) sequence() string { return styleSequences[s] }

// Style returns text made visible as one line, in colour if w has any.
func (w *Writer) Style(s Style, text string) Styled {
	text = Visible(text)
	if s == Normal || text == "" || !w.color {
		return Styled(text)
	}
	return Styled(s.sequence() + text + resetSequence)
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
func uncoloured(s Styled) string { return sequences.ReplaceAllString(string(s), "") }
