package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/config"
)

// StdinName is how standard input is named on the command line.
const StdinName = "-"

// ParseSince reads a point in time: RFC 3339, a date in the machine's zone, or
// an age.
func ParseSince(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, time.Local); err == nil {
		return t, nil
	}
	if d, err := config.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, Usagef("such as 2026-11-20, 2026-11-20T08:00:00Z or 48h", "%s %q is neither a time nor an age", flag, s)
}

// Groups of commands, by who reads them.
const (
	GroupOps  = "ops"
	GroupHook = "webhook"
	GroupRest = "rest"
)

// SettingFlags adds flags that are settings, with the help of the settings'
// own table.
func SettingFlags(cmd *cobra.Command, names ...string) {
	for _, s := range config.Settings() {
		if !slices.Contains(names, s.Flag) {
			continue
		}
		help := s.Help
		if s.Default != "" {
			help = fmt.Sprintf("%s (default %s)", help, s.Default)
		}
		switch s.Kind {
		case config.KindBool:
			cmd.Flags().Bool(s.Flag, false, help)
		case config.KindNames, config.KindList:
			cmd.Flags().StringArray(s.Flag, nil, help)
		default:
			cmd.Flags().String(s.Flag, "", help)
		}
	}
}

// Example indents the lines of an example as cobra shows them.
func Example(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// Exactly asks for n arguments and says what they are.
func Exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return Usagef("needed: "+what, "%d arguments given, %d needed", len(args), n)
		}
		return nil
	}
}

func OlderThanFlag(cmd *cobra.Command, age *string) {
	cmd.Flags().StringVar(age, "older-than", "", "`AGE` such as 30d")
}

// OlderThan reads --older-than: the time before which things are old.
func OlderThan(age string) (time.Time, error) {
	old, err := config.ParseDuration(age)
	if err != nil {
		return time.Time{}, Usagef("such as --older-than 30d", "--older-than: %v", err)
	}
	return time.Now().Add(-old), nil
}

const QueryTimeout = 15 * time.Second

const (
	WaitTimeout  = 30 * time.Minute
	FirstPause   = time.Second
	LongestPause = 30 * time.Second
)
