package tracking

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxShape is the maximum length of a shape; a longer one ends in a digest.
const maxShape = 200

// Shape returns the form of an answer to a create: the HTTP status and the kinds of the top-level members. Answers
// with the same meaning have the same shape, whatever their rows; in a success, short words count too. agrees says
// that no list of rows and no count in the answer contradicts the number of rows sent, and of rows refused by name.
//
// Assumed: what answers to a create look like is not shown, so a shape means nothing until queries have proven its
// meaning.
func (b *Body) Shape(status, sent, refused int) (shape string, agrees bool) {
	s := shaper{sent: sent, refused: refused, words: status >= 200 && status < 300, agrees: true}
	if b.JSON() {
		s.write("", b.root, 0)
	} else {
		kind, _, _ := strings.Cut(b.kindOfText(), ":")
		s.out.WriteString(kind)
	}
	shape = fmt.Sprintf("%d %s", status, s.out.String())
	if len(shape) > maxShape {
		shape = fmt.Sprintf("%.*s… %x", maxShape/2, strings.ToValidUTF8(shape[:maxShape/2], ""), sha256.Sum256([]byte(shape)))
	}
	return shape, s.agrees
}

type shaper struct {
	sent, refused int  // numbers of rows
	words         bool // include the text of short strings
	agrees        bool
	out           strings.Builder
}

// write writes the kind of a value. Members below the second level are not distinguished.
func (s *shaper) write(name string, v *value, depth int) {
	switch {
	case v.kind == list:
		s.writeList(name, v)
	case v.kind == object && depth > 1:
		s.out.WriteString("{}")
	case v.kind == object:
		s.writeObject(v, depth)
	default:
		s.writeScalar(name, v)
	}
}

// writeObject writes all members whose names are references, not words, as one.
func (s *shaper) writeObject(v *value, depth int) {
	separator, references := "", ""
	s.out.WriteByte('{')
	for _, m := range v.members {
		if !isWord(m.name) {
			references = "…"
			continue
		}
		s.out.WriteString(separator + m.name + ":")
		s.write(m.name, m.value, depth+1)
		separator = " "
	}
	s.out.WriteString(references + "}")
}

func (s *shaper) writeList(name string, v *value) {
	rows := 0
	for _, item := range v.items {
		if refer, number := names(item); item.kind == object && (refer != "" || number != "") {
			rows++
		}
	}
	switch {
	case len(v.items) == 0:
		s.out.WriteString("[]")
	case rows == 0:
		s.out.WriteString("[…]")
	default:
		s.out.WriteString("[rows]")
		s.agrees = s.agrees && (rows == s.sent || rows == s.sent-s.refused || refusedUnder(name))
	}
}

func (s *shaper) writeScalar(name string, v *value) {
	text := v.text()
	switch {
	case strings.IndexByte("tfn", v.raw[0]) >= 0: // true, false, null
		s.out.Write(v.raw)
	case v.raw[0] != '"':
		s.writeNumber(name, string(v.raw))
	case s.words && isWord(text):
		s.out.WriteString(strconv.Quote(text))
	default:
		s.out.WriteString("string")
	}
}

// writeNumber also writes whether a number is the number of rows, if its name says that it counts them.
func (s *shaper) writeNumber(name, literal string) {
	n, err := strconv.Atoi(literal)
	takes := hasPart(name, "accept", "created", "stored", "succe", "total", "count",
		"import", "insert", "saved", "added", "queued", "received")
	refuses := hasPart(name, "reject", "refus", "fail", "invalid", "error", "skip", "duplicat")
	if err != nil || !takes && !refuses {
		s.out.WriteString("number")
		return
	}
	switch n {
	case s.sent:
		s.out.WriteString("all")
	case 0:
		s.out.WriteByte('0')
	default:
		s.out.WriteString("some")
	}
	s.agrees = s.agrees && (refuses && n == s.refused || !refuses && (n == s.sent || n == s.sent-s.refused))
}

// hasPart reports whether a name has one of the parts and does not name a code.
func hasPart(name string, parts ...string) bool {
	name = strings.ToLower(name)
	inName := func(part string) bool { return strings.Contains(name, part) }
	return !inName("code") && slices.ContainsFunc(parts, inName)
}

// isWord reports whether a text is short and without digits, so that it says what happened, but not to which row.
func isWord(text string) bool {
	return len(text) <= 60 && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !strings.ContainsRune(" .,!_-'", r)
	})
}
