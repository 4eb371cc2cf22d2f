// Package cli is the command line: its root, help and main. Commands are words,
// flags and help; what they do is in the packages they ask.
package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/term"
)

// stopGrace is how long what a second signal stops may take to end by itself: to record
// what requests came to, and to leave the terminal as it was.
const stopGrace = 3 * time.Second

// Main runs the program's command line and returns its exit status. The first signal lets
// requests under way end, the second ends them, and soon the program, whatever it does:
// a write to a pipe that nobody reads knows of no signal.
func Main() command.Code {
	hard, stopHard := context.WithCancelCause(context.Background())
	soft, stopSoft := context.WithCancelCause(context.Background())
	defer stopHard(nil)
	defer stopSoft(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// A reader that closes the pipe is an error of a write, not the end of the
	// program in the middle of its work.
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

// joinSortWord joins --sort and a word behind it that begins with a hyphen where the
// shell completes it: cobra takes such a word for a flag.
func joinSortWord(args []string) []string {
	end := len(args) - 2
	if end < 1 || args[0] != cobra.ShellCompRequestCmd || args[end] != "--sort" || !strings.HasPrefix(args[end+1], "-") {
		return args
	}
	return append(slices.Clone(args[:end]), "--sort="+args[end+1])
}

// Run runs one command line and returns its exit status. It writes any error to
// a.IO.Err, once.
func Run(ctx context.Context, a *app.App, args []string) command.Code {
	if len(args) > 0 && args[0] == complete.BashCommand {
		return complete.Bash(ctx, a, args[1:], Run)
	}
	f := &command.Factory{App: a, Args: args, Exec: Run}
	root := newRoot(f) //nolint:contextcheck // commands get theirs from cobra
	root.SetArgs(joinSortWord(args))
	f.Preconfigure(args)
	defer func() { _ = a.IO.Close() }()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !f.Started {
		err = f.AsUsage(cmd, err) // whatever stops a command before it starts is how it was called
	}
	return f.Finish(ctx, err)
}
