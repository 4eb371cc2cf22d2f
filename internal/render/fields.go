package render

import (
	"strings"

	"github.com/waybill-cli/waybill/internal/term"
)

// Field is a named value of one thing.
type Field struct {
	Name  string
	Value string // foreign or not; the field is left out if it is empty
	Style term.Style
}

// minWrap is how many columns there must be for values to be wrapped.
const minWrap = 16

// Fields writes fields one below the other, values aligned. On a terminal a
// long value goes on in further lines, broken at spaces only.
func Fields(out *term.Writer, fields ...Field) error {
	width := 0
	for _, f := range fields {
		if f.Value != "" {
			width = max(width, term.DisplayWidth(term.Visible(f.Name)))
		}
	}
	width += len(":") + gap
	room := out.Width() - width
	s := sink{out: out, styled: true}
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		name := term.Visible(f.Name)
		s.buf = append(s.buf, out.Style(term.Heading, name+":")...)
		space := width - term.DisplayWidth(name) - len(":")
		for _, line := range Wrap(term.Visible(f.Value), room) {
			s.buf = append(s.buf, strings.Repeat(" ", space)...)
			s.buf = append(s.buf, out.Style(f.Style, line)...)
			s.buf = append(s.buf, '\n')
			space = width
		}
	}
	return s.flush()
}

// Wrap breaks visible text at spaces so that each line takes at most room columns
// if its words allow. With too little room it is one line.
func Wrap(text string, room int) []string {
	if room < minWrap || term.DisplayWidth(text) <= room {
		return []string{text}
	}
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && term.DisplayWidth(lines[last]+" "+word) <= room {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
