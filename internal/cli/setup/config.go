// Package setup has the commands that look at settings, try the service out and
// find out how it behaves.
package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
)

// settingJSON is one setting in our output. Secrets are masked.
type settingJSON struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

// pathJSON is one configuration file in our output.
type pathJSON struct {
	Kind   string `json:"kind"` // user or project
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// NewConfig returns the commands that show and change settings.
func NewConfig(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "config",
		GroupID: command.GroupRest,
		Short:   "Show and change settings",
	}
	group.AddCommand(newConfigList(f), newConfigGet(f), newConfigSet(f), newConfigUnset(f), newConfigEdit(f), newConfigPath(f),
		newConfigProfiles(f), newConfigUse(f))
	return group
}

type configListOptions struct{ Origin bool }

func newConfigList(f *command.Factory) *cobra.Command {
	var o configListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List every setting with its value",
		Long: `list shows the current value of every setting. Flags override environment
variables, which override .waybill.yaml in this folder, which overrides the user
file. Secrets are shown as ***.`,
		Example: command.Example("waybill config list --origin"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			return runConfigList(c, o)
		}),
	}
	cmd.Flags().BoolVar(&o.Origin, "origin", false, "show where each value comes from")
	command.ColumnsFlag(cmd, settingColumns(true))
	return cmd
}

func runConfigList(c *command.Call, o configListOptions) error {
	w := command.Listing[config.Entry]{
		Out:     c.Out,
		JSON:    func(e config.Entry) any { return settingJSON{e.Key, e.Value, e.Origin.String()} },
		Columns: settingColumns(o.Origin),
	}
	return w.PrintAll(c.IO, c.Config.List())
}

// settingColumns returns the columns of settings.
func settingColumns(origin bool) []command.Column[config.Entry] {
	return []command.Column[config.Entry]{
		{Column: render.Column{Name: "KEY"}, Cell: func(e config.Entry) string { return e.Key }},
		{Column: render.Column{Name: "VALUE", Flex: true}, Cell: func(e config.Entry) string { return e.Text }},
		{Column: render.Column{Name: "ORIGIN", Extra: !origin}, Cell: func(e config.Entry) string { return e.Origin.String() }},
	}
}

func newConfigPath(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "path",
		Short:   "Show where the configuration files are",
		Example: command.Example("waybill config path"),
		Args:    cobra.NoArgs,
		RunE: f.RunBare(func(_ context.Context, b *command.Bare, _ []string) error {
			return runConfigPath(b)
		}),
	}
	command.ColumnsFlag(cmd, pathColumns())
	return cmd
}

// runConfigPath works even when the files can't be read: it is how one finds them.
func runConfigPath(b *command.Bare) error {
	paths, err := config.Locate(b.Sources)
	if err != nil {
		return err
	}
	w := command.Listing[pathJSON]{
		Out:     b.Out,
		JSON:    func(p pathJSON) any { return p },
		Columns: pathColumns(),
	}
	return w.PrintAll(b.IO, []pathJSON{{"user", paths.User, paths.UserExists}, {"project", paths.Project, paths.ProjectExists}})
}

// pathColumns returns the columns of configuration files.
func pathColumns() []command.Column[pathJSON] {
	return []command.Column[pathJSON]{
		{Column: render.Column{Name: "KIND"}, Cell: func(p pathJSON) string { return p.Kind }},
		{Column: render.Column{Name: "PATH"}, Cell: func(p pathJSON) string { return p.Path }},
		{Column: render.Column{Name: "EXISTS"}, Cell: func(p pathJSON) string {
			if p.Exists {
				return "yes"
			}
			return "no"
		}},
	}
}
