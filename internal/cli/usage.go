package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// widestName is the width up to which help shows a name on one line with its text; less on a narrow terminal.
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

// page is help text for a terminal of that width, or 0 for no terminal.
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

// flags lists flags by section. title is the title of flags without a section.
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

// names writes names and texts in two columns. The text of a name that is too wide goes below it.
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

const (
	// narrowest is the width below which help is not wrapped, since it would be unreadable.
	narrowest = 40
	// pageWidth is the width of help that does not go to a terminal, such as for a pager.
	pageWidth = 80
)

// wrapText wraps lines wider than width between words and refills their paragraph or list item. Continuation lines
// align with the text of the first line, after its first wide gap or its indent. Examples stay as they are, for
// copying. A width of 0 means no terminal.
func wrapText(text string, width int) string {
	width = cmp.Or(width, pageWidth)
	if width < narrowest {
		return text
	}
	var b strings.Builder
	examples := false
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		n, indent := 1, textIndent(line)
		switch {
		case prose(line):
			examples = line == "Examples:"
			n = filled(lines[i:], width, prose)
		case line == "":
			examples = false
		case !examples && indent > leading(line): // a list item
			n = filled(lines[i:], width, func(s string) bool { return leading(s) == indent && textIndent(s) == indent })
		}
		for _, more := range lines[i+1 : i+n] {
			line += " " + strings.TrimLeft(more, " ")
		}
		i += n - 1
		if examples {
			b.WriteString(line + "\n")
			continue
		}
		wrapLine(&b, line, width)
	}
	return b.String()
}

// prose reports whether a line continues a paragraph.
func prose(line string) bool { return line != "" && line[0] != ' ' }

// filled returns the number of lines to refill together: the first and its continuations if one of them is too wide,
// else 1.
func filled(lines []string, width int, continues func(string) bool) int {
	n, wide := 1, term.DisplayWidth(lines[0]) > width
	for n < len(lines) && continues(lines[n]) {
		wide = wide || term.DisplayWidth(lines[n]) > width
		n++
	}
	if !wide {
		return 1
	}
	return n
}

func wrapLine(b *strings.Builder, line string, width int) {
	indent := textIndent(line)
	if indent > width/2 {
		indent = width / 4
	}
	for term.DisplayWidth(line) > width {
		end := strings.LastIndexByte(term.Truncate(line, width+1), ' ')
		if end <= indent || strings.TrimSpace(line[:end]) == "" {
			break // one long word
		}
		b.WriteString(strings.TrimRight(line[:end], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[end:], " ")
	}
	b.WriteString(line + "\n")
}

// textIndent returns the column where the text of a line begins: after a name and two or more spaces, or its indent.
func textIndent(line string) int {
	start := leading(line)
	if start == 0 {
		return 0
	}
	if gap := strings.LastIndex(line, "  "); gap >= start {
		return gap + 2
	}
	return start
}

func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
