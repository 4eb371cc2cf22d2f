package signature

import (
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// schemeJSON is a scheme that can be used by its name.
type schemeJSON struct {
	Name    string         `json:"name"`
	Origin  string         `json:"origin"` // configured or preset
	InForce bool           `json:"inForce"`
	About   string         `json:"about"`
	Scheme  map[string]any `json:"scheme"` // its settings
}

func newSchemes(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schemes",
		Short: "List presets and configured schemes",
		Long: `schemes lists the schemes that have a name: those under webhook.schemes of your
configuration, and presets. With -o json each has its settings.`,
		Example: command.Example("waybill signature schemes", "waybill signature schemes -o json --jq '.[] | select(.inForce)'"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			w := command.Listing[schemeJSON]{
				Out: c.Out, Empty: "No schemes",
				JSON:    func(j schemeJSON) any { return j },
				Columns: schemeColumns(),
			}
			return w.PrintAll(c.IO, schemesOf(c.Session))
		}),
	}
	command.ColumnsFlag(cmd, schemeColumns())
	return cmd
}

// schemesOf returns the configured schemes, then the presets, by name.
func schemesOf(s *app.Session) []schemeJSON {
	var all []schemeJSON
	add := func(name, origin, about string, scheme webhook.Scheme) {
		if err := scheme.Check(); err != nil {
			about = "can't be used: " + err.Error()
		}
		all = append(all, schemeJSON{name, origin, name == s.Config.Webhook.Scheme, about, config.SchemeSettings(scheme)})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Webhook.Schemes)) {
		if scheme, err := s.Scheme(name); err == nil {
			add(name, "configured", Describe(scheme), scheme)
		}
	}
	for _, p := range webhook.Presets() {
		if _, hidden := s.Config.Webhook.Schemes[p.Name]; !hidden {
			add(p.Name, "preset", p.About, p.Scheme)
		}
	}
	return all
}

func schemeColumns() []command.Column[schemeJSON] {
	return []command.Column[schemeJSON]{
		{Column: render.Column{Name: "NAME"}, Cell: func(j schemeJSON) string { return j.Name }},
		{Column: render.Column{Name: "ORIGIN", Rank: 1}, Cell: func(j schemeJSON) string {
			if j.InForce {
				return j.Origin + ", in force"
			}
			return j.Origin
		}},
		{Column: render.Column{Name: "ABOUT", Flex: true}, Cell: func(j schemeJSON) string { return j.About }},
	}
}
