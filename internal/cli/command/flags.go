package command

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
)

// StdinName is how standard input is named on the command line.
const StdinName = "-"

// Example indents the lines of an example as cobra shows them.
func Example(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// Exactly accepts exactly n arguments; what names them in the error.
func Exactly(n int, what string) cobra.PositionalArgs { return Between(n, n, what) }

// Between accepts from least to most arguments; what names them in the error.
func Between(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef("", "missing argument: %s", what)
		case len(args) > most:
			return Usagef("give only "+what, "%s given, %d expected", Plural(len(args), "argument"), most)
		}
		return nil
	}
}

// Walk calls do for every command of a tree.
func Walk(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		Walk(c, do)
	}
}

// LimitFlag adds --limit, see [CheckLimit].
func LimitFlag(f *pflag.FlagSet, limit *int, preset int) {
	f.IntVar(limit, "limit", preset, "at most `N` rows, 0 for all")
}

// SinceFlag adds --since, which [ParseSince] reads.
func SinceFlag(cmd *cobra.Command, since *string, help string) {
	cmd.Flags().StringVar(since, "since", "", help+": RFC 3339, a day (2026-11-20, today, yesterday, monday), or an age")
}

// DryRunFlag adds --dry-run.
func DryRunFlag(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "dry-run", false, "show what would be done, but do nothing")
}

// YesFlag adds --yes.
func YesFlag(f *pflag.FlagSet, yes *bool) {
	f.BoolVar(yes, "yes", false, "continue without a question")
}

// ReadyFileFlag adds --ready-file, see [Call.AnnounceReady].
func ReadyFileFlag(f *pflag.FlagSet, path *string) {
	f.StringVar(path, "ready-file", "", "write the URL to `FILE` once connections are accepted")
}

// CheckLimit returns an error for a negative --limit.
func CheckLimit(n int) error {
	if n < 0 {
		return Usagef("use --limit 0 for all", "--limit %d is negative", n)
	}
	return nil
}

// CheckNotEmpty returns an error if one of the flags was given an empty value.
func CheckNotEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed && strings.Join(FlagValues(f), "") == "" {
			return Usagef("give it a value or remove it; an unset shell variable may be the cause", "--%s is empty", name)
		}
	}
	return nil
}

// Arguments returns the names of a command's arguments as in its usage line: FILE, REF.
func Arguments(cmd *cobra.Command) []string {
	line := strings.NewReplacer("[", " ", "]", " ", "...", " ", "|", " | ").Replace(cmd.Use)
	words := strings.Fields(line)[1:]
	var names []string
	for i, word := range words {
		value := i > 0 && strings.HasPrefix(words[i-1], "--") // of a flag
		if !value && !strings.HasPrefix(word, "-") && word != "|" {
			names = append(names, word)
		}
	}
	return names
}

// Defaults of --timeout.
const (
	QueryTimeout = 15 * time.Second // of commands that query once
	WaitTimeout  = 30 * time.Minute // of commands that wait
)

// FlagsOf returns the flags of a command line that override settings. --json means -o json, --excel implies -o csv.
func FlagsOf(cmd *cobra.Command) []config.Flag {
	var flags []config.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, isSetting := f.Annotations[settingKey]; isSetting && f.Changed {
			flags = append(flags, config.Flag{Name: f.Name, Values: FlagValues(f)})
		}
	})
	if isSet(cmd, "json") {
		flags = append(flags, config.Flag{Name: "output", Values: []string{"json"}})
	}
	if asExcel(cmd) {
		flags = append(flags, config.Flag{Name: "output", Values: []string{"csv"}})
	}
	return flags
}

