package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// SignalError is why a context ended when a signal came.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "interrupted" }

func (e *SignalError) Code() Code {
	if e.Signal == syscall.SIGTERM {
		return Terminated
	}
	return Interrupted
}

// UsageError is a command line that says nothing we can do.
type UsageError struct {
	Err  error
	Hint string
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

func Usagef(hint, format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Factory makes commands, and runs them with what they need.
type Factory struct {
	App  *app.App
	Args []string                                       // of the whole line
	Exec func(context.Context, *app.App, []string) Code // runs another command line, as Run does

	Started bool // a command's line was understood
}

// Call is one run of a command: the session, where its result goes, and the
// command itself.
type Call struct {
	*app.Session

	Out    *Output
	Cmd    *cobra.Command
	Line   []string // the whole command line, without the program's name
	Getenv func(string) string
}

// Action is what a command does once its line is understood.
type Action func(ctx context.Context, c *Call, args []string) error

// RunE makes a command's RunE: it loads the settings, closes what the action
// opened, and lets the first error stand.
func (f *Factory) RunE(do Action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		f.Started = true
		s, err := f.App.Session(cmd.Context(), FlagsOf(cmd))
		if err != nil {
			return err
		}
		if err := f.configure(cmd, s.Config); err != nil {
			return err
		}
		for _, w := range s.Config.Warnings() {
			s.IO.Warning("%s", w)
		}
		out, err := NewOutput(cmd, f.App, s.Config.Output, serves(cmd))
		if err != nil {
			return err
		}
		defer out.Discard()
		defer func() { err = out.End(errors.Join(err, s.Close())) }()
		return do(cmd.Context(), &Call{Session: s, Out: out, Cmd: cmd, Line: f.Args, Getenv: f.App.Getenv}, args)
	}
}

// configure hands the streams what the settings say of them.
func (r *Factory) configure(cmd *cobra.Command, c config.Config) error {
	jq, err := cmd.Flags().GetString("jq")
	if err != nil {
		return err
	}
	return r.App.IO.Configure(term.Options{
		Color:   c.Color,
		Quiet:   c.Quiet,
		Verbose: c.Verbose || c.Debug,
		JSON:    machine(c.Output) || jq != "",
	})
}

// Preconfigure reads from the bare line whether errors are wanted as JSON, and
// in colour: a line that can't be parsed must be answered in the form it asked
// for.
func (r *Factory) Preconfigure(args []string) {
	o := term.Options{Color: "auto"}
	setColor := func(value string) {
		if value == "always" || value == "never" {
			o.Color = value
		}
	}
	setColor(r.App.Getenv(config.EnvPrefix + "COLOR"))
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value, inline := strings.CutPrefix(arg, "--output=")
		if short, ok := strings.CutPrefix(arg, "-o"); ok && !inline {
			value = strings.TrimPrefix(short, "=")
		}
		if (arg == "-o" || arg == "--output") && i+1 < len(args) {
			value = args[i+1]
		}
		if machine(value) || arg == "--json" || arg == "--json=true" {
			o.JSON = true
		}
		if arg == "--color" && i+1 < len(args) {
			setColor(args[i+1])
		} else if color, ok := strings.CutPrefix(arg, "--color="); ok {
			setColor(color)
		}
	}
	_ = r.App.IO.Configure(o) // the fixed options above are valid
}

func machine(output string) bool { return output == "json" || output == "jsonl" }

// AsUsage turns what cobra says of a wrong line into ours.
func (r *Factory) AsUsage(cmd *cobra.Command, err error) error {
	if As[*UsageError](err) {
		return err
	}
	path := "waybill"
	if cmd != nil {
		path = cmd.CommandPath()
	}
	return &UsageError{Err: err, Hint: "run `" + path + " --help` for how to call it"}
}

// FlagsOf returns the flags of a command that are settings. `--json` is short
// for `--output json`.
func FlagsOf(cmd *cobra.Command) []config.Flag {
	var flags []config.Flag
	for _, name := range config.FlagNames() {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || foreign(cmd, name) {
			continue
		}
		flags = append(flags, config.Flag{Name: name, Values: FlagValues(f), Changed: true})
	}
	if f := cmd.Flags().Lookup("json"); f != nil && f.Changed && f.Value.String() == "true" {
		flags = append(flags, config.Flag{Name: "output", Values: []string{"json"}, Changed: true})
	}
	return flags
}

// foreign reports whether a command's flag only shares its name with a setting.
func foreign(cmd *cobra.Command, name string) bool {
	return name == "addr" && cmd.Name() != "listen" || name == "rate" && sends(cmd)
}

func FlagValues(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func As[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
