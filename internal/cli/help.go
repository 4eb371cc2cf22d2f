package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

type topic struct {
	name, short string
	text        func(root *cobra.Command, width int) string // width of the terminal, 0 for none
}

func topics() []topic {
	fixed := func(text string) func(*cobra.Command, int) string {
		return func(*cobra.Command, int) string { return text }
	}
	return []topic{
		{"environment", "Environment variables and configuration files", func(*cobra.Command, int) string { return environmentPage() }},
		{"exit-codes", "Exit codes of waybill", func(*cobra.Command, int) string { return exitCodesPage() }},
		{"flags", "Flags that every command takes", func(_ *cobra.Command, width int) string { return flagsPage(width) }},
		{"input", "Files that create and other commands read", fixed(inputPage)},
		{"output", "Formats and columns of results", func(root *cobra.Command, _ int) string { return outputPage(root) }},
		{"rows", "States of rows: accepted, rejected, unknown", fixed(rowsPage)},
	}
}

func newHelp(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help about a command or a topic",
		Long:  "Topics: " + topicNames() + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Started = true
			if len(args) == 1 {
				for _, t := range topics() {
					if t.name == args[0] {
						width := f.App.IO.Out.Width()
						_, err := f.App.IO.Out.Write([]byte(wrapText(t.text(cmd.Root(), width), width)))
						return err
					}
				}
			}
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 || found == nil {
				return command.Usagef(helpHint(cmd.Root(), args), "no help for %s", command.Quoted(strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			parent, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range parent.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			for _, t := range topics() {
				if len(args) == 0 {
					names = append(names, t.name+"\t"+t.short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func helpHint(root *cobra.Command, args []string) string {
	known := strings.Split(topicNames(), ", ")
	group := root
	for i, word := range args {
		for _, c := range group.Commands() {
			known = append(known, c.Name())
		}
		found, _, err := group.Find(args[i : i+1])
		if err != nil || found == group {
			if near := config.Nearest(word, known); near != "" {
				return "did you mean `waybill help " + strings.Join(append(slices.Clone(args[:i]), near), " ") + "`?"
			}
			break
		}
		group, known = found, nil
	}
	if group != root && group.HasSubCommands() {
		return "commands: `" + group.CommandPath() + " --help`"
	}
	return "commands: `waybill --help`; topics: " + topicNames()
}

func topicNames() string {
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

func flagsPage(width int) string {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.GlobalFlags(flags)
	p := page{width: width}
	p.WriteString("Every command takes these flags. Most are settings too: an environment variable\nor a line in a configuration file sets them for good. See \"waybill help\nenvironment\".\n")
	p.flags("", flags)
	return p.String()
}

func exitCodesPage() string {
	var b strings.Builder
	b.WriteString("waybill ends with one of these codes. In JSON the error has the word as its `code`.\n\n")
	for _, row := range command.Codes() {
		fmt.Fprintf(&b, "  %3d  %-12s %s\n", row.Code, row.Word, row.Meaning)
	}
	b.WriteString("\nIf several apply, the first one in this list wins:\n  ")
	for i, c := range command.Precedence() {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, int(c))
	}
	b.WriteString("\n")
	return b.String()
}

func outputPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(outputText)
	command.Walk(root, func(cmd *cobra.Command) {
		if names := command.ColumnNames(cmd); len(names) > 0 {
			fmt.Fprintf(&b, "\n  %s\n      %s\n", cmd.CommandPath(), strings.Join(names, ", "))
		}
	})
	return b.String()
}

func environmentPage() string {
	var b strings.Builder
	b.WriteString(environmentText)
	for _, s := range config.Settings() {
		fmt.Fprintf(&b, "  %s\n", s.Env)
		line := s.Help
		if s.Default != "" {
			line += " (default " + s.Default + ")"
		}
		fmt.Fprintf(&b, "      %s\n      key %s", line, s.Key)
		if s.Flag != "" {
			fmt.Fprintf(&b, ", flag --%s", s.Flag)
		}
		if s.Why != "" {
			b.WriteString(", not in .waybill.yaml")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nOTHER VARIABLES\n\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, "  %s\n      %s\n", v.Name, v.Help)
	}
	return b.String()
}
