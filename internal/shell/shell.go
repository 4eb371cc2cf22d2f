// Package shell writes words as the shell at hand reads them, so that commands
// can be copied from messages.
package shell

import (
	"runtime"
	"strings"
)

// windows says that commands are copied into PowerShell.
const windows = runtime.GOOS == "windows"

// Word returns s so that the shell reads it as one word.
func Word(s string) string { return word(s, windows) }

// Line joins words to a command line.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// Export returns the line that sets an environment variable for the commands that follow.
func Export(name, value string) string { return export(name, value, windows) }

func export(name, value string, windows bool) string {
	if windows {
		return "$env:" + name + " = '" + doubled(value) + "'"
	}
	return "export " + name + "=" + word(value, false)
}

// word quotes for a POSIX shell, or for PowerShell: there, where nothing is expanded in
// double quotes, so that cmd reads it alike.
func word(s string, windows bool) string {
	plain := "-_./=+,@%#~:"
	if windows {
		plain = `-_./=+\:` // PowerShell splits at a comma, and an @ or # may begin something else
	}
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(plain, r)
	}
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

// What PowerShell takes for quotes besides the ASCII ones.
const (
	doubleQuotes = "\u201c\u201d\u201e"
	singleQuotes = "'\u2018\u2019\u201a\u201b"
)

// doubled doubles what ends a text in single quotes in PowerShell.
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
