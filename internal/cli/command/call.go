// Package command provides what all commands of waybill share: the way they start and end, output, errors with exit
// statuses, and flags.
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

// StoreToList is ExistingStore for a list of what. Without a store it warns scripts, and users of --store.
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

// Again returns this command with more words, for messages that say how to continue. It omits the flags in without.
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

// CommandLine returns another command line that repeats this one's flags for configuration, store, account and service.
func (c *Call) CommandLine(words ...string) string { return c.CommandLineWith(nil, words...) }

// CommandLineWith is CommandLine that also repeats the named flags if they were given.
func (c *Call) CommandLineWith(flags []string, words ...string) string {
	words = append([]string{"waybill"}, words...)
	names := strings.Fields("config profile account base-url store insecure-store api-key-file same-key ca-file " +
		"insecure-http request-timeout")
	for _, name := range append(names, flags...) {
		if f := c.Cmd.Flags().Lookup(name); f != nil {
			words = append(words, flagWords(f)...)
		}
	}
	return shell.Line(words...)
}

// flagWords returns a flag as the user wrote it, or nothing if it was not given.
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

// Within returns a context that ends after --timeout, if set.
func (c *Call) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	if limit := c.Config.Timeout; limit > 0 {
		return context.WithTimeoutCause(ctx, limit, ErrTimeUp)
	}
	return context.WithCancel(ctx)
}

// Factory builds the RunE functions of commands from what they all need.
type Factory struct {
	App  *app.App
	Args []string                                       // the whole command line, without the program's name
	Exec func(context.Context, *app.App, []string) Code // runs another command line

	Started bool // the command line was parsed, and its command runs
}

// CobraAction is a command's RunE.
type CobraAction = func(cmd *cobra.Command, args []string) error

// Action is the work of a command whose command line was parsed.
type Action func(ctx context.Context, c *Call, args []string) error

// RunE returns a command's RunE: it loads the settings, runs do, and closes the session and the output.
func (f *Factory) RunE(do Action) CobraAction { return f.RunWith(FlagsOf, do) }

// WithArgs is RunE that stores the arguments in args before it runs do.
func (f *Factory) WithArgs(args *[]string, do func(ctx context.Context, c *Call) error) CobraAction {
	return f.RunE(func(ctx context.Context, c *Call, values []string) error {
		*args = values
		return do(ctx, c)
	})
}

// RunWith is RunE for a command that adjusts the flags that override settings.
func (f *Factory) RunWith(flags func(*cobra.Command) []config.Flag, do Action) CobraAction {
	return func(cmd *cobra.Command, args []string) (err error) {
		f.Started = true
		overrides := flags(cmd)
		s, err := f.App.Session(cmd.Context(), overrides)
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
		if err := spareReady(cmd, f.App.Sources(overrides)); err != nil {
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

// RunAlways is [Factory.RunE] for a command that also runs if the settings can't be loaded: the call then has default
// settings, and broken is the cause. An invalid flag is still an error.
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

// RunBare is [Factory.RunE] for a command that loads no settings, and so runs even if they are broken.
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

// noteSignal prints, when a signal arrives, how many requests may still finish. After stop it prints nothing.
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

// Preconfigure reads color and format of errors from the unparsed command line and the environment, for parse errors.
func (f *Factory) Preconfigure(args []string) {
	for _, name := range []string{"WAYBILL_API_KEY", "WAYBILL_WEBHOOK_SECRET", "PGPASSWORD"} {
		f.App.IO.Hide(f.App.Getenv(name)) // an argument may hold it by mistake
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
	_ = flags.Parse(args) // the command's own parser reports errors
	f.App.IO.Configure(term.Options{Color: *color, JSON: machine(*output) || *asJSON || *jq != ""})
}

func machine(output string) bool { return output == "json" || output == "jsonl" }
