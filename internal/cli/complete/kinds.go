package complete

import (
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

func tables() []string { return []string{"csv", "tsv", "txt", "json", "jsonl", "ndjson", "xlsx"} }

// flagKind returns what the value of a flag is, and false for a flag without one and
// one of a kind that is not known here. The name of the flag decides, else the name of
// its value in help.
func flagKind(cmd *cobra.Command, f *pflag.Flag) (kind, bool) {
	if f.Value.Type() == "bool" {
		return kind{}, false
	}
	if c, ok := f.Value.(command.Chooser); ok {
		_, list := f.Value.(pflag.SliceValue)
		return kind{values: func(*line) []value { return words(c.Choices()) }, list: list}, true
	}
	if choices := settingChoices(f.Name); choices != nil {
		return kind{values: func(*line) []value { return words(choices) }}, true
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

// namedFlags are the kinds of flags whose value's name does not say enough. A command's
// name may stand before the flag's.
var namedFlags = sync.OnceValue(func() map[string]kind {
	scheme := kind{values: schemes}
	return map[string]kind{
		"account":              {values: accounts},
		"api-key-file":         {files: true},
		"ca-file":              {files: true, types: []string{"pem", "crt", "cer"}},
		"carrier":              {values: carriers},
		"columns":              {values: columns, list: true},
		"config":               {files: true, types: []string{"yaml", "yml"}},
		"erase number":         {values: numbers},
		"event":                {values: eventKinds},
		"expect-status":        {},
		"forward-to":           {values: targets},
		"for":                  {values: conditions},
		"from":                 {files: true, types: tables()},
		"list tracking-number": {values: numbers},
		"listen from":          {values: func(*line) []value { return []value{{"beginning", "the first delivery"}} }},
		"pin":                  {},
		"profile":              {values: profiles},
		"refer-id":             {values: references},
		"create refer-id":      {},
		"rejects":              {files: true, types: []string{"csv"}},
		"replay to":            {values: targets},
		"run":                  {values: runs},
		"scheme":               scheme,
		"sheet":                {values: sheets},
		"send to":              {values: targets},
		"send tracking-number": {values: numbers},
		"status":               {values: wantedStatuses, list: true},
		"stuck":                {},
		"webhook-scheme":       scheme,
	}
})

// kinds are the kinds by the name that help gives to a value, or to an argument.
var kinds = sync.OnceValue(func() map[string]kind {
	nothing := kind{} // only the user knows it
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
		"ADDRESS", "AGE", "CODE", "DURATION", "ENCODING", "EXPR", "HOST:PORT", "ID", "METHOD", "N", "NAME", "NAME=CODE", "NAME=JSON", "NAME=VALUE", "NUMBER", "PARAMETER", "PATH", "RANGE",
		"REGEX", "SIZE", "TIME", "URL", "[FILTER=>]URL", "[URL=>]NAME=env:VAR", "'NAME: VALUE'", "/POINTER=VALUE",
	} {
		all[name] = nothing
	}
	return all
})

// argumentKind returns what the arguments of a command are, and false if that is not
// known here. name is as in its usage line.
func argumentKind(cmd *cobra.Command, name string) (kind, bool) {
	path := cmd.CommandPath() + " "
	switch {
	case name == "ID" && cmd.Name() == "readmit":
		return kind{values: refused}, true
	case name == "ID" && strings.Contains(path, " runs "):
		return kind{values: once(runs)}, true
	case name == "ID" && strings.Contains(cmd.Use, "..."):
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

// once is for commands that take one argument.
func once(values func(*line) []value) func(*line) []value {
	return func(l *line) []value {
		if len(l.args) > 0 {
			return nil
		}
		return values(l)
	}
}
