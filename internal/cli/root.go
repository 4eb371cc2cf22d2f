// Package cli has the root command, help and Main. The commands below the root are in
// packages of their own.
package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/check"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
	"github.com/waybill-cli/waybill/internal/cli/create"
	"github.com/waybill-cli/waybill/internal/cli/doctor"
	"github.com/waybill-cli/waybill/internal/cli/events"
	"github.com/waybill-cli/waybill/internal/cli/inspect"
	"github.com/waybill-cli/waybill/internal/cli/listen"
	"github.com/waybill-cli/waybill/internal/cli/observed"
	"github.com/waybill-cli/waybill/internal/cli/request"
	"github.com/waybill-cli/waybill/internal/cli/runs"
	"github.com/waybill-cli/waybill/internal/cli/setup"
	"github.com/waybill-cli/waybill/internal/cli/signature"
	"github.com/waybill-cli/waybill/internal/cli/storage"
	"github.com/waybill-cli/waybill/internal/cli/track"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// Groups under which help lists commands.
const (
	groupOps  = "ops"
	groupHook = "webhook"
	groupRest = "rest"
)

// Tree returns the whole command tree for documentation. Use [Run] to run it.
func Tree(a *app.App) *cobra.Command { return newRoot((&command.Factory{App: a})) }

func newRoot(f *command.Factory) *cobra.Command {
	root := &cobra.Command{
		Use:   "waybill",
		Short: "Create, watch and receive shipment trackings",
		Long: `waybill creates trackings in bulk, shows their status, waits for delivery and
receives the service's webhooks.`,
		Example: command.Example("waybill demo", "waybill create orders.csv --wait",
			"waybill listen --forward-to http://localhost:3000/hook"),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(
		&cobra.Group{ID: groupOps, Title: "Create and watch trackings:"},
		&cobra.Group{ID: groupHook, Title: "Receive and inspect webhooks:"},
		&cobra.Group{ID: groupRest, Title: "Set up and try out:"},
	)
	root.AddCommand(commands(f)...)
	root.SetOut(f.App.IO.Out)
	root.SetErr(f.App.IO.Err)
	command.GlobalFlags(root.PersistentFlags())
	root.SetHelpCommand(newHelp(f))
	root.SetHelpCommandGroupID(groupRest)
	root.InitDefaultHelpCmd()
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolP("version", "V", false, "print the version")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		width := f.App.IO.Out.Width()
		_, _ = f.App.IO.Out.Write([]byte(wrapText(helpText(cmd, width), width))) // help can't report errors
	})
	strict(root)
	if completing(f) {
		complete.Install(root, f.App)
	}
	group := root.RunE
	version := f.RunE(setup.PrintVersion)
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if v, _ := cmd.Flags().GetBool("version"); v {
			return version(cmd, args)
		}
		return group(cmd, args)
	}
	return root
}

func completing(f *command.Factory) bool {
	return len(f.Args) > 0 && f.Args[0] == cobra.ShellCompRequestCmd
}

// commands returns only the command that the first argument names, since creating all takes most of a short command's
// time, or else all commands below the root.
func commands(f *command.Factory) []*cobra.Command {
	makers := []struct {
		group, name string
		make        func(*command.Factory) *cobra.Command
	}{
		{groupOps, "create", create.New},
		{groupOps, "check", check.New},
		{groupOps, "runs", runs.New},
		{groupOps, "show", track.NewShow},
		{groupOps, "wait", track.NewWait},
		{groupOps, "list", track.NewList},
		{groupOps, "stats", track.NewStats},
		{groupOps, "report", track.NewReport},
		{groupHook, "listen", listen.New},
		{groupHook, "inspect", inspect.New},
		{groupHook, "events", events.New},
		{groupHook, "signature", signature.New},
		{groupRest, "sandbox", setup.NewSandbox},
		{groupRest, "demo", setup.NewDemo},
		{groupRest, "observed", observed.New},
		{groupRest, "api", request.New},
		{groupRest, "config", setup.NewConfig},
		{groupRest, "init", setup.NewInit},
		{groupRest, "auth", setup.NewAuth},
		{groupRest, "doctor", doctor.New},
		{groupRest, "store", storage.New},
		{groupRest, "version", setup.NewVersion},
		{groupRest, "completion", complete.New},
	}
	args := f.Args
	if completing(f) {
		args = args[1:]
	}
	for i, m := range makers {
		if len(args) > 0 && args[0] == m.name {
			makers = makers[i : i+1]
			break
		}
	}
	made := make([]*cobra.Command, len(makers))
	for i, m := range makers {
		made[i] = m.make(f)
		made[i].GroupID = m.group
	}
	return made
}

