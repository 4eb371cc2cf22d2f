package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/buildinfo"
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
	b.WriteString(options(cmd))
	if cmd.HasExample() {
		b.WriteString(".SH EXAMPLES\n" + verbatim(cmd.Example))
	}
	b.WriteString(commands(cmd))
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

// options lists a command's own flags; those of every command stand on the
// first page only.
func options(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString(".SH OPTIONS\n")
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(&b, "\\fB%s\\fR, ", literal("-"+f.Shorthand))
		}
		fmt.Fprintf(&b, "\\fB%s\\fR", literal("--"+f.Name))
		if f.NoOptDefVal != "" && value != "" {
			fmt.Fprintf(&b, "[=\\fI%s\\fR]", literal(value))
		} else if value != "" {
			fmt.Fprintf(&b, " \\fI%s\\fR", literal(value))
		}
		b.WriteString("\n" + lines(usage))
	})
	if cmd.HasParent() {
		root := pageName(cmd.Root())
		fmt.Fprintf(&b, ".PP\nThe options of\n.BR %s (1)\nare understood too.\n", literal(root))
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

func seeAlso(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return fmt.Sprintf(".SH SEE ALSO\n.BR %s (1)\n", literal(pageName(cmd.Parent())))
}

// prose returns text in paragraphs. One with an indented line is shown as it
// stands: it is a list or an example.
func prose(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		switch {
		case strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n "):
			b.WriteString(verbatim(paragraph))
		case i > 0:
			b.WriteString(".PP\n" + lines(paragraph))
		default:
			b.WriteString(lines(paragraph))
		}
	}
	return b.String()
}

// verbatim returns text that keeps its lines and its spaces.
func verbatim(text string) string { return ".PP\n.nf\n" + lines(strings.Trim(text, "\n")) + ".fi\n" }

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
// signs out of hyphens, quotes and accents that one has to type.
func literal(s string) string {
	s = escapes.Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

var escapes = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, `"`, `\(dq`)
