package setup

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// NewInit returns the command init.
func NewInit(f *command.Factory) *cobra.Command {
	s := &answers{check: keyCheck{Result: keyNotChecked}}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Set waybill up: address, API key, webhook secret",
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
		RunE: f.RunWith(initFlags(f), func(ctx context.Context, c *command.Call, _ []string) error {
			s.c, s.profile = c, c.Config.Profile
			return s.run(ctx)
		}),
	}
	cmd.Flags().BoolVar(&s.force, "force", false, "change existing settings without asking")
	return cmd
}

// initFlags returns the flags that override settings, except a profile that does not exist yet and can't be loaded.
func initFlags(f *command.Factory) func(*cobra.Command) []config.Flag {
	return func(cmd *cobra.Command) []config.Flag {
		flags := command.FlagsOf(cmd)
		i := slices.IndexFunc(flags, func(g config.Flag) bool { return g.Name == "profile" })
		if i < 0 {
			return flags
		}
		name, others := flags[i].Values[0], slices.Clone(flags)
		others[i].Values = []string{config.DefaultProfile}
		user, err := config.ReadUserFile(f.App.Sources(others))
		if err == nil && slices.Contains(user.Profiles(), name) {
			return flags
		}
		return others // loading them has the error again
	}
}

type initResult struct {
	Path          string   `json:"path"`
	Profile       string   `json:"profile"` // default for the top of the file
	BaseURL       string   `json:"baseUrl"`
	Changed       []string `json:"changed"`       // keys that were written or removed
	APIKey        string   `json:"apiKey"`        // what sets it
	WebhookSecret bool     `json:"webhookSecret"` // one is set, in the file or by the environment
	Check         keyCheck `json:"check"`
}

