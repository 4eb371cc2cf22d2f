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

func NewConfig(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:     "config",
		GroupID: command.GroupRest,
		Short:   "Look at the settings and where they come from",
	}
	var origin bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List every setting with its value",
		Long: `list shows every setting as it is in force: a flag wins over the environment,
that over .waybill.yaml of this folder, that over your own file. Secrets show as ***.`,
		Example: command.Example("waybill config list --origin"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			return listConfig(c, origin)
		}),
	}
	list.Flags().BoolVar(&origin, "origin", false, "show where each value comes from")
	path := &cobra.Command{
		Use:     "path",
		Short:   "Show where the configuration files are",
		Example: command.Example("waybill config path"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Started = true
			return configPath(f, cmd)
		},
	}
	group.AddCommand(list, path)
	return group
}

func listConfig(c *command.Call, origin bool) error {
	entries := c.Config.List()
	if c.Out.Machine() {
		list := c.Out.BeginList()
		for _, e := range entries {
			if err := list.Add(settingJSON{e.Key, e.Value, e.Origin.String()}); err != nil {
				return err
			}
		}
		return list.Close()
	}
	columns := []render.Column{{Name: "KEY"}, {Name: "VALUE", Flex: true}}
	if origin {
		columns = append(columns, render.Column{Name: "ORIGIN"})
	}
	rows := c.Out.Table(columns...)
	for _, e := range entries {
		cells := []string{e.Key, e.Text}
		if origin {
			cells = append(cells, e.Origin.String())
		}
		if err := rows.Row(cells...); err != nil {
			return err
		}
	}
	return rows.Flush()
}

// configPath works even when the files can't be read: it is how one finds them.
func configPath(f *command.Factory, cmd *cobra.Command) error {
	paths, err := config.Locate(f.App.Sources(command.FlagsOf(cmd)))
	if err != nil {
		return err
	}
	out, err := f.Output(cmd)
	if err != nil {
		return err
	}
	defer out.Discard()
	list := []pathJSON{{"user", paths.User, paths.UserExists}, {"project", paths.Project, paths.ProjectExists}}
	if out.Machine() {
		l := out.BeginList()
		for _, p := range list {
			if err := l.Add(p); err != nil {
				return err
			}
		}
		return out.End(l.Close())
	}
	rows := out.Table(render.Column{Name: "KIND"}, render.Column{Name: "PATH"}, render.Column{Name: "EXISTS"})
	for _, p := range list {
		exists := "no"
		if p.Exists {
			exists = "yes"
		}
		if err := rows.Row(p.Kind, p.Path, exists); err != nil {
			return err
		}
	}
	return out.End(rows.Flush())
}
