package command

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/term"
)

// ShellWord returns s so that the shell at hand reads it as one word.
func ShellWord(s string) string {
	if runtime.GOOS == "windows" {
		return windowsWord(s)
	}
	return PosixWord(s)
}

func PosixWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, needsQuote) && !strings.HasPrefix(s, "~") && s[0] != '#' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// windowsWord is read alike by cmd and PowerShell for all but `%`, `$` and
// quotes inside, which file names hardly hold.
func windowsWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return needsQuote(r) && r != '\\' && r != ':' }) {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"`
}

func needsQuote(r rune) bool {
	switch {
	case r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
		return false
	}
	return !strings.ContainsRune("-_./=+,@%#~", r)
}

// Quoted shows foreign text between quotes, every character in it visible.
func Quoted(s string) string {
	return `"` + strings.ReplaceAll(term.Visible(s), `"`, `\"`) + `"`
}

// Plural is n and its noun.
func Plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// CommandLine joins words to a command that can be typed again.
func CommandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = ShellWord(w)
	}
	return strings.Join(quoted, " ")
}

// Repeat is this command line, with more words at its end.
func (c *Call) Repeat(words ...string) string {
	return CommandLine(slices.Concat([]string{"waybill"}, c.Line, words)...)
}

// CommandLine is a command line that looks where this one does: at the same
// settings, store and account.
func (c *Call) CommandLine(words ...string) string { return c.CommandLineWith(nil, words...) }

// CommandLineWith is command, with those of these flags that this line has too.
func (c *Call) CommandLineWith(flags []string, words ...string) string {
	words = append([]string{"waybill"}, words...)
	for _, name := range append([]string{"config", "profile", "account", "base-url", "store", "api-key-file", "ca-file", "insecure-http"}, flags...) {
		f := c.Cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			continue
		}
		many, list := f.Value.(pflag.SliceValue)
		switch {
		case list:
			for _, v := range many.GetSlice() {
				words = append(words, "--"+name, v)
			}
		case f.Value.Type() == "bool":
			words = append(words, "--"+name+"="+f.Value.String())
		default:
			words = append(words, "--"+name, f.Value.String())
		}
	}
	return CommandLine(words...)
}
