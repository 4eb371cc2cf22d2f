// Package cli is the command line: commands are words, flags and help; what
// they do is in the packages they ask. Errors become text and an exit status
// here and nowhere else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// Main runs the program's command line and returns its exit status.
func Main() Code {
	hard, stopHard := context.WithCancelCause(context.Background())
	soft, stopSoft := context.WithCancelCause(context.Background())
	defer stopHard(nil)
	defer stopSoft(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A reader that goes away is an error of a write, not the end of the
	// program in the middle of its work.
	signal.Ignore(syscall.SIGPIPE)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for stop := stopSoft; ; stop = stopHard {
			select {
			case s := <-signals:
				stop(&signalError{s})
			case <-done:
				return
			}
		}
	}()
	a := &app.App{IO: term.System(), Sources: config.FromOS, Getenv: os.Getenv, Hard: hard}
	return Run(soft, a, os.Args[1:])
}

// signalError is why a context ended when a signal came.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "interrupted" }

func (e *signalError) code() Code {
	if e.signal == syscall.SIGTERM {
		return Terminated
	}
	return Interrupted
}

// usageError is a command line that says nothing we can do.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// Run runs one command line and says how it ended. It writes any error to
// a.IO.Err, once.
func Run(ctx context.Context, a *app.App, args []string) Code {
	r := &runner{app: a, args: args, exec: Run}
	root := r.root() //nolint:contextcheck // commands get theirs from cobra
	root.SetArgs(args)
	r.preconfigure(args)
	defer func() { _ = a.IO.Close() }()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !r.started {
		err = r.asUsage(cmd, err) // whatever stops a command before it starts is how it was called
	}
	return r.finish(ctx, err)
}

// runner is one run of the command tree.
type runner struct {
	app     *app.App
	args    []string
	started bool
	exec    func(context.Context, *app.App, []string) Code // runs another command line, as Run does
	cmd     *cobra.Command                                 // that runs
	out     *result
}

// action is what a command does once its line is understood.
type action func(ctx context.Context, s *app.Session, args []string) error

// run makes a command's RunE: it loads the settings, closes what the action
// opened, and lets the first error stand.
func (r *runner) run(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) (err error) {
		r.started, r.cmd = true, cmd
		s, err := r.app.Session(cmd.Context(), flagsOf(cmd))
		if err != nil {
			return err
		}
		if err := r.configure(cmd, s.Config); err != nil {
			return err
		}
		for _, w := range s.Config.Warnings() {
			s.IO.Warning("%s", w)
		}
		if r.out, err = newResult(cmd, r.app, s.Config.Output, serves(cmd)); err != nil {
			return err
		}
		defer r.out.discard()
		defer func() { err = r.out.end(errors.Join(err, s.Close())) }()
		return do(cmd.Context(), s, args)
	}
}

// configure hands the streams what the settings say of them.
func (r *runner) configure(cmd *cobra.Command, c config.Config) error {
	jq, err := cmd.Flags().GetString("jq")
	if err != nil {
		return err
	}
	return r.app.IO.Configure(term.Options{
		Color:   c.Color,
		Quiet:   c.Quiet,
		Verbose: c.Verbose || c.Debug,
		JSON:    machine(c.Output) || jq != "",
	})
}

// preconfigure reads from the bare line whether errors are wanted as JSON, and
// in colour: a line that can't be parsed must be answered in the form it asked
// for.
func (r *runner) preconfigure(args []string) {
	o := term.Options{Color: "auto"}
	setColor := func(value string) {
		if value == "always" || value == "never" {
			o.Color = value
		}
	}
	setColor(r.app.Getenv(config.EnvPrefix + "COLOR"))
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
	_ = r.app.IO.Configure(o) // the fixed options above are valid
}

func machine(output string) bool { return output == "json" || output == "jsonl" }

// asUsage turns what cobra says of a wrong line into ours.
func (r *runner) asUsage(cmd *cobra.Command, err error) error {
	if as[*usageError](err) {
		return err
	}
	path := "waybill"
	if cmd != nil {
		path = cmd.CommandPath()
	}
	return &usageError{err: err, hint: "run `" + path + " --help` for how to call it"}
}

// flagsOf returns the flags of a command that are settings. `--json` is short
// for `--output json`.
func flagsOf(cmd *cobra.Command) []config.Flag {
	var flags []config.Flag
	for _, name := range config.FlagNames() {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed || foreign(cmd, name) {
			continue
		}
		flags = append(flags, config.Flag{Name: name, Values: flagValues(f), Changed: true})
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

func flagValues(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

func as[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