// FlagValues returns the values of a flag: one, unless the flag is a list.
func FlagValues(f *pflag.Flag) []string {
	if list, ok := f.Value.(cobra.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// GlobalFlags adds the flags that every command has. They have no defaults: the settings define them.
func GlobalFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringP("output", "o", "", "print the result as `FORMAT`: table, json, jsonl, csv or xlsx")
	f.Bool("json", false, "same as -o json")
	f.String("jq", "", "filter JSON output with the jq expression `EXPR`")
	f.BoolP("exit-status", "e", false, "exit with 6 if the last result of --jq is false or null, or there is none")
	Choice(f, new(string), excelFlag, "", "print CSV that Excel opens by double click, cells separated by `SEPARATOR`",
		excelSeparators()...)
	f.Lookup(excelFlag).NoOptDefVal = excelSeparators()[0]
	f.String("out", "", "write the result to `FILE`, through a temporary file")
	f.String("color", "", "`WHEN` to use color: auto, always or never")
	f.BoolP("quiet", "q", false, "print no progress and no notes")
	f.BoolP("verbose", "v", false, "print more details")
	f.Bool("debug", false, "print requests and responses to stderr, with secrets masked")
	f.String("profile", "", "use the settings of profile `NAME`")
	f.String("config", "", "read your settings from `FILE`")
	f.String("store", "", "keep runs, trackings and deliveries in `FILE`, or in postgres://USER@HOST/DATABASE")
	f.Bool("insecure-store", false, "allow PostgreSQL on other hosts without verified TLS")
	f.String("account", "", "`NAME` of the account that owns the trackings")
	f.String("base-url", "", "`URL` of the service")
	f.String("api-key-file", "", "read the API key from `FILE` (- for standard input)")
	f.Bool("same-key", false, "send the API key to this base URL, though it is kept for another")
	f.String("ca-file", "", "also trust the certificate authorities in `FILE` (PEM)")
	f.Bool("insecure-http", false, "allow http to other hosts than this computer")
	f.String("timeout", "", "stop trying or waiting after `DURATION`, such as 30m")
	f.String("request-timeout", "", "stop each request after `DURATION`, such as 30s")
	Section(f, "Output", "output", "json", "jq", "exit-status", "excel", "out", "color", "quiet", "verbose", "debug")
	Section(f, "Settings", "profile", "config", "store", "insecure-store", "account")
	Section(f, "Service", "base-url", "api-key-file", "same-key", "ca-file", "insecure-http", "timeout", "request-timeout")
	names := []string{"config", "same-key"}
	for _, s := range config.Settings() {
		names = append(names, s.Flag)
	}
	for _, name := range names {
		_ = f.SetAnnotation(name, settingKey, nil) // fails for a flag that not every command has
	}
}

// InvalidValue returns the error for an invalid value of a flag.
func InvalidValue(err *pflag.InvalidValueError) string {
	cause := (*strconv.NumError)(nil)
	if !errors.As(err, &cause) {
		return err.Unwrap().Error()
	}
	text := Quoted(err.GetValue())
	kind := err.GetFlag().Value.Type()
	switch {
	case errors.Is(cause, strconv.ErrRange):
		return text + " is out of range"
	case kind == "bool":
		return text + " is not true or false"
	case strings.HasPrefix(kind, "float"):
		return text + " is not a number"
	case strings.HasPrefix(kind, "uint"):
		return text + " is not a whole number from 0 up"
	}
	return text + " is not a whole number"
}

// Chooser is the value of a flag that accepts fixed words, which help and completion list.
type Chooser interface {
	Choices() []string
}

// Choice adds a flag that accepts one of some words.
func Choice(f *pflag.FlagSet, value *string, name, preset, help string, words ...string) {
	*value = preset
	f.Var(&choice{value: value, words: words}, name, help+": "+Or(words))
}

// Choices adds a flag that accepts several of some words, separated by commas or repeated.
func Choices(f *pflag.FlagSet, values *[]string, name, help string, words ...string) {
	f.Var(&choices{values: values, words: words}, name, help+": "+Or(words))
}

// words are the values that a flag accepts.
type words []string

// Choices returns the words, see [Chooser].
func (words words) Choices() []string { return words }

func (words words) choose(word string) (string, error) {
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, word) }); i >= 0 {
		return words[i], nil
	}
	text := "must be " + Or(words) + ", not " + Quoted(word)
	if near := config.Nearest(word, words); near != "" {
		text += "; did you mean " + near + "?"
	}
	return "", errors.New(text)
}

