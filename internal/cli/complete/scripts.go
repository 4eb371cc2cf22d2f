package complete

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// scripts holds the script of each shell, and in NAME.txt how to load it.
//
//go:embed scripts
var scripts embed.FS

// Shell is a shell with a completion script.
type Shell struct{ Name, file string }

// Shells returns all shells with a script.
func Shells() []Shell {
	return []Shell{
		{"bash", "waybill.bash"}, {"zsh", "waybill.zsh"}, {"fish", "waybill.fish"}, {"powershell", "waybill.ps1"},
	}
}

// New returns the command completion.
func New(*command.Factory) *cobra.Command {
	shells := Shells()
	names := make([]string, len(shells))
	var long strings.Builder
	long.WriteString("Print the script that makes a shell complete commands, flags and their values.")
	for i, s := range shells {
		names[i] = s.Name
		help, _ := scripts.ReadFile("scripts/" + s.Name + ".txt") // embedded
		long.WriteString("\n\n" + strings.ToUpper(s.Name) + "\n\n" + strings.TrimSuffix(string(help), "\n"))
	}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Print a script that makes the shell complete commands",
		Long:      long.String(),
		Example:   command.Example("waybill completion bash", "waybill completion zsh"),
		ValidArgs: names,
		Args:      command.Exactly(1, "one SHELL: "+command.Or(names)),
		RunE: func(cmd *cobra.Command, args []string) error {
			i := slices.Index(names, args[0])
			if i < 0 {
				return command.Usagef("choose "+command.Or(names), "no script for the shell %s", command.Quoted(args[0]))
			}
			script, err := scripts.ReadFile("scripts/" + shells[i].file)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(script)
			}
			return err
		},
	}
}

// BashCommand is the command that the bash script calls, with COMP_TYPE, the terminal's width, the line typed so far,
// and the part of it that bash replaces.
const BashCommand = "__complete_bash"

const leastAbout = 8

// Bash prints a line of options for bash, then the escaped replacements for the last of args. run runs a command line.
func Bash(
	ctx context.Context, a *app.App, args []string, run func(context.Context, *app.App, []string) command.Code,
) command.Code {
	if len(args) != 4 {
		return command.Usage
	}
	words := shell.Parse(args[2])
	word := words[len(words)-1]
	if len(words) < 2 || !strings.HasSuffix(word.Raw, args[3]) {
		return command.OK
	}
	request := command.Texts(len(words), func(i int) string { return words[i].Text })
	request[0] = cobra.ShellCompRequestCmd
	var out strings.Builder
	asked := *a
	asked.IO = term.New(strings.NewReader(""), &out, io.Discard, term.Facts{})
	if code := run(ctx, &asked, request); code != command.OK {
		return code
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	n, _ := strconv.Atoi(strings.TrimPrefix(lines[len(lines)-1], ":"))
	b := bashReply{word: word, replaced: args[3], lines: lines[:len(lines)-1], directive: cobra.ShellCompDirective(n)}
	b.home = a.Getenv("HOME")
	width, _ := strconv.Atoi(args[1])
	listed := slices.Contains([]string{"33", "63", "64"}, args[0])
	_, _ = io.WriteString(a.IO.Out, b.text(listed, width)) // completion reports no error
	return command.OK
}

type bashReply struct {
	word      shell.Typed
	replaced  string   // the end of the word that bash replaces
	lines     []string // value, tab, description
	directive cobra.ShellCompDirective
	home      string
}

// text returns the reply. list says that bash lists the values.
func (b *bashReply) text(list bool, width int) string {
	before := shell.Read(strings.TrimSuffix(b.word.Raw, b.replaced))
	start := ""
	if flag, _, ok := strings.Cut(b.word.Text, "="); ok && strings.HasPrefix(flag, "-") {
		start = flag + "="
	}
	if b.directive&cobra.ShellCompDirectiveFilterFileExt != 0 {
		b.lines = b.files(strings.TrimPrefix(b.word.Text, start))
	}
	var values, abouts []string
	longest := 0
	for _, line := range b.lines {
		value, about, _ := strings.Cut(line, "\t")
		value, ok := b.escape(start+value, before)
		if ok && !slices.Contains(values, value) {
			values, abouts = append(values, value), append(abouts, about)
			longest = max(longest, term.DisplayWidth(value))
		}
	}
	var options strings.Builder
	for _, o := range []struct {
		bit  cobra.ShellCompDirective
		name string
	}{
		{cobra.ShellCompDirectiveNoSpace, "nospace "},
		{cobra.ShellCompDirectiveKeepOrder, "nosort "},
		{cobra.ShellCompDirectiveNoFileComp, "nofiles "},
	} {
		if b.directive&o.bit != 0 {
			options.WriteString(o.name)
		}
	}
	// Within quotes, a description could become part of the common prefix that bash inserts.
	if room := width - longest - 4; list && len(values) > 1 && before.Open == 0 && b.word.Open == 0 && room >= leastAbout {
		for i, about := range abouts {
			if about != "" {
				values[i] = fmt.Sprintf("%s%*s  (%s)", values[i], longest-term.DisplayWidth(values[i]), "",
					term.Truncate(about, room))
			}
		}
	}
	return strings.Join(append([]string{options.String()}, values...), "\n") + "\n"
}

// escape returns the text that replaces b.replaced, or false if value does not continue the word or can't be quoted
// there.
func (b *bashReply) escape(value string, before shell.Typed) (string, bool) {
	if !strings.HasPrefix(value, b.word.Text) {
		return "", false
	}
	open := before.Open
	if open == 0 && b.word.Open != 0 && b.replaced != "" {
		return "", false // bash replaces the quote too
	}
	rest := strings.TrimPrefix(value, before.Text)
	if open != 0 && rest != "" && rest[len(rest)-1] == open {
		return "", false // bash would take it as the closing quote
	}
	if strings.HasPrefix(b.replaced, "~/") && before.Raw == "" && strings.HasPrefix(rest, "~/") {
		rest, ok := shell.Escape(rest[2:], 0)
		return "~/" + rest, ok
	}
	return shell.Escape(rest, open)
}

// files returns folders, and files with an extension in b.lines, whose names begin with word.
func (b *bashReply) files(word string) (found []string) {
	folder, name := filepath.Split(word)
	at := folder
	if rest, ok := strings.CutPrefix(folder, "~/"); ok {
		at = filepath.Join(b.home, rest)
	}
	entries, _ := os.ReadDir(cmp.Or(at, "."))
	for _, e := range entries {
		full := folder + e.Name()
		if !strings.HasPrefix(e.Name(), name) || e.Name()[0] == '.' && name == "" || full != term.Visible(full) ||
			strings.HasPrefix(full, "-") {
			continue
		}
		info, err := os.Stat(filepath.Join(at, e.Name()))
		switch {
		case err == nil && info.IsDir():
			full += "/"
		case !slices.Contains(b.lines, strings.TrimPrefix(filepath.Ext(full), ".")):
			continue
		}
		found = append(found, full)
	}
	b.directive = cobra.ShellCompDirectiveNoFileComp
	if len(found) == 1 && strings.HasSuffix(found[0], "/") {
		b.directive |= cobra.ShellCompDirectiveNoSpace
	}
	return found
}
