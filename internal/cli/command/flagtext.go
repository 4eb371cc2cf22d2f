package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/config"
)

const (
	sectionKey = "waybill_section" // names its section in help
	asInKey    = "waybill_as_in"   // names the command whose help explains it
	settingKey = "waybill_setting" // marks a setting, and names its value where its help does not
)

// Section shows flags of a set under a title of their own in help.
func Section(f *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, sectionKey, []string{title}) // fails for a flag that the set does not have
	}
}

// Advanced shows all flags of a set in one section at the end of help, but for the flags that most readers need.
func Advanced(f *pflag.FlagSet, but ...string) {
	f.VisitAll(func(flag *pflag.Flag) {
		delete(flag.Annotations, sectionKey)
		if !slices.Contains(but, flag.Name) {
			Section(f, "Advanced", flag.Name)
		}
	})
}

// SectionAsIn has help name the command that explains a section, in place of the flags.
func SectionAsIn(f *pflag.FlagSet, path string, names ...string) {
	for _, name := range names {
		_ = f.SetAnnotation(name, asInKey, []string{path}) // fails for a flag that the set does not have
	}
}

// FlagSection is some flags with the title that help shows them under.
type FlagSection struct {
	Title string // empty for flags without a section
	AsIn  string // the command whose help explains them, empty for this one
	Flags []*pflag.Flag
}

// FlagSections returns the flags that help shows: those without a section, then each section at its first flag.
func FlagSections(f *pflag.FlagSet) []FlagSection {
	all := []FlagSection{{}}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Deprecated != "" {
			return
		}
		title := ""
		if a := flag.Annotations[sectionKey]; len(a) > 0 {
			title = a[0]
		}
		i := slices.IndexFunc(all, func(s FlagSection) bool { return s.Title == title })
		if i < 0 {
			i = len(all)
			all = append(all, FlagSection{Title: title, AsIn: strings.Join(flag.Annotations[asInKey], "")})
		}
		all[i].Flags = append(all[i].Flags, flag)
	})
	return slices.DeleteFunc(all, func(s FlagSection) bool { return len(s.Flags) == 0 })
}

// OwnFlags returns the flags that a command does not share with all others.
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

// SettingFlags adds flags that are settings, with the help of the settings' table.
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
		if s.Section != "" {
			Section(cmd.Flags(), s.Section, s.Flag)
		}
	}
}

// Titles of sections that several commands have.
const (
	InputSection  = config.InputSection
	FaultsSection = "Faults on purpose"
)