// Or joins words, such as "a, b or c".
func Or(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

type choice struct {
	words
	value *string
}

// String, Type and Set are for [pflag.Value].
func (c *choice) String() string { return *c.value }

// Type is as [pflag.Value] has it.
func (c *choice) Type() string { return "word" }

// Set accepts one of the words, ignoring case.
func (c *choice) Set(word string) (err error) {
	*c.value, err = c.choose(word)
	return err
}

type choices struct {
	words
	values *[]string
}

// String, Type and Set are for [pflag.Value].
func (c *choices) String() string { return strings.Join(*c.values, ",") }

// Type is as [pflag.Value] has it.
func (c *choices) Type() string { return "words" }

// GetSlice is for [cobra.SliceValue].
func (c *choices) GetSlice() []string { return *c.values }

// Set adds words, separated by commas.
func (c *choices) Set(list string) error {
	for word := range strings.SplitSeq(list, ",") {
		chosen, err := c.choose(word)
		if err != nil {
			return err
		}
		*c.values = append(*c.values, chosen)
	}
	return nil
}

const (
	sectionKey = "waybill_section" // names its section in help; empty for none
	asInKey    = "waybill_as_in"   // names the command whose help explains it
	settingKey = "waybill_setting" // marks a setting, and names its value where its help does not
)

// Section groups flags of a set under a title in help.
func Section(f *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, sectionKey, []string{title}) // fails for a flag that the set does not have
	}
}

// Advanced moves all flags of a set to a last section of help, except the flags that most users need.
func Advanced(f *pflag.FlagSet, but ...string) {
	f.VisitAll(func(flag *pflag.Flag) {
		delete(flag.Annotations, sectionKey)
		if !slices.Contains(but, flag.Name) {
			Section(f, "Advanced", flag.Name)
		}
	})
}

// SectionAsIn makes help refer to the command that explains a section instead of listing its flags.
func SectionAsIn(f *pflag.FlagSet, path string, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, asInKey, []string{path}) // fails for a flag that the set does not have
	}
}

// FlagSection is a group of flags under one title in help.
type FlagSection struct {
	Title string // empty for flags without a section
	AsIn  string // the command whose help explains them, empty for this one
	Flags []*pflag.Flag
}

// FlagSections returns the flags that help shows: flags without a section first, then sections by their first flag.
func FlagSections(f *pflag.FlagSet) []FlagSection {
	all := []FlagSection{{}}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Deprecated != "" {
			return
		}
		title := strings.Join(flag.Annotations[sectionKey], "")
		i := slices.IndexFunc(all, func(s FlagSection) bool { return s.Title == title })
		if i < 0 {
			i = len(all)
			all = append(all, FlagSection{Title: title, AsIn: strings.Join(flag.Annotations[asInKey], "")})
		}
		all[i].Flags = append(all[i].Flags, flag)
	})
	return slices.DeleteFunc(all, func(s FlagSection) bool { return len(s.Flags) == 0 })
}

// OwnFlags returns the flags of a command that are not global.
func OwnFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.SortFlags = false
	global := cmd.Root().PersistentFlags()
	var help *pflag.Flag
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case global.Lookup(f.Name) == f:
		case f.Name == "help":
			help = f
		default:
			own.AddFlag(f)
		}
	})
	if help != nil {
		own.AddFlag(help)
	}
	return own
}

// FlagText returns the name of a flag's value, such as FILE, [=FILE] for an optional one, empty for a flag without a
// value, and its help with the default.
func FlagText(f *pflag.Flag) (value, help string) {
	value, help = pflag.UnquoteUsage(f)
	if named := f.Annotations[settingKey]; len(named) > 0 {
		value = named[0]
	}
	if f.Value.Type() == "bool" {
		value = ""
	} else if f.NoOptDefVal != "" {
		value = "[=" + value + "]"
	}
	if !slices.Contains([]string{"", "0", "0s", "[]", "false"}, f.DefValue) {
		help += " (default " + f.DefValue + ")"
	}
	return value, help
}

// SettingFlags adds flags that override settings, with help from the table of settings.
func SettingFlags(cmd *cobra.Command, names ...string) {
	for _, s := range config.Settings() {
		if !slices.Contains(names, s.Flag) {
			continue
		}
		help := s.Help
		if s.Default != "" && s.Kind != config.KindBool {
			help += " (default " + s.Default + ")"
		}
		switch s.Kind {
		case config.KindBool:
			cmd.Flags().Bool(s.Flag, false, help)
		case config.KindNames, config.KindList:
			cmd.Flags().StringArray(s.Flag, nil, help)
		default:
			cmd.Flags().String(s.Flag, "", help)
		}
		cmd.Flags().Lookup(s.Flag).Annotations = map[string][]string{settingKey: {s.Value}}
		Section(cmd.Flags(), s.Section, s.Flag)
	}
}

// Titles of sections that several commands share.
const (
	InputSection  = config.InputSection
	FaultsSection = "Faults on purpose"
)
