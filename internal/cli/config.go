package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
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

func (r *runner) config() *cobra.Command {
	group := &cobra.Command{
		Use:     "config",
		GroupID: groupRest,
		Short:   "Look at the settings and where they come from",
	}
	var origin bool
	list := &cobra.Command{
		Use:   "list",
		Short: "List every setting with its value",
		Long: `list shows every setting as it is in force: a flag wins over the environment,
that over .waybill.yaml of this folder, that over your own file. Secrets show as ***.`,
		Example: example("waybill config list --origin"),
		Args:    cobra.NoArgs,
		RunE: r.run(func(_ context.Context, s *app.Session, _ []string) error {
			return r.listConfig(s, origin)
		}),
	}
	list.Flags().BoolVar(&origin, "origin", false, "show where each value comes from")
	path := &cobra.Command{
		Use:     "path",
		Short:   "Show where the configuration files are",
		Example: example("waybill config path"),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r.started = true
			return r.configPath(cmd)
		},
	}
	group.AddCommand(list, path)
	return group
}

func (r *runner) listConfig(s *app.Session, origin bool) error {
	entries := s.Config.List()
	if r.out.machine() {
		list := r.out.List(r.out.ctx)
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
	rows := r.out.Table(columns...)
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
func (r *runner) configPath(cmd *cobra.Command) error {
	paths, err := config.Locate(r.app.Sources(flagsOf(cmd)))
	if err != nil {
		return err
	}
	format, err := cmd.Flags().GetString("output")
	if err != nil {
		return err
	}
	if json, _ := cmd.Flags().GetBool("json"); json {
		format = "json"
	}
	out, err := newResult(cmd, r.app, format, false)
	if err != nil {
		return err
	}
	defer out.discard()
	list := []pathJSON{{"user", paths.User, paths.UserExists}, {"project", paths.Project, paths.ProjectExists}}
	if out.machine() {
		l := out.List(out.ctx)
		for _, p := range list {
			if err := l.Add(p); err != nil {
				return err
			}
		}
		return out.end(l.Close())
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
	return out.end(rows.Flush())
}
