// Command manpages writes the manual pages of waybill, one a command, into the
// folder named by its only argument.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/term"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "manpages: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("name the folder to write to")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil {
		return err
	}
	nowhere := term.New(strings.NewReader(""), io.Discard, io.Discard, term.Facts{})
	return write(args[0], cli.Tree(&app.App{IO: nowhere}), buildinfo.Read())
}

// write writes the pages of a command and of all below it. The library that
// does this for cobra takes help as Markdown, and loses words like <referId>.
func write(dir string, cmd *cobra.Command, build buildinfo.Info) error {
	for _, c := range cmd.Commands() {
		if shown(c) {
			if err := write(dir, c, build); err != nil {
				return err
			}
		}
	}
	file := filepath.Join(dir, pageName(cmd)+".1")
	return os.WriteFile(file, []byte(page(cmd, build)), 0o644)
}
