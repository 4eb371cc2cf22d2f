package cli

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/term"
)

// shellWord returns s so that the shell at hand reads it as one word.
func shellWord(s string) string {
	if runtime.GOOS == "windows" {
		return windowsWord(s)
	}
	return posixWord(s)
}

func posixWord(s string) string {
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

// quoted shows foreign text between quotes, every character in it visible.
func quoted(s string) string {
	return `"` + strings.ReplaceAll(term.Visible(s), `"`, `\"`) + `"`
}

// plural is n and its noun.
func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// commandLine joins words to a command that can be typed again.
func commandLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}

// command is a command line that looks where this one does: at the same
// settings, store and account.
func (r *runner) command(words ...string) string { return r.commandWith(nil, words...) }

// commandWith is command, with those of these flags that this line has too.
func (r *runner) commandWith(flags []string, words ...string) string {
	words = append([]string{"waybill"}, words...)
	for _, name := range append([]string{"config", "profile", "account", "base-url", "store", "api-key-file", "ca-file", "insecure-http"}, flags...) {
		f := r.cmd.Flags().Lookup(name)
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
	return commandLine(words...)
}
