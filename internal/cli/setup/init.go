package setup

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/shell"
)

type initOptions struct{ Force bool }

// NewInit returns the command for the first setup.
func NewInit(f *command.Factory) *cobra.Command {
	var o initOptions
	cmd := &cobra.Command{
		Use:     "init",
		GroupID: command.GroupRest,
		Short:   "Set waybill up: address, API key, webhook secret",
		Long: `init asks for the address of the service, the API key and the webhook secret, tries
the key with one query that changes nothing, and writes your configuration file,
which only you can read (mode 0600). Secrets are not shown while you type them.

The query asks for a tracking that does not exist. A response 401 or 403 means that
the key is refused; any other response of the service shows that it was not refused,
and no more. Nothing is written before all questions are answered.

A file that exists keeps its other settings and its comments. init shows what would
change, and asks first; --force does not ask. --profile NAME adds a profile, or
changes it. The flags --account, --store, --ca-file and --insecure-http are written
too.

Without a terminal nothing is asked. The address is --base-url or WAYBILL_BASE_URL,
the key is read from --api-key-file (- for standard input). A key in WAYBILL_API_KEY
is used where it is, and not written, and so is WAYBILL_WEBHOOK_SECRET. If the service
can't be reached, nothing is written; "waybill config set" writes without a query,
and the webhook secret too.`,
		Example: command.Example("waybill init", "waybill init --profile test",
			"waybill init --base-url URL --api-key-file FILE </dev/null"),
		Args: cobra.NoArgs,
		RunE: f.RunWith(initFlags(f), func(ctx context.Context, c *command.Call, _ []string) error {
			return runInit(ctx, c, o)
		}),
	}
	cmd.Flags().BoolVar(&o.Force, "force", false, "change existing settings without asking")
	return cmd
}

// initFlags returns the flags that are settings, without a profile that is to be
// added: there is nothing to load of it yet.
func initFlags(f *command.Factory) func(*cobra.Command) ([]config.Flag, error) {
	return func(cmd *cobra.Command) ([]config.Flag, error) {
		flags := command.FlagsOf(cmd)
		name, err := cmd.Flags().GetString("profile")
		if err != nil || !cmd.Flags().Changed("profile") {
			return flags, err
		}
		others := slices.DeleteFunc(slices.Clone(flags), func(g config.Flag) bool { return g.Name == "profile" })
		others = append(others, config.Flag{Name: "profile", Values: []string{config.DefaultProfile}, Changed: true})
		list, err := config.ListProfiles(f.App.Sources(others))
		if err != nil || slices.ContainsFunc(list.All, func(p config.Profile) bool { return p.Name == name }) {
			return flags, err
		}
		return others, nil
	}
}

// initResult is what init wrote.
type initResult struct {
	Path          string   `json:"path"`
	Profile       string   `json:"profile"` // default for the top of the file
	BaseURL       string   `json:"baseUrl"`
	Changed       []string `json:"changed"`       // keys that were written or removed
	APIKey        string   `json:"apiKey"`        // what sets it
	WebhookSecret bool     `json:"webhookSecret"` // one is set, in the file or by the environment
	Check         keyCheck `json:"check"`
}

func runInit(ctx context.Context, c *command.Call, o initOptions) error {
	if err := command.CheckNotEmpty(c.Cmd, "profile", "base-url", "api-key-file"); err != nil {
		return err
	}
	s, err := newSetup(c, o)
	if err != nil {
		return err
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	changes, overwritten, err := s.changes()
	if err != nil {
		return err
	}
	if ok, err := s.agreed(ctx, changes, overwritten); err != nil || !ok {
		return err
	}
	r := initResult{Path: s.draft.Path, Profile: s.profile, BaseURL: s.baseURL, Changed: []string{}, APIKey: s.keySource(), Check: s.check}
	r.WebhookSecret = !s.webhook.IsZero() || s.current("webhook.secret") != "" || s.webhookEnv() != ""
	for _, change := range changes {
		r.Changed = append(r.Changed, change.Key)
	}
	if len(changes) > 0 {
		if _, err := config.Set(s.sources(), s.profile, changes...); err != nil {
			return err
		}
	}
	if err := s.print(r); err != nil {
		return err
	}
	s.printNext(changes)
	return nil
}

func (s *answers) print(r initResult) error {
	c := s.c
	if c.Out.Machine() {
		return c.Out.Object(r)
	}
	webhook := "none"
	if env := s.webhookEnv(); env != "" {
		webhook = "set by " + env
	} else if r.WebhookSecret {
		webhook = "set"
	}
	written := r.Path
	if len(r.Changed) == 0 {
		written += " (unchanged)"
	}
	return c.Out.Fields([]render.Field{
		{Name: "Configuration", Value: written},
		{Name: "Profile", Value: r.Profile},
		{Name: "Base URL", Value: r.BaseURL},
		{Name: "API key", Value: r.APIKey + ", " + r.Check.text()},
		{Name: "Webhook secret", Value: webhook},
	})
}

// printNext says what overrides the file, and what can be done now.
func (s *answers) printNext(changes []config.Change) {
	sources := s.sources()
	words := []string{"waybill", "create", "orders.csv"}
	for _, name := range []string{"config", "profile"} {
		if f := s.c.Cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "" {
			words = append(words, "--"+name, f.Value.String())
			sources.Flags = append(sources.Flags, config.Flag{Name: name, Values: []string{f.Value.String()}, Changed: true})
		}
	}
	if cfg, err := config.Load(sources); err == nil { // the file was just checked: all else is not about it
		warnOverridden(s.c.IO, cfg, s.draft.Path, changes...)
	}
	s.c.IO.Note("`waybill listen` receives webhooks; `waybill doctor` checks the setup")
	s.c.IO.Next(shell.Line(words...))
}

// sources returns where settings come from, without the flags of init.
func (s *answers) sources() config.Sources {
	src := s.c.Sources()
	src.Flags = slices.DeleteFunc(slices.Clone(src.Flags), func(g config.Flag) bool { return g.Name != "config" && g.Name != "insecure-http" })
	return src
}

// agreed reports whether to write the changes: it shows those of a file that
// exists, and asks before a value is overwritten.
func (s *answers) agreed(ctx context.Context, changes []config.Change, overwritten bool) (bool, error) {
	if s.draft.Old == nil || len(changes) == 0 {
		return true, nil
	}
	s.c.IO.Note("Changes of %s:", s.draft.Path+ofProfile(s.profile))
	for _, line := range s.describe(changes) {
		s.c.IO.Note("  %s", line)
	}
	switch {
	case !overwritten || s.o.Force:
		return true, nil
	case !s.c.IO.Interactive():
		return false, command.Usagef("pass --force to change them, or --profile NAME to add a profile", "nothing was written: %s has other values already", s.draft.Path)
	}
	ok, err := s.c.IO.Confirm(ctx, "Write these changes?")
	if err == nil && !ok {
		err = command.Usagef("--profile NAME adds a profile and leaves the other settings unchanged", "nothing was written")
	}
	return ok, err
}

// describe words changes, a line each.
func (s *answers) describe(changes []config.Change) []string {
	var lines []string
	for _, a := range changes {
		was, value := s.current(a.Key), "removed"
		switch v := a.Value.(type) {
		case config.Secret:
			value = "*** (new)"
		case string:
			value = v
		}
		if was != "" {
			was += " -> "
		}
		lines = append(lines, a.Key+": "+was+value)
	}
	return lines
}
