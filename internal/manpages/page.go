package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/buildinfo"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
)

// page returns a command's page as a man(7) document. Text of the help is
// taken literally: nothing in it is markup.
func page(cmd *cobra.Command, build buildinfo.Info) string {
	cmd.InitDefaultHelpFlag()
	name := pageName(cmd)
	day, _, _ := strings.Cut(build.Date, "T") // of the build; empty leaves the place empty
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"%s\" \"waybill %s\" \"waybill manual\"\n", literal(strings.ToUpper(name)), literal(day), literal(build.Version))
	b.WriteString(".nh\n.ad l\n") // neither hyphens nor wide spaces in what one may type
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", literal(name), literal(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", literal(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	b.WriteString(prose(description(cmd)))
	b.WriteString(commands(cmd))
	b.WriteString(options(cmd))
	b.WriteString(exitStatus())
	b.WriteString(environment(cmd))
	b.WriteString(files())
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n" + unfilled(cmd.Example))
	}
	b.WriteString(seeAlso(cmd))
	return b.String()
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// shown reports whether a command has a page.
func shown(cmd *cobra.Command) bool {
	return cmd.IsAvailableCommand() && !cmd.IsAdditionalHelpTopicCommand()
}

func description(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// options lists a command's own flags. Those of every command stand on the first page
// only.
func options(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(".SH OPTIONS\n")
	writeFlags(&b, command.OwnFlags(cmd))
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".PP\nThe global flags are in\n.BR %s (1).\n", literal(pageName(cmd.Root())))
		return b.String()
	}
	b.WriteString(".SH GLOBAL FLAGS\nEvery command takes these flags.\n")
	writeFlags(&b, cmd.PersistentFlags())
	return b.String()
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	for _, s := range command.FlagSections(flags) {
		if s.Title != "" {
			fmt.Fprintf(b, ".SS %s\n", literal(s.Title))
		}
		for _, f := range s.Flags {
			value, help := command.FlagText(f)
			b.WriteString(".TP\n")
			if f.Shorthand != "" {
				fmt.Fprintf(b, "\\fB%s\\fR, ", literal("-"+f.Shorthand))
			}
			fmt.Fprintf(b, "\\fB%s\\fR", literal("--"+f.Name))
			if value != "" {
				fmt.Fprintf(b, " \\fI%s\\fR", literal(value))
			}
			b.WriteString("\n" + lines(help))
		}
	}
}

// exitStatus lists the exit codes.
func exitStatus() string {
	var b strings.Builder
	b.WriteString(".SH EXIT STATUS\n")
	for _, row := range command.Codes() {
		fmt.Fprintf(&b, ".TP\n.B %d\n%s", row.Code, lines(row.Meaning))
	}
	return b.String()
}

// environment lists the variables that set a command's own flags, and on the first page
// all others.
func environment(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(".SH ENVIRONMENT\n")
	before := b.Len()
	own := command.OwnFlags(cmd)
	for _, s := range config.Settings() {
		if f := own.Lookup(s.Flag); cmd.HasParent() && (f == nil || !command.IsSetting(f)) {
			continue
		}
		help := s.Help
		if s.Flag != "" {
			help += " (--" + s.Flag + ")"
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", literal(s.Env), lines(help))
	}
	if cmd.HasParent() {
		if b.Len() > before {
			b.WriteString(".PP\n")
		}
		fmt.Fprintf(&b, "The variables for the global flags are in\n.BR %s (1).\n", literal(pageName(cmd.Root())))
		return b.String()
	}
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s", literal(v.Name), lines(v.Help))
	}
	return b.String()
}

func files() string {
	var b strings.Builder
	b.WriteString(".SH FILES\n")
	for _, f := range [][2]string{
		{"~/.config/waybill/config.yaml", "your settings; below $XDG_CONFIG_HOME if that is set"},
		{config.ProjectFile, "settings of a project, in the current folder"},
		{"~/.local/share/waybill/waybill.db", "the store of runs, trackings and deliveries; below $XDG_DATA_HOME if that is set, in the system's own place on macOS and Windows"},
	} {
		fmt.Fprintf(&b, ".TP\n.I %s\n%s", literal(f[0]), lines(f[1]))
	}
	return b.String()
}

func commands(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if !shown(c) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString(".SH COMMANDS\n")
		}
		fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s", literal(pageName(c)), lines(c.Short))
	}
	return b.String()
}

// seeAlso names the page above, those beside it, and the topics of help.
func seeAlso(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(".SH SEE ALSO\n")
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".BR %s (1),\n", literal(pageName(cmd.Parent())))
		for _, c := range cmd.Parent().Commands() {
			if c != cmd && shown(c) && cmd.Parent().HasParent() {
				fmt.Fprintf(&b, ".BR %s (1),\n", literal(pageName(c)))
			}
		}
	}
	b.WriteString(lines("`waybill help` for commands and topics"))
	return b.String()
}

// indented matches a paragraph with an indented line.
var indented = regexp.MustCompile(`(?m)^[ \t]`)

// prose returns text in paragraphs. One with an indented line is shown as it
// stands: it is a list or an example.
func prose(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if indented.MatchString(paragraph) {
			b.WriteString(unfilled(paragraph))
		} else {
			b.WriteString(lines(paragraph))
		}
	}
	return b.String()
}

// unfilled returns text that keeps its lines and its spaces.
func unfilled(text string) string { return ".nf\n" + lines(strings.Trim(text, "\n")) + ".fi\n" }

// lines returns text line by line, each as it reads and none as a request.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(literal(line) + "\n")
	}
	return b.String()
}

// literal returns text so that a formatter shows it as it reads: man would
// otherwise take backslashes and leading dots as its own, and make typographic
// signs out of hyphens, quotes and accents that one has to type. Not every formatter
// reads more than ASCII.
func literal(s string) string {
	var b strings.Builder
	for _, r := range escapes.Replace(s) {
		if r > unicode.MaxASCII {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		} else {
			b.WriteRune(r)
		}
	}
	if strings.HasPrefix(s, ".") {
		return `\&` + b.String()
	}
	return b.String()
}

var escapes = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)
