package command

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/shell"
)

// Call is one run of a command.
type Call struct {
	*app.Session

	Out    *Output // the result
	Cmd    *cobra.Command
	Line   []string // the whole command line, without the program's name
	Getenv func(string) string
}

// Repeat returns this command line, with words added at its end.
func (c *Call) Repeat(words ...string) string {
	return shell.Line(slices.Concat([]string{"waybill"}, c.Line, words)...)
}

// CommandLine returns a command line with the settings, store and account of
// this one.
func (c *Call) CommandLine(words ...string) string { return c.CommandLineWith(nil, words...) }

// CommandLineWith returns a CommandLine that also has those of flags that this
// one has.
func (c *Call) CommandLineWith(flags []string, words ...string) string {
	words = append([]string{"waybill"}, words...)
	for _, name := range append([]string{"config", "profile", "account", "base-url", "store", "insecure-store", "api-key-file", "ca-file", "insecure-http"}, flags...) {
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
