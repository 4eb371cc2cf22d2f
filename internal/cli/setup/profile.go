package setup

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
)

// profileJSON is one profile in our output.
type profileJSON struct {
	Name    string `json:"name"`
	Active  bool   `json:"active"`
	Origin  string `json:"origin"`  // what chose it; empty unless it is active
	BaseURL string `json:"baseUrl"` // empty if the profile does not set it
	Account string `json:"account"` // empty if the profile does not set it
}

func newConfigProfiles(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles of your configuration file",
		Long: `profiles shows every profile, which one is in force, and what chose it: the flag
--profile, WAYBILL_PROFILE, or the configuration file. The settings at the top of
the file are the profile default.`,
		Example: command.Example("waybill config profiles"),
		Args:    cobra.NoArgs,
		RunE: f.RunBare(func(_ context.Context, b *command.Bare, _ []string) error {
			return runConfigProfiles(b)
		}),
	}
	command.ColumnsFlag(cmd, profileColumns())
	return cmd
}

func runConfigProfiles(b *command.Bare) error {
	list, err := config.ListProfiles(b.Sources)
	if err != nil {
		return err
	}
	var all []profileJSON
	for _, p := range list.All {
		j := profileJSON{Name: p.Name, BaseURL: p.BaseURL, Account: p.Account}
		if p.Name == list.Active {
			j.Active, j.Origin = true, list.Origin.String()
		}
		all = append(all, j)
	}
	w := command.Listing[profileJSON]{
		Out:     b.Out,
		JSON:    func(p profileJSON) any { return p },
		Columns: profileColumns(),
	}
	if err := w.PrintAll(b.IO, all); err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(p profileJSON) bool { return p.Active }) {
		b.IO.Warning("%s chooses profile %s, which is not in %s", list.Origin, command.Quoted(list.Active), list.File)
	}
	return nil
}

func profileColumns() []command.Column[profileJSON] {
	return []command.Column[profileJSON]{
		{Column: render.Column{Name: "PROFILE"}, Cell: func(p profileJSON) string { return p.Name }},
		{Column: render.Column{Name: "CHOSEN BY"}, Cell: func(p profileJSON) string { return p.Origin }},
		{Column: render.Column{Name: "BASE URL", Flex: true}, Cell: func(p profileJSON) string { return p.BaseURL }},
		{Column: render.Column{Name: "ACCOUNT"}, Cell: func(p profileJSON) string { return p.Account }},
	}
}

func newConfigUse(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Choose the profile that commands use",
		Long: `use writes the name of a profile into your configuration file, as the setting
"profile". --profile and WAYBILL_PROFILE override it. The settings at the top of the
file are the profile default.`,
		Example: command.Example("waybill config use test", "waybill config use default"),
		Args:    command.Exactly(1, "one NAME"),
		RunE: f.RunBare(func(_ context.Context, b *command.Bare, args []string) error {
			if err := checkProfile(b, args[0]); err != nil {
				return err
			}
			return changeConfig(b, config.Change{Key: "profile", Value: args[0]})
		}),
	}
}

// checkProfile refuses the name of a profile that the configuration file does not
// have. A file that can't be read is for the change to report.
func checkProfile(b *command.Bare, name string) error {
	hint := "`waybill config profiles` shows the profiles, `waybill init --profile NAME` adds one"
	if name == "" {
		return command.Usagef(hint, "the NAME of the profile is empty")
	}
	list, err := config.ListProfiles(b.Sources)
	if err != nil {
		return nil //nolint:nilerr // as said above
	}
	var names []string
	for _, p := range list.All {
		names = append(names, p.Name)
	}
	if slices.Contains(names, name) {
		return nil
	}
	if near := config.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return command.Usagef(hint, "no profile %s in %s", command.Quoted(name), list.File)
}
