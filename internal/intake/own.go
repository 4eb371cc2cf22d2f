package intake

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Limits of the columns that are kept with rows and not sent.
const (
	MaxOwn     = 16   // of a table, its first ones
	MaxOwnText = 1000 // bytes of a value; a longer one is not kept
)

type ownColumns struct {
	at    []int
	names []string // as JSON
	text  []byte   // of the row at hand
}

// keep keeps a column if it has a name that no other one has, and there is room.
func (c *ownColumns) keep(header []string, at int) bool {
	name := header[at]
	sameName := func(i int) bool { return foldName(header[i]) == foldName(name) }
	if len(c.at) == MaxOwn || !typable(name) || slices.ContainsFunc(c.at, sameName) {
		return false
	}
	c.at, c.names = append(c.at, at), append(c.names, string(appendJSON(nil, []byte(name))))
	return true
}

// own returns what the own columns of the current record hold, as a JSON object; empty for nothing.
func (t *table) ownText() string {
	c := &t.own
	c.text = c.text[:0]
	for i, at := range c.at {
		value := t.cell(at).text
		if len(value) > MaxOwnText {
			t.sum.OwnLong++
		}
		if !utf8.Valid(value) {
			t.sum.OwnLatin++
			value = []byte(asWindows1252(string(value)))
		}
		if len(value) == 0 || len(value) > MaxOwnText {
			continue
		}
		before := byte(',')
		if len(c.text) == 0 {
			before = '{'
		}
		c.text = append(append(append(c.text, before), c.names[i]...), ':')
		c.text = appendJSON(c.text, value)
	}
	if len(c.text) == 0 {
		return ""
	}
	return string(append(c.text, '}'))
}

// asWindows1252 returns a text that is no UTF-8 as Excel in Western Europe and America writes it.
func asWindows1252(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	s, _ = charmap.Windows1252.NewDecoder().String(s) // every byte has a character
	return s
}

func appendJSON(dst, text []byte) []byte {
	plain := func(c byte) bool { return c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' }
	for _, c := range text {
		if !plain(c) {
			text, _ = json.Marshal(string(text)) //nolint:errchkjson // a text has no error
			return append(dst, text...)          //nolint:gocritic // each value ends the function
		}
	}
	return append(append(append(dst, '"'), text...), '"')
}