func (s *answers) run(ctx context.Context) (err error) {
	if err := command.CheckNotEmpty(s.c.Cmd, "profile", "base-url", "api-key-file"); err != nil {
		return err
	}
	if s.file, err = config.OpenUserFile(s.c.Sources()); err != nil {
		return err
	}
	if f := s.c.Cmd.Flags().Lookup("profile"); f.Changed {
		s.profile = f.Value.String()
	}
	if err := s.ask(ctx); err != nil {
		return err
	}
	changes := s.changes()
	if ok, err := s.agreed(ctx, changes); err != nil || !ok {
		return err
	}
	r := initResult{Path: s.file.Path, Profile: s.profile, BaseURL: s.baseURL, Check: s.check}
	r.APIKey, r.Changed = s.keySource(), command.Texts(len(changes), func(i int) string { return changes[i].Key })
	r.WebhookSecret = !s.webhook.IsZero() || s.current("webhook.secret") != "" || s.webhookEnv() != ""
	if len(changes) > 0 {
		if _, err := edit.Set(s.sources(), s.profile, changes...); err != nil {
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

func (s *answers) printNext(changes []edit.Change) {
	sources := s.sources()
	words := []string{"waybill", "create", "orders.csv"}
	for _, name := range []string{"config", "profile"} {
		if f := s.c.Cmd.Flags().Lookup(name); f.Changed && f.Value.String() != "" {
			words = append(words, "--"+name, f.Value.String())
			sources.Flags = append(sources.Flags, config.Flag{Name: name, Values: []string{f.Value.String()}})
		}
	}
	if cfg, err := config.Load(sources); err == nil { // errors are not about the file, which was just checked
		warnOverridden(s.c.IO, cfg, s.file.Path, changes...)
	}
	s.c.IO.Note("`waybill listen` receives webhooks; `waybill doctor` checks the setup")
	s.c.IO.Next(shell.Line(words...))
}

func (s *answers) sources() config.Sources {
	return onlyFlags(s.c, func(name string) bool { return name == "config" || name == "insecure-http" })
}

// agreed shows the changes to an existing file, and asks before a value is overwritten.
func (s *answers) agreed(ctx context.Context, changes []edit.Change) (bool, error) {
	if s.file.Data == nil || len(changes) == 0 {
		return true, nil
	}
	s.c.IO.Note("Changes of %s:", s.file.Path+ofProfile(s.profile))
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
		s.c.IO.Note("  %s: %s%s", a.Key, was, value)
	}
	overwrites := func(a edit.Change) bool { return s.current(a.Key) != "" }
	switch {
	case s.force, !slices.ContainsFunc(changes, overwrites):
		return true, nil
	case !s.c.IO.Interactive():
		return false, command.Existsf("pass --force to change them, or --profile NAME to add a profile",
			"nothing was written: %s has other values already", s.file.Path)
	}
	ok, err := s.c.IO.Confirm(ctx, "Write these changes?")
	if err == nil && !ok {
		err = command.Usagef("--profile NAME adds a profile and leaves the other settings unchanged", "nothing was written")
	}
	return ok, err
}

type answers struct {
	c       *command.Call
	file    config.UserFile
	profile string // profile to write
	force   bool   // overwrite existing values without a question

	baseURL string
	key     config.Secret // zero keeps the current one
	webhook config.Secret // zero keeps the current one
	check   keyCheck
}

func (s *answers) current(key string) string { return s.file.Text(s.profile, key) }

func (s *answers) ask(ctx context.Context) error {
	if err := s.askBaseURL(ctx); err != nil {
		return err
	}
	for again := true; again; {
		err := s.askKey(ctx)
		if err == nil {
			again, err = s.tryKey(ctx)
		}
		if err != nil {
			return err
		}
	}
	return s.askWebhookSecret(ctx)
}

func (s *answers) askBaseURL(ctx context.Context) (err error) {
	cfg := s.c.Config
	suggested := s.current("base_url")
	if level := cfg.Origin("base_url").Level; level == config.FromFlag || level == config.FromEnv {
		suggested = cfg.BaseURL
		if !s.c.IO.Interactive() || level == config.FromFlag {
			s.baseURL = suggested
			return nil
		}
	}
	if !s.c.IO.Interactive() {
		if suggested == "" {
			return command.Usagef("pass --base-url URL, or run it on a terminal, where it asks", "no base URL is given")
		}
		s.baseURL, err = cfg.CheckBaseURL(suggested)
		return err
	}
	question := "Base URL of the service"
	if suggested != "" {
		question += " [" + suggested + "]"
	}
	for {
		answer, err := s.c.IO.Ask(ctx, "%s:", question)
		if err != nil {
			return err
		}
		if s.baseURL, err = cfg.CheckBaseURL(cmp.Or(answer, suggested)); err == nil {
			return nil
		}
		s.c.IO.WarningWith(term.Failure{Message: err.Error(), Hint: command.HintOf(err)})
	}
}

func (s *answers) keySource() string {
	if !s.key.IsZero() {
		return "in the configuration file"
	}
	setting := s.c.Config.APIKeySetting()
	return setting + " of " + s.c.Config.Origin(setting).String()
}

// canKeepKey reports whether the environment or the profile sets a key, so that init need not write one. It returns an
// error if that key belongs to another service.
func (s *answers) canKeepKey() (bool, error) {
	setting := s.c.Config.APIKeySetting()
	level := s.c.Config.Origin(setting).Level
	if level != config.FromEnv && (level > config.FromProfile || s.current(setting) == "") {
		return false, nil
	}
	_, err := s.c.ServiceKey(s.baseURL)
	return err == nil, err
}

func (s *answers) askKey(ctx context.Context) error {
	setting := s.c.Config.APIKeySetting()
	if s.c.Config.Origin(setting).Level == config.FromFlag && s.check.Result != keyRefused {
		key, err := s.c.Key()
		s.key = config.NewSecret(key)
		return err
	}
	keep, err := s.canKeepKey()
	if !s.c.IO.Interactive() {
		if err == nil && !keep {
			err = command.Usagef("pass --api-key-file FILE (- for standard input), or set WAYBILL_API_KEY",
				"no API key is given")
		}
		return err
	}
	if keep {
		s.key, err = askOptionalSecret(ctx, s.c.IO,
			"API key (not shown; Enter keeps "+setting+" of "+s.c.Config.Origin(setting).String()+"):")
	} else {
		s.key, err = askSecret(ctx, s.c.IO, "API key (not shown):")
	}
	return err
}

// tryKey checks the key, and reports whether to ask for another one. A refused key is not written; a key that could not
// be checked is written only if the user agrees.
func (s *answers) tryKey(ctx context.Context) (again bool, err error) {
	key := s.key.Reveal()
	if s.key.IsZero() {
		if key, err = s.c.ServiceKey(s.baseURL); err != nil {
			return false, err
		}
	}
	s.c.IO.Note("Trying the key with one query to %s", s.baseURL)
	s.check = checkKey(ctx, s.c, s.baseURL, key)
	switch {
	case context.Cause(ctx) != nil:
		return false, context.Cause(ctx)
	case s.check.err == nil:
		return false, nil
	case !s.c.IO.Interactive():
		return false, notStored(s.check)
	}
	if s.check.Result == keyRefused {
		s.c.IO.Warning("the key was refused: %v", s.check.err)
		return true, nil
	}
	s.c.IO.Warning("the key could not be checked: %v", s.check.err)
	write, err := s.c.IO.Confirm(ctx, "It is not known whether the key is right. Continue?")
	if err == nil && !write {
		err = notStored(s.check)
	}
	return false, err
}

// webhookEnv returns the name of the variable that sets the webhook secret, which init then does not write, or "".
func (s *answers) webhookEnv() string {
	if o := s.c.Config.Origin("webhook.secret"); o.Level == config.FromEnv {
		return o.String()
	}
	return ""
}

func (s *answers) askWebhookSecret(ctx context.Context) (err error) {
	if !s.c.IO.Interactive() {
		return nil
	}
	kept := "for none"
	if env := s.webhookEnv(); env != "" {
		kept = "leaves it to " + env
	} else if s.current("webhook.secret") != "" {
		kept = "keeps the current one"
	}
	s.webhook, err = askOptionalSecret(ctx, s.c.IO, "Webhook secret (not shown; Enter "+kept+"):")
	return err
}

func (s *answers) changes() (all []edit.Change) {
	if !config.IsSameBaseURL(s.current("base_url"), s.baseURL) {
		all = append(all, edit.Change{Key: "base_url", Value: s.baseURL})
	}
	for _, key := range []string{"account", "ca_file", "insecure_http", "store"} {
		e, _ := s.c.Config.Get(key) // every setting exists
		if e.Origin.Level == config.FromFlag && e.Text != s.current(key) {
			all = append(all, edit.Change{Key: key, Value: e.Text})
		}
	}
	if !s.webhook.IsZero() && !s.file.Holds(s.profile, "webhook.secret", s.webhook) {
		all = append(all, edit.Change{Key: "webhook.secret", Value: s.webhook})
	}
	if s.key.IsZero() || s.file.Holds(s.profile, "api_key", s.key) {
		return all
	}
	all = append(all, edit.Change{Key: "api_key", Value: s.key})
	for _, key := range []string{"api_key_file", "api_key_keyring"} {
		if s.current(key) != "" {
			all = append(all, edit.Change{Key: key})
		}
	}
	return all
}
