// Package command has what the commands of waybill share: how they run and end,
// where their results go, their errors with exit statuses, and their flags.
package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
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

// StoreToList is ExistingStore for a list of what. Where none is there, --store or a script's output gets a warning.
func (c *Call) StoreToList(ctx context.Context, what string) (*app.Store, error) {
	db, err := c.ExistingStore(ctx)
	warn := c.Out.Format() != render.Table || isSet(c.Cmd, "fail-if-any") || c.Cmd.Flags().Changed("store")
	if db == nil && err == nil && warn {
		if place, _, err := c.StorePlace(); err == nil {
			c.IO.Warning("there is no store at %s, so no %s is known", place, what)
		}
	}
	return db, err
}

// Again returns the command that continues this one, with more words. Flags named in without are left out.
func (c *Call) Again(without []string, more ...string) string {
	words, args := strings.Fields(c.Cmd.CommandPath()), c.Cmd.Flags().Args()
	c.Cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			more = append(more, flagWords(f)...)
		}
	})
	if slices.ContainsFunc(args, func(arg string) bool { return len(arg) > 1 && arg[0] == '-' }) {
		return shell.Line(slices.Concat(words, more, []string{"--"}, args)...)
	}
	return shell.Line(slices.Concat(words, args, more)...)
}

// CommandLine returns another command with the flags of this one that name settings, store, account and service.
func (c *Call) CommandLine(words ...string) string { return c.CommandLineWith(nil, words...) }

// CommandLineWith is CommandLine with further flags of this command line, by name, where they were given.
func (c *Call) CommandLineWith(flags []string, words ...string) string {
	words = append([]string{"waybill"}, words...)
	given := strings.Fields("config profile account base-url store insecure-store api-key-file same-key ca-file " +
		"insecure-http request-timeout")
	for _, name := range append(given, flags...) {
		if f := c.Cmd.Flags().Lookup(name); f != nil {
			words = append(words, flagWords(f)...)
		}
	}
	return shell.Line(words...)
}

// flagWords are the words that give a flag as the user did, none if it was not given.
func flagWords(f *pflag.Flag) []string {
	if !f.Changed {
		return nil
	}
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	var words []string
	for _, v := range FlagValues(f) {
		switch {
		case f.NoOptDefVal == v:
			words = append(words, name)
		case f.NoOptDefVal != "":
			words = append(words, "--"+f.Name+"="+v)
		default:
			words = append(words, name, v)
		}
	}
	return words
}

// Within returns a context that ends with --timeout, if that is set.
func (c *Call) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := c.Config.Timeout; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, ErrTimeUp)
	}
	return context.WithCancel(ctx)
}

// Factory gives commands what they need to run.
type Factory struct {
	App  *app.App
	Args []string                                       // the whole command line, without the program's name
	Exec func(context.Context, *app.App, []string) Code // runs another command line

	Started bool // the command line was understood, and its command runs
}

// CobraAction is a command's RunE.
type CobraAction = func(cmd *cobra.Command, args []string) error

// Action is what a command does once its line is understood.
type Action func(ctx context.Context, c *Call, args []string) error

// RunE makes a command's RunE: it loads the settings, closes what do opened, and lets the first error stand.
func (f *Factory) RunE(do Action) CobraAction { return f.RunWith(FlagsOf, do) }

// WithArgs is RunE for an action that finds its arguments among its options.
func (f *Factory) WithArgs(args *[]string, do func(ctx context.Context, c *Call) error) CobraAction {
	return f.RunE(func(ctx context.Context, c *Call, given []string) error {
		*args = given
		return do(ctx, c)
	})
}

