// Package complete completes values of flags and arguments in the shell, from the settings, the store and the files
// that a command line names. It writes nothing, does not query the service, and ignores errors.
package complete

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

const (
	maxWorkbook = 1 << 20 // bytes of the largest workbook whose header is read
	maxValues   = 100
	maxTime     = time.Second
)

// Install adds completion to root and every command below it.
func Install(root *cobra.Command, a *app.App) {
	install(root, root.PersistentFlags(), a)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	command.Walk(root, func(cmd *cobra.Command) {
		cmd.FParseErrWhitelist.UnknownFlags = true // misspelled flags do not prevent completion
		install(cmd, cmd.Flags(), a)
		if names := command.Arguments(cmd); len(names) > 0 && cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			if k, ok := argumentKind(cmd, names[0]); ok {
				cmd.ValidArgsFunction = k.complete(a, nil)
			}
		} else if cmd.ValidArgsFunction == nil && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	})
}

func install(cmd *cobra.Command, flags *pflag.FlagSet, a *app.App) {
	flags.VisitAll(func(f *pflag.Flag) {
		if k, ok := flagKind(cmd, f); ok && cmd.Flag(f.Name) == f {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, k.complete(a, f)) // fails for a flag that has one already
		}
		_, f.Usage = pflag.UnquoteUsage(f) // cobra shows Usage unchanged
	})
}

// kind says how a value is completed. The zero kind completes nothing.
type kind struct {
	values func(*line) []value // nil for none
	files  bool                // complete file names
	types  []string            // extensions of the files; nil for any
	list   bool                // several values, separated by commas
}

// value is one completion. After a final =, : or /, the word continues.
type value struct{ text, about string }

type line struct {
	ctx   context.Context //nolint:containedctx // of this one completion
	app   *app.App
	cmd   *cobra.Command
	flag  *pflag.Flag // nil for an argument
	args  []string    // arguments before the word
	word  string      // typed so far
	store *app.Store  // nil until opened
	s     *app.Session
}

func (k kind) complete(a *app.App, f *pflag.Flag) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case k.files && k.types != nil:
			return k.types, cobra.ShellCompDirectiveFilterFileExt
		case k.files:
			return nil, cobra.ShellCompDirectiveDefault
		case k.values == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Root().Context()), maxTime)
		defer cancel()
		l := &line{ctx: ctx, app: a, cmd: cmd, flag: f, args: args, word: word}
		defer l.close()
		return k.matches(l)
	}
}

func (k kind) matches(l *line) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := ""
	var used []string
	if i := strings.LastIndexByte(l.word, ','); k.list && i >= 0 {
		before, l.word = l.word[:i+1], l.word[i+1:]
		used = strings.Split(before, ",")
	}
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	var found []cobra.Completion
	for _, v := range k.values(l) {
		if !l.offers(v.text) || !strings.HasPrefix(v.text, l.word) || slices.Contains(used, v.text) {
			continue
		}
		if k.list || strings.ContainsAny(v.text[len(v.text)-1:], "=:/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		text := before + v.text
		if v.about != "" {
			text += "\t" + strings.Join(strings.Fields(term.Visible(v.about)), " ")
		}
		if found = append(found, text); len(found) == maxValues {
			break
		}
	}
	return found, directive
}

// offers reports whether a value can be offered. It must be one line without outer spaces, which the shell would lose,
// and look like no flag, unless the user typed a hyphen for the value of a flag.
func (l *line) offers(s string) bool {
	hyphen := l.flag != nil && strings.HasPrefix(l.word, "-")
	return s != "" && (s[0] != '-' || hyphen) && s == strings.TrimSpace(s) && s == term.Visible(s)
}

// session returns the session of the line, or nil if the settings can't be read.
func (l *line) session() *app.Session {
	if l.s == nil {
		if l.s, _ = l.app.Session(l.ctx, command.FlagsOf(l.cmd)); l.s != nil {
			l.s.ReadOnly = true
		}
	}
	return l.s
}

// open returns the store of the line, or nil if it can't be read.
func (l *line) open() *app.Store {
	if s := l.session(); l.store == nil && s != nil && s.Config.Store != "" {
		l.store, _ = s.ExistingStore(l.ctx)
	}
	return l.store
}

func (l *line) close() {
	if l.s != nil {
		_ = l.s.Close() // only read from
	}
}

func each[T any](all []T, of func(T) value) []value {
	values := make([]value, len(all))
	for i, one := range all {
		values[i] = of(one)
	}
	return values
}

func words(all []string) []value {
	return each(all, func(word string) value { return value{text: word} })
}

func tables() []string { return []string{"csv", "tsv", "txt", "json", "jsonl", "ndjson", "xlsx"} }

