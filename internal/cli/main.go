// Package cli is the command line: its root, help and main. Commands are words,
// flags and help; what they do is in the packages they ask.
package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
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
	a := &app.App{IO: term.System(), Sources: config.FromOS, Getenv: os.Getenv, Hard: hard}
	return Run(soft, a, os.Args[1:])
}

// Run runs one command line and returns its exit status. It writes any error to
// a.IO.Err, once.
func Run(ctx context.Context, a *app.App, args []string) command.Code {
	f := &command.Factory{App: a, Args: args, Exec: Run}
	root := newRoot(f) //nolint:contextcheck // commands get theirs from cobra
	root.SetArgs(args)
	f.Preconfigure(args)
	defer func() { _ = a.IO.Close() }()
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !f.Started {
		err = f.AsUsage(cmd, err) // whatever stops a command before it starts is how it was called
	}
	return f.Finish(ctx, err)
}