// strict makes groups without an action print help and fail on unknown words, and commands without arguments refuse
// them.
func strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.Flags().SortFlags = false
	for _, c := range cmd.Commands() {
		strict(c)
	}
	if cmd.HasSubCommands() && cmd.Run == nil && cmd.RunE == nil {
		if cmd.Use == cmd.Name() {
			cmd.Use += " COMMAND"
		}
		cmd.Args = unknownWord
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	} else if len(command.Arguments(cmd)) == 0 {
		cmd.Args = noArguments
	}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "run `" + cmd.CommandPath() + " --help` for its flags"
	if now := replacement(cmd, args[0]); now != "" {
		hint = now
	}
	if _, err := os.Stat(args[0]); err == nil && cmd.Flags().Lookup("file") != nil {
		hint = "did you mean " + shell.Word("--file="+args[0]) + "?"
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.String() == f.NoOptDefVal {
			hint = "did you mean " + shell.Word("--"+f.Name+"="+args[0]) + "?"
		}
	})
	return command.Usagef(hint, "%s takes no arguments: %s", strings.TrimPrefix(cmd.CommandPath(), "waybill "),
		command.Quoted(args[0]))
}

func unknownWord(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "run `" + cmd.CommandPath() + " --help` for what there is"
	if now := replacement(cmd, args[0]); now != "" {
		hint = now
	} else if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean `" + cmd.CommandPath() + " " + cmp.Or(config.Nearest(args[0], near), near[0]) + "`?"
	}
	return command.Usagef(hint, "unknown command %q for %q", args[0], cmd.CommandPath())
}

// stopGrace is the time left after a second signal to record outcomes of requests and restore the terminal.
const stopGrace = 3 * time.Second

// Main runs the program's command line and returns its exit status. The first signal lets requests under way finish.
// The second cancels them and soon ends the program even if it is blocked, such as on a pipe that nobody reads.
func Main() command.Code {
	hard, stopHard := context.WithCancelCause(context.Background())
	soft, stopSoft := context.WithCancelCause(context.Background())
	defer stopHard(nil)
	defer stopSoft(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A closed pipe makes a write fail, and does not kill the program in the middle of its work.
	signal.Ignore(syscall.SIGPIPE)
	a := &app.App{IO: term.System(), Sources: config.FromOS, Getenv: os.Getenv, Keyring: keyring.System{}, Hard: hard}
	ended := make(chan command.Code, 1)
	go func() { ended <- Run(soft, a, os.Args[1:]) }()
	var last *command.SignalError
	var grace <-chan time.Time
	for stop := stopSoft; ; stop = stopHard {
		select {
		case s := <-signals:
			if last != nil && grace == nil {
				grace = time.After(stopGrace)
			}
			last = &command.SignalError{Signal: s}
			stop(last)
		case code := <-ended:
			return code
		case <-grace:
			return last.Code()
		}
	}
}

// joinSortWord joins --sort with a value that starts with a hyphen while completing: cobra would take it for a flag.
func joinSortWord(args []string) []string {
	end := len(args) - 2
	if end < 1 || args[0] != cobra.ShellCompRequestCmd || args[end] != "--sort" || !strings.HasPrefix(args[end+1], "-") {
		return args
	}
	return append(slices.Clone(args[:end]), "--sort="+args[end+1])
}

// Run runs one command line and returns its exit status. It writes any error to a.IO.Err, once.
func Run(ctx context.Context, a *app.App, args []string) command.Code {
	if len(args) > 0 && args[0] == complete.BashCommand {
		return complete.Bash(ctx, a, args[1:], Run)
	}
	f := &command.Factory{App: a, Args: args, Exec: Run}
	root := newRoot(f) //nolint:contextcheck // commands get their context from cobra
	root.SetArgs(joinSortWord(args))
	f.Preconfigure(args)
	defer func() { _ = a.IO.Close() }()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !f.Started && !command.As[*command.UsageError](err) {
		// An error before a command starts is a usage error.
		err = &command.UsageError{Err: err, Hint: "run `" + cmd.CommandPath() + " --help` for how to call it"}
	}
	return f.Finish(ctx, err)
}