// RunWith is RunE for a command that changes the flags that are settings.
func (f *Factory) RunWith(flags func(*cobra.Command) []config.Flag, do Action) CobraAction {
	return func(cmd *cobra.Command, args []string) (err error) {
		f.Started = true
		given := flags(cmd)
		s, err := f.App.Session(cmd.Context(), given)
		if err != nil {
			return err
		}
		s.Command = strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		f.App.IO.Configure(term.Options{
			Color:   s.Config.Color,
			Quiet:   s.Config.Quiet,
			Verbose: s.Config.Verbose || s.Config.Debug,
			JSON:    machine(s.Config.Output) || valueOf(cmd, "jq") != "",
		})
		for _, w := range s.Config.Warnings() {
			s.IO.Warning("%s", w)
		}
		for _, file := range s.Config.SecretFiles() {
			if who, restrict := config.Exposed(file); who != "" {
				s.IO.Warning("%s may read or change %s, which holds a secret; run `%s`", who, file, restrict)
			}
		}
		if err := spareReady(cmd, f.App.Sources(given)); err != nil {
			return err
		}
		out, err := newOutput(cmd, f.App, s.Config.Output)
		if err != nil {
			return err
		}
		defer out.Discard()
		defer func() { err = out.End(errors.Join(err, s.Close())) }()
		if !runsUntilStopped(cmd) {
			defer noteSignal(cmd.Context(), s)()
		}
		return do(cmd.Context(), &Call{Session: s, Out: out, Cmd: cmd, Line: f.Args, Getenv: f.App.Getenv}, args)
	}
}

// RunAlways is [Factory.RunE] for a command that also runs with settings that can't be loaded: the call then has
// the default ones, and broken says why. What is wrong with a flag is an error as elsewhere.
func (f *Factory) RunAlways(do func(ctx context.Context, c *Call, args []string, broken error) error) CobraAction {
	return func(cmd *cobra.Command, args []string) error {
		run := f.RunBare
		_, broken := config.Load(f.App.Sources(FlagsOf(cmd)))
		if fault, ok := errors.AsType[*config.KeyError](broken); !ok || fault.Origin.Level == config.FromFlag {
			run, broken = f.RunE, nil
		}
		return run(func(ctx context.Context, c *Call, args []string) error { return do(ctx, c, args, broken) })(cmd, args)
	}
}

// RunBare is [Factory.RunE] for a command that loads no settings: it also runs where they can't be loaded.
func (f *Factory) RunBare(do Action) CobraAction {
	return func(cmd *cobra.Command, args []string) error {
		f.Started = true
		out, err := f.Output(cmd)
		if err != nil {
			return err
		}
		defer out.Discard()
		s := f.App.Bare(FlagsOf(cmd))
		return out.End(do(cmd.Context(), &Call{Session: s, Out: out, Cmd: cmd, Line: f.Args, Getenv: f.App.Getenv}, args))
	}
}

// noteSignal says at a signal how many requests the command lets end first, and nothing after stop.
func noteSignal(ctx context.Context, s *app.Session) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		if n := s.InFlight(); n > 0 && As[*SignalError](context.Cause(ctx)) {
			s.IO.Note("Finishing %s; Ctrl-C again to stop now", Plural(n, "request"))
		}
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// Preconfigure finds in an unparsed line and the environment how errors look, for the errors of parsing it.
func (f *Factory) Preconfigure(args []string) {
	for _, name := range []string{"WAYBILL_API_KEY", "WAYBILL_WEBHOOK_SECRET", "PGPASSWORD"} {
		f.App.IO.Hide(f.App.Getenv(name)) // one may be typed in the wrong place
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	output := flags.StringP("output", "o", f.App.Getenv(config.EnvPrefix+"OUTPUT"), "")
	color := flags.String("color", f.App.Getenv(config.EnvPrefix+"COLOR"), "")
	jq := flags.String("jq", "", "")
	asJSON := flags.Bool("json", false, "")
	for name, letter := range map[string]string{"help": "h", "quiet": "q", "verbose": "v", "exit-status": "e"} {
		flags.BoolP(name, letter, false, "") // may stand before -o in one word
	}
	_ = flags.Parse(args) // what is wrong is told once all flags are known
	f.App.IO.Configure(term.Options{Color: *color, JSON: machine(*output) || *asJSON || *jq != ""})
}

func machine(output string) bool { return output == "json" || output == "jsonl" }
