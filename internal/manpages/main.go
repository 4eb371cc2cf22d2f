// Command manpages writes the manual pages of waybill, one a command, into the folder named by its argument.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli"
	"github.com/waybill-cli/waybill/internal/cli/command"
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
	root := cli.Tree(&app.App{IO: nowhere})
	prepare(root)
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Usage = markdown(f.Usage) })
	root.Long += exitStatus()
	build := buildinfo.Read()
	header := &doc.GenManHeader{Section: "1", Source: "waybill " + build.Version, Manual: "waybill manual"}
	if date, err := time.Parse(time.RFC3339, build.Date); err == nil {
		header.Date = &date
	}
	return doc.GenManTree(root, header, args[0])
}

// prepare converts the texts of a command and its subcommands to the Markdown that the library expects.
func prepare(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Short = markdown(cmd.Short)
	cmd.Long = prose(cmd.Long)
	cmd.Example = strings.Trim(cmd.Example, "\n")
	cmd.InitDefaultHelpFlag()
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) { f.Usage = markdown(f.Usage) })
	for _, c := range cmd.Commands() {
		prepare(c)
	}
}

var indented = regexp.MustCompile(`(?m)^[ \t]`)

// prose returns text as Markdown. A paragraph with an indented line (a list, an example) becomes a code block.
func prose(text string) string {
	paragraphs := strings.Split(strings.Trim(text, "\n"), "\n\n")
	for i, p := range paragraphs {
		if indented.MatchString(p) {
			paragraphs[i] = "```\n" + p + "\n```"
		} else {
			paragraphs[i] = markdown(p)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// markdown returns text so that it reads as it stands, but for names in backquotes.
func markdown(text string) string { return marks.Replace(text) }

var marks = strings.NewReplacer(
	`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "#", `\#`, "|", `\|`)

func exitStatus() string {
	var b strings.Builder
	b.WriteString("\n\n# EXIT STATUS\n")
	for _, row := range command.Codes() {
		fmt.Fprintf(&b, "**%d**\n\t%s\n\n", row.Code, markdown(row.Meaning))
	}
	return b.String()
}
