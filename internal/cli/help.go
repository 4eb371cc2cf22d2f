package cli

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/carriers"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

// topicTexts has a text file for each topic. Headings are in capitals.
//
//go:embed topics
var topicTexts embed.FS

type topic struct {
	name, short string
	list        func(p *page, root *cobra.Command) // writes the generated part after the text
}

func topics() []topic {
	return []topic{
		{"environment", "Environment variables and configuration files", (*page).settings},
		{"exit-codes", "Exit codes of waybill", (*page).exitCodes},
		{"flags", "Flags that every command takes", (*page).globalFlags},
		{"input", "Files that create and other commands read", (*page).carriers},
		{"output", "Formats and columns of results", (*page).columns},
		{"rows", "States of rows: accepted, rejected, unknown", func(*page, *cobra.Command) {}},
	}
}

func (t topic) page(root *cobra.Command, width int) string {
	text, _ := topicTexts.ReadFile("topics/" + t.name + ".txt") // each topic has one
	p := page{width: width}
	p.Write(text)
	t.list(&p, root)
	return p.String()
}

func newHelp(f *command.Factory) *cobra.Command {
	all := topics()
	names := command.Texts(len(all), func(i int) string { return all[i].name })
	return &cobra.Command{
		Use:   "help [COMMAND|TOPIC]",
		Short: "Help about a command or a topic",
		Long:  "Topics: " + strings.Join(names, ", ") + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.Started = true
			if len(args) == 1 && slices.Contains(names, args[0]) {
				width := f.App.IO.Out.Width()
				text := all[slices.Index(names, args[0])].page(cmd.Root(), width)
				_, err := f.App.IO.Out.Write([]byte(wrapText(text, width)))
				return err
			}
			found, rest, err := cmd.Root().Find(args)
			if err == nil {
				err = unknownWord(found, rest)
			}
			if err != nil {
				return err
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var found []string
			if parent, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range parent.Commands() {
					if c.IsAvailableCommand() {
						found = append(found, c.Name()+"\t"+c.Short)
					}
				}
			}
			for _, t := range all {
				if len(args) == 0 {
					found = append(found, t.name+"\t"+t.short)
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func (p *page) globalFlags(*cobra.Command) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.GlobalFlags(flags)
	p.flags("", flags)
}

func (p *page) exitCodes(*cobra.Command) {
	for _, row := range command.Codes() {
		fmt.Fprintf(p, "  %3d  %-12s %s\n", row.Code, row.Word, row.Meaning)
	}
	order := command.Precedence()
	codes := command.Texts(len(order), func(i int) string { return strconv.Itoa(int(order[i])) })
	p.WriteString("\nIf several apply, the first one in this list wins:\n  " + strings.Join(codes, ", ") + "\n")
}

func (p *page) carriers(*cobra.Command) {
	p.names(carriers.ByCarrier(func(f carriers.Form) bool { return f.Checked }))
	p.WriteString("\nThese forms have no check digit with a published rule:\n\n")
	p.names(carriers.ByCarrier(func(f carriers.Form) bool { return !f.Checked }))
}

func (p *page) columns(root *cobra.Command) {
	command.Walk(root, func(cmd *cobra.Command) {
		if names := command.ColumnNames(cmd); len(names) > 0 {
			fmt.Fprintf(p, "\n  %s\n      %s\n", cmd.CommandPath(), strings.Join(names, ", "))
		}
	})
}

func (p *page) settings(*cobra.Command) {
	for _, s := range config.Settings() {
		fmt.Fprintf(p, "  %s\n", s.Env)
		line := s.Help
		if s.Default != "" {
			line += " (default " + s.Default + ")"
		}
		fmt.Fprintf(p, "      %s\n      key %s", line, s.Key)
		if s.Flag != "" {
			fmt.Fprintf(p, ", flag --%s", s.Flag)
		}
		if s.Why != "" {
			p.WriteString(", not in .waybill.yaml")
		}
		p.WriteString("\n")
	}
	p.WriteString("\nOTHER VARIABLES\n\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(p, "  %s\n      %s\n", v.Name, v.Help)
	}
}