// flagKind returns the kind of a flag's value by the flag's name, else by the value's name in help. It returns false
// for a flag without a value or with an unknown name.
func flagKind(cmd *cobra.Command, f *pflag.Flag) (kind, bool) {
	if f.Value.Type() == "bool" {
		return kind{}, false
	}
	if c, ok := f.Value.(command.Chooser); ok {
		_, list := f.Value.(cobra.SliceValue)
		return kind{values: func(*line) []value { return words(c.Choices()) }, list: list}, true
	}
	for _, s := range config.Settings() {
		if s.Flag == f.Name && s.Choices != nil {
			return kind{values: func(*line) []value { return words(s.Choices) }}, true
		}
	}
	if k, ok := namedFlags()[cmd.Name()+" "+f.Name]; ok {
		return k, true
	}
	if k, ok := namedFlags()[f.Name]; ok {
		return k, true
	}
	name, _ := command.FlagText(f)
	k, ok := kinds()[name]
	return k, ok
}

// namedFlags has the kinds of flags whose value's name does not suffice. Some keys are a command and a flag.
var namedFlags = sync.OnceValue(func() map[string]kind {
	return map[string]kind{
		"account":         {values: account},
		"api-key-file":    {files: true},
		"ca-file":         {files: true, types: []string{"pem", "crt", "cer"}},
		"carrier":         {values: carriers},
		"columns":         {values: columns, list: true},
		"config":          {files: true, types: []string{"yaml", "yml"}},
		"event":           {values: eventKinds},
		"expect-status":   {},
		"for":             {values: conditions},
		"from":            {files: true, types: tables()},
		"listen from":     {values: func(*line) []value { return []value{{"beginning", "the first delivery"}} }},
		"pin":             {},
		"profile":         {values: profiles},
		"refer-id":        {values: references},
		"create refer-id": {},
		"rejects":         {files: true, types: []string{"csv"}},
		"run":             {values: runs},
		"scheme":          {values: schemes},
		"sheet":           {values: sheets},
		"status":          {values: wantedStatuses, list: true},
		"stuck":           {},
		"webhook-scheme":  {values: schemes},
	}
})

var kinds = sync.OnceValue(func() map[string]kind {
	nothing := kind{} // only the user knows the value
	all := map[string]kind{
		"FILE":         {files: true},
		"REF":          {values: references},
		"STATUS":       {values: statuses},
		"CONDITION":    {values: conditions},
		"FILTER":       {values: filters},
		"FIELD=HEADER": {values: headers},
		"NAME=P":       {values: faults},
		"PLACE":        {values: places},
	}
	for _, name := range []string{
		"ADDRESS", "AGE", "CODE", "DURATION", "ENCODING", "EXPR", "HOST:PORT", "ID", "METHOD", "N", "NAME", "NAME=CODE",
		"NAME=JSON", "NAME=VALUE", "NUMBER", "PARAMETER", "PATH", "RANGE", "REGEX", "SIZE", "TIME", "URL", "[FILTER=>]URL",
		"[URL=>]NAME=env:VAR", "'NAME: VALUE'", "/POINTER=VALUE", "COLUMN=VALUE",
	} {
		all[name] = nothing
	}
	return all
})

// argumentKind returns the kind of a command's arguments, or false if unknown. name is the argument in its usage line.
func argumentKind(cmd *cobra.Command, name string) (kind, bool) {
	path := cmd.CommandPath() + " "
	switch {
	case name == "ID" && cmd.Name() == "readmit":
		return kind{}, true
	case name == "ID" && strings.Contains(path, " runs "):
		return kind{values: once(runs)}, true
	case name == "ID" && strings.Contains(cmd.Use, "..."), cmd.Name() == "diff":
		return kind{values: events}, true
	case name == "ID":
		return kind{values: once(events)}, true
	case name == "NAME" && strings.Contains(path, " config "):
		return kind{values: once(profiles)}, true
	case name == "KEY":
		return kind{values: settingKeys}, true
	case strings.Contains(path, " store "):
		return kind{files: true}, true
	case name == "FILE" && strings.Contains(path, " import "):
		return kind{files: true, types: []string{"jsonl"}}, true
	case name == "FILE" && cmd.Name() == "report":
		return kind{files: true, types: []string{"html"}}, true
	case name == "FILE":
		return kind{files: true, types: tables()}, true
	}
	k, ok := kinds()[name]
	return k, ok
}

// once completes only the first argument, for commands that take one.
func once(values func(*line) []value) func(*line) []value {
	return func(l *line) []value {
		if len(l.args) > 0 {
			return nil
		}
		return values(l)
	}
}
