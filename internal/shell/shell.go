// Package shell quotes words for the user's shell, so that commands can be copied from messages.
package shell

import (
	"runtime"
	"strings"
)

// Typed is a word of a command line being typed.
type Typed struct {
	Raw  string // as typed
	Text string // without quotes; nothing is expanded
	Open byte   // the quote or parenthesis still open at its end, 0 for none
}

// Parse splits a line for a POSIX shell into words. The last word is being typed; after a space it is empty.
func Parse(line string) (words []Typed) {
	for redirected := false; ; {
		line = strings.TrimLeft(line, " \t\n")
		rest := strings.TrimLeft(line, "<>|&;()")
		if operators := line[:len(line)-len(rest)]; operators != "" {
			line, redirected = rest, strings.ContainsAny(operators, "<>")
			continue
		}
		word := Read(line)
		line = line[len(word.Raw):]
		if !redirected || line == "" {
			words = append(words, word)
		}
		if line == "" {
			return words
		}
		redirected = false
	}
}

// Read returns the word at the start of s.
func Read(s string) Typed {
	var text strings.Builder
	for i := 0; i < len(s); i++ {
		open, start := s[i], i
		switch {
		case strings.IndexByte(" \t\n<>|&;()", open) >= 0:
			return Typed{Raw: s[:i], Text: text.String()}
		case open == '\\':
			if i++; i < len(s) {
				text.WriteByte(s[i])
			}
			continue
		case open == '$' && strings.HasPrefix(s[i:], "$("):
			open = '('
		case open == '$' && strings.HasPrefix(s[i:], "$'"):
			i++
		case open != '\'' && open != '"' && open != '`':
			text.WriteByte(open)
			continue
		}
		inside, size, closed := quoted(s[i+1:], open)
		if i += size; open == '(' || open == '`' {
			inside = s[start:min(i+1, len(s))] // a command is not executed
		}
		text.WriteString(inside)
		if !closed {
			return Typed{Raw: s, Text: text.String(), Open: open}
		}
	}
	return Typed{Raw: s, Text: text.String()}
}

// size includes the end.
func quoted(s string, open byte) (text string, size int, closed bool) {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && open != '\'' && (open != '"' || strings.IndexByte("$`\"\\", s[i+1]) >= 0):
			i++
			c = s[i]
		case open == '(' && c == '(':
			depth++
		case open == '(' && c == ')' && depth > 1:
			depth--
		case c == open && open != '$', open == '$' && c == '\'', open == '(' && c == ')':
			return b.String(), i + 1, true
		}
		b.WriteByte(c)
	}
	return b.String(), len(s), false
}

// Escape escapes s inside the open quote open, 0 for none, so that a POSIX shell and interactive bash read it
// literally. It returns false if s can't be written there.
func Escape(s string, open byte) (string, bool) {
	switch open {
	case 0:
		isSpecial := func(c byte) bool {
			return c < 0x80 && !isAlphanumeric(rune(c)) && strings.IndexByte("-_./=+,@%:", c) < 0
		}
		return backslashes(s, isSpecial), true
	case '"':
		return backslashes(s, func(c byte) bool { return strings.IndexByte("$`\"\\", c) >= 0 }), !strings.Contains(s, "!")
	case '\'':
		return strings.ReplaceAll(s, "'", `'\''`), true
	}
	return "", false
}

func isAlphanumeric(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func backslashes(s string, before func(byte) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if before(s[i]) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// windows says that commands are copied into PowerShell.
const windows = runtime.GOOS == "windows"

// Word quotes s so that the shell reads it as one word.
func Word(s string) string { return word(s, windows) }

// Line joins words to a command line, each quoted.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// Export returns the line that sets an environment variable for later commands.
func Export(name, value string) string { return export(name, value, windows) }

func export(name, value string, windows bool) string {
	if windows {
		return "$env:" + name + " = '" + doubled(value) + "'"
	}
	return "export " + name + "=" + word(value, windows)
}

// word quotes for a POSIX shell, or for PowerShell: in double quotes without expansion, so that cmd reads it alike.
func word(s string, windows bool) string {
	plain := "-_./=+,@%#~:"
	if windows {
		plain = `-_./=+\:` // PowerShell splits at a comma, and an @ or # may begin something else
	}
	odd := func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune(plain, r) }
	switch {
	case s != "" && !strings.ContainsFunc(s, odd) && s[0] != '~' && s[0] != '#':
		return s
	case windows && !strings.ContainsAny(s, "\"$%`"+doubleQuotes):
		return `"` + s + `"`
	case windows:
		return "'" + doubled(s) + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Characters that PowerShell treats as quotes besides the ASCII ones.
const (
	doubleQuotes = "\u201c\u201d\u201e"
	singleQuotes = "'\u2018\u2019\u201a\u201b"
)

func doubled(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if strings.ContainsRune(singleQuotes, r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}
