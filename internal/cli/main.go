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

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/complete"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/term"
)

// Main runs the program's command line and returns its exit status.
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
	done := make(chan struct{})
	defer close(done)
	go func() {
		for stop := stopSoft; ; stop = stopHard {
			select {
			case s := <-signals:
				stop(&command.SignalError{Signal: s})
			case <-done:
				return
			}
		}
	}()
	a := &app.App{IO: term.System(), Sources: config.FromOS, Getenv: os.Getenv, Keyring: keyring.System{}, Hard: hard}
	return Run(soft, a, os.Args[1:])
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
