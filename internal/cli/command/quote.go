package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

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

// Repeat is this command line, with more words at its end.
func (c *Call) Repeat(words ...string) string {
	return shell.Line(slices.Concat([]string{"waybill"}, c.Line, words)...)
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
	return shell.Line(words...)
}
