package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// widestName is the width of the longest name that help shows on one line with its text, less on a narrow terminal.
const widestName = 28

const globalPointer = "Global flags: waybill help flags\n"

func helpText(cmd *cobra.Command, width int) string {
	p := page{width: width}
	p.WriteString(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")) + "\n\nUsage:\n  " + cmd.UseLine() + "\n")
	p.commands(cmd)
	if !cmd.HasParent() {
		p.WriteString("\nHelp topics:\n")
		p.topics()
	}
	if cmd.HasExample() {
		p.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	p.flags("Flags", command.OwnFlags(cmd))
	p.WriteString("\n" + globalPointer)
	if cmd.HasAvailableSubCommands() {
		p.WriteString("Help for a command: " + cmd.CommandPath() + " COMMAND --help\n")
	}
	return p.String()
}

// page is help for a terminal of some width, 0 for none.
type page struct {
	strings.Builder

	width int
}

func (p *page) commands(cmd *cobra.Command) {
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "Commands:"}) {
		var rows [][2]string
		for _, c := range cmd.Commands() {
			if c.GroupID == g.ID && (c.IsAvailableCommand() || c.Name() == "help") {
				rows = append(rows, [2]string{c.Name(), c.Short})
			}
		}
		if len(rows) > 0 {
			p.WriteString("\n" + g.Title + "\n")
			p.names(rows)
		}
	}
}

func (p *page) topics() {
	var rows [][2]string
	for _, t := range topics() {
		rows = append(rows, [2]string{t.name, t.short})
	}
	p.names(rows)
}

// flags lists flags, section by section. title is that of flags without a section.
func (p *page) flags(title string, flags *pflag.FlagSet) {
	for _, s := range command.FlagSections(flags) {
		if s.AsIn != "" {
			p.WriteString("\n" + s.Title + ": as in `" + s.AsIn + "`\n")
			continue
		}
		var rows [][2]string
		for _, f := range s.Flags {
			value, help := command.FlagText(f)
			short := "    "
			if f.Shorthand != "" {
				short = "-" + f.Shorthand + ", "
			}
			rows = append(rows,
				[2]string{strings.Replace(strings.TrimRight(short+"--"+f.Name+" "+value, " "), " [=", "[=", 1), help})
		}
		p.WriteString("\n" + cmp.Or(s.Title, title) + ":\n")
		p.names(rows)
	}
}

// names writes names with a text each, in two columns: below a name that is too wide.
func (p *page) names(rows [][2]string) {
	widest, column := min(widestName, cmp.Or(p.width, pageWidth)/2-6), 0
	for _, r := range rows {
		if len(r[0]) <= widest {
			column = max(column, len(r[0]))
		}
	}
	for _, r := range rows {
		name := r[0]
		if len(name) > column {
			p.WriteString("  " + name + "\n")
			name = ""
		}
		fmt.Fprintf(p, "  %-*s  %s\n", column, name, r[1])
	}
}
