package observed

import (
	"regexp"
	"strings"
	"sync"
)

// unnamed stands for a name or a word that may be an identifier, or name somebody.
const unnamed = "*"

// Limits of a word: more may be an identifier, or a sentence that names somebody.
const (
	maxWords = 3
	maxWord  = 64 // bytes
)

// Forms of words: letters, signs, and up to three digits in one place. Digits beside a
// hyphen are a part of an identifier.
var (
	nameForm   = form(`_$@`)
	textForm   = form(`_.:/ `)
	numberForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?\d{1,5}$`) })
)

func form(signs string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		inner, outer := "[a-zA-Z"+signs+"]", "[-a-zA-Z"+signs+"]"
		return regexp.MustCompile("^(?:" + outer + "*" + inner + `)?\d{0,3}(?:` + inner + outer + "*)?$")
	})
}

func isWord(s string, form *regexp.Regexp) bool {
	return len(s) <= maxWord && len(strings.Fields(s)) <= maxWords && form.MatchString(s) && strings.ContainsAny(strings.ToLower(s), "abcdefghijklmnopqrstuvwxyz")
}

// memberName returns the name of a member or a header, or [unnamed].
func memberName(name string) string {
	if isWord(name, nameForm()) {
		return name
	}
	return unnamed
}

// vocabulary returns the text of a status, an event kind or a code, or [unnamed].
func vocabulary(s string) string {
	if isWord(s, textForm()) || numberForm().MatchString(s) {
		return s
	}
	return unnamed
}
