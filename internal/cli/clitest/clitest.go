// Package clitest helps tests to call the run functions of commands.
package clitest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// Call returns a call of a command with these settings, written as in the
// environment, and a home of its own; and what it prints on standard output
// and standard error. The call is closed at the end of the test.
func Call(t testing.TB, env ...string) (c *command.Call, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	home := t.TempDir()
	f := &command.Factory{App: &app.App{
		IO:     term.New(strings.NewReader(""), stdout, stderr, term.Facts{}),
		Getenv: func(string) string { return "" },
		Sources: func(flags []config.Flag) config.Sources {
			return config.Sources{Flags: flags, Env: env, WorkDir: home, Home: home}
		},
	}}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	command.GlobalFlags(cmd.Flags())
	s, err := f.App.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cmd.Flags().Set("output", s.Config.Output); err != nil {
		t.Fatal(err)
	}
	out, err := f.Output(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return &command.Call{Session: s, Out: out, Cmd: cmd, Getenv: f.App.Getenv}, stdout, stderr
}
