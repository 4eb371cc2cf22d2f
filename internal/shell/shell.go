// Package shell writes words as the shell at hand reads them, so that commands
// can be copied from messages.
package shell

import (
	"runtime"
	"strings"
)

// Word returns s so that the shell reads it as one word.
func Word(s string) string { return word(s, runtime.GOOS == "windows") }

// Line joins words to a command line.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// word quotes for a POSIX shell, or so that cmd and PowerShell read alike all
// but what they expand within double quotes: that is written for PowerShell.
func word(s string, windows bool) string {
	plain := "-_./=+,@%#~"
	if windows {
		plain += `\:`
	}
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(plain, r)
	}
	switch {
	case s != "" && !strings.ContainsFunc(s, odd) && s[0] != '~' && s[0] != '#':
		return s
	case windows && !strings.ContainsAny(s, "\"$%`"):
		return `"` + s + `"`
	case windows:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
