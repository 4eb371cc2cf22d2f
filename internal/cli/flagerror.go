package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/shell"
)

func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownWord(cmd, words) // its flags are unknown too
	}
	hint := "run `" + cmd.CommandPath() + " --help` for its flags"
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown, hint)
	case errors.As(err, &empty):
		f := empty.GetFlag()
		value, _ := command.FlagText(f)
		return command.Usagef(hint, "--%s needs a value: --%s %s", f.Name, f.Name, value)
	case errors.As(err, &invalid):
		return command.Usagef(hint, "--%s %s", invalid.GetFlag().Name, command.InvalidValue(invalid))
	}
	return &command.UsageError{Err: err, Hint: hint}
}

// unknownFlag suggests the flag that was probably meant. A word with one hyphen may
// also be an argument that begins with one.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError, hint string) error {
	name := err.GetSpecifiedName()
	if letters := err.GetSpecifiedShortnames(); letters != "" {
		if word := shell.Word("-" + letters); strings.Contains(cmd.Use, " ") {
			hint = "if " + word + " is an argument, put -- before it: `" + cmd.CommandPath() + " -- " + word + "`; else " + hint
		}
		return command.Usagef(hint, "unknown flag -%s in %s", name, command.Quoted("-"+letters))
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	if now := replacement(cmd, "--"+name); now != "" {
		hint = now
	} else if near := config.Nearest(name, known); near != "" {
		hint = "did you mean --" + near + "?"
	}
	return command.Usagef(hint, "unknown flag --%s", name)
}
