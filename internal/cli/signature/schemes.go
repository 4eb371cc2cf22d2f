package signature

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/view"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// schemeJSON is a scheme that can be used by its name.
type schemeJSON struct {
	Name              string           `json:"name"`
	Origin            string           `json:"origin"` // configured or preset
	InForce           bool             `json:"inForce"`
	About             string           `json:"about"`
	Strength          webhook.Strength `json:"strength"` // empty if it can't be used
	Meaning           string           `json:"meaning"`
	BodyAuthenticated bool             `json:"bodyAuthenticated"`
	Scheme            map[string]any   `json:"scheme"`

	scheme webhook.Scheme
}

func newSchemes(f *command.Factory) *cobra.Command {
	group := &cobra.Command{
		Use:   "schemes",
		Short: "List, show and test signature schemes",
	}
	list := &cobra.Command{
		Use:     "list",
		Short:   "List presets and configured schemes",
		Example: command.Example("waybill signature schemes list"),
		Args:    cobra.NoArgs,
		RunE: f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
			return runList(c)
		}),
	}
	command.ColumnsFlag(list, schemeColumns(nil))
	show := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a scheme's configuration",
		Example: command.Example("waybill signature schemes show standard-webhooks"),
		Args:    oneScheme,
		RunE: f.RunE(func(_ context.Context, c *command.Call, args []string) error {
			return runShow(c, args[0])
		}),
	}
	test := &cobra.Command{
		Use:   "test NAME",
		Short: "Test a scheme with a made-up delivery",
		Long: `test signs a made-up delivery with a made-up secret, and checks that it verifies,
and that it does not verify with another secret, another body, or much later.`,
		Example: command.Example("waybill signature schemes test mine"),
		Args:    oneScheme,
		RunE: f.RunE(func(_ context.Context, c *command.Call, args []string) error {
			return runTest(c, args[0])
		}),
	}
	group.AddCommand(list, show, test)
	return group
}

// oneScheme wants the name of one scheme.
func oneScheme(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return command.Usagef("list schemes with `waybill signature schemes list`", "one scheme needed, not %d", len(args))
}

// schemesOf returns the configured schemes, then the presets, by name.
func schemesOf(s *app.Session) []schemeJSON {
	var all []schemeJSON
	add := func(name, origin, about string, scheme webhook.Scheme) {
		strength := scheme.Strength()
		j := schemeJSON{
			Name: name, Origin: origin, InForce: name == s.Config.Webhook.Scheme, About: about, Strength: strength, Meaning: strength.String(),
			BodyAuthenticated: scheme.CoversBody(), Scheme: config.SchemeSettings(scheme), scheme: scheme,
		}
		if err := scheme.Check(); err != nil {
			j.Meaning = "can't be used: " + err.Error()
		}
		all = append(all, j)
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

func schemeNamed(s *app.Session, name string) (schemeJSON, error) {
	all := schemesOf(s)
	i := slices.IndexFunc(all, func(j schemeJSON) bool { return j.Name == name })
	if i < 0 {
		return schemeJSON{}, command.Usagef("list schemes with `waybill signature schemes list`", "unknown scheme %q", name)
	}
	return all[i], nil
}

func runList(c *command.Call) error {
	w := command.Listing[schemeJSON]{
		Out: c.Out, Empty: "No schemes",
		JSON:    func(j schemeJSON) any { return j },
		Columns: schemeColumns(c),
	}
	return w.PrintAll(c.IO, schemesOf(c.Session))
}

// schemeColumns returns the columns of schemes.
func schemeColumns(c *command.Call) []command.Column[schemeJSON] {
	return []command.Column[schemeJSON]{
		{Column: render.Column{Name: "NAME"}, Cell: func(j schemeJSON) string { return j.Name }},
		{Column: render.Column{Name: "ORIGIN", Rank: 2}, Cell: func(j schemeJSON) string { return j.Origin }},
		{Column: render.Column{Name: "IN FORCE", Rank: 3}, Cell: func(j schemeJSON) string {
			if j.InForce {
				return c.Config.Webhook.Verify
			}
			return ""
		}},
		{Column: render.Column{Name: "PROVES", Rank: 1}, Cell: func(j schemeJSON) string { return string(j.Strength) }},
		{Column: render.Column{Name: "ABOUT", Flex: true}, Cell: func(j schemeJSON) string { return j.About }},
	}
}

func runShow(c *command.Call, name string) error {
	j, err := schemeNamed(c.Session, name)
	if err != nil {
		return err
	}
	if c.Out.Machine() {
		return c.Out.Object(j)
	}
	if err := c.Out.Fields([]render.Field{
		{Name: "Name", Value: j.Name},
		{Name: "Origin", Value: j.Origin},
		{Name: "About", Value: j.About},
		{Name: "Strength", Value: j.Meaning},
	}); err != nil {
		return err
	}
	return printScheme(c, "Configuration:", j.scheme)
}

// testedJSON is the delivery that a scheme was tried with.
type testedJSON struct {
	Name    string        `json:"name"`
	OK      bool          `json:"ok"`
	Message string        `json:"message"`
	Headers []view.Header `json:"headers"`
	Query   string        `json:"query"`
	Body    string        `json:"body"`
}

func runTest(c *command.Call, name string) error {
	j, err := schemeNamed(c.Session, name)
	if err != nil {
		return err
	}
	req, err := webhook.SelfTest(j.scheme, time.Now())
	if err != nil && !errors.Is(err, webhook.ErrSelfTest) {
		return SchemeUsage(name, err)
	}
	t := testedJSON{Name: name, OK: err == nil, Headers: view.MaskHeaders(req.Header, nil, true), Query: req.RawQuery, Body: string(req.Body)}
	if err != nil {
		t.Message = err.Error()
		err = unverified("check the scheme's settings", "", "scheme %q: %w", name, err)
	}
	if c.Out.Machine() {
		return errors.Join(c.Out.Object(t), err)
	}
	if err := view.PrintHeaders(c.Out, t.Headers); err != nil || c.Out.IsCSV() {
		return err
	}
	if t.Query != "" {
		if err := c.Out.Line("?%s", t.Query); err != nil {
			return err
		}
	}
	if printed := c.Out.Line("\n%s", t.Body); printed != nil || err != nil {
		return errors.Join(printed, err)
	}
	c.IO.Note("Signed with a made-up secret; verifies, and does not verify with another secret: %s", j.Meaning)
	return nil
}
