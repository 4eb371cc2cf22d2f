package setup

import (
	"cmp"
	"context"
	"strings"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

// answers is what init was answered, and what the file has.
type answers struct {
	c       *command.Call
	o       initOptions
	draft   *config.Draft
	profile string         // that is written
	entries []config.Entry // what the file sets there

	baseURL string
	key     config.Secret // zero to keep the one that is set
	webhook config.Secret // zero to keep the one that is set
	check   keyCheck
}

func newSetup(c *command.Call, o initOptions) (*answers, error) {
	d, err := config.OpenDraft(c.Sources())
	if err != nil {
		return nil, err
	}
	s := &answers{c: c, o: o, draft: d, profile: c.Config.Profile, check: keyCheck{Result: keyNotChecked}}
	if f := c.Cmd.Flags().Lookup("profile"); f.Changed {
		s.profile = f.Value.String()
	}
	s.entries, err = d.Entries(s.profile)
	return s, err
}

// current returns what the file sets, as it is shown; empty for nothing.
func (s *answers) current(key string) string {
	for _, e := range s.entries {
		if e.Key == key {
			return e.Text
		}
	}
	return ""
}

// ask gets address, key and webhook secret, and tries the key.
func (s *answers) ask(ctx context.Context) error {
	if err := s.askBaseURL(ctx); err != nil {
		return err
	}
	for {
		if err := s.askKey(ctx); err != nil {
			return err
		}
		again, err := s.tryKey(ctx)
		if err != nil {
			return err
		}
		if !again {
			break
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
		s.baseURL, err = config.CheckBaseURL(suggested, cfg.InsecureHTTP)
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
		if s.baseURL, err = config.CheckBaseURL(cmp.Or(answer, suggested), cfg.InsecureHTTP); err == nil {
			return nil
		}
		s.c.IO.WarningWith(term.Failure{Message: err.Error(), Hint: command.HintOf(err)})
	}
}

// keySource says what sets the API key after init.
func (s *answers) keySource() string {
	if !s.key.IsZero() {
		return "in the configuration file"
	}
	setting := s.c.Config.APIKeySetting()
	return setting + " of " + s.c.Config.Origin(setting).String()
}

// canKeepKey reports whether a key is set that init need not write: that of the
// environment, or that of the file where the service stays the same.
func (s *answers) canKeepKey() bool {
	setting := s.c.Config.APIKeySetting()
	switch s.c.Config.Origin(setting).Level {
	case config.FromEnv:
		return true
	case config.FromUser, config.FromProfile:
		was, err := config.CheckBaseURL(s.current("base_url"), true)
		return s.current(setting) != "" && err == nil && was == s.baseURL
	}
	return false
}

func (s *answers) askKey(ctx context.Context) error {
	setting := s.c.Config.APIKeySetting()
	if s.c.Config.Origin(setting).Level == config.FromFlag && s.check.Result != keyRefused {
		key, err := s.c.Key()
		s.key = config.NewSecret(key)
		return err
	}
	keep := s.canKeepKey()
	if !s.c.IO.Interactive() {
		if !keep {
			return command.Usagef("pass --api-key-file FILE (- for standard input), or set WAYBILL_API_KEY", "no API key is given")
		}
		return nil
	}
	var err error
	if keep {
		s.key, err = askOptionalSecret(ctx, s.c.IO, "API key (not shown; Enter keeps "+setting+" of "+s.c.Config.Origin(setting).String()+"):")
	} else {
		s.key, err = askSecret(ctx, s.c.IO, "API key (not shown):")
	}
	return err
}

// tryKey tries the key, and reports whether to ask for another one. Nothing is
// written where the service refuses it, and only on demand where nothing is known.
func (s *answers) tryKey(ctx context.Context) (again bool, err error) {
	key := s.key.Reveal()
	if s.key.IsZero() {
		if key, err = s.c.Key(); err != nil {
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

// webhookEnv names the variable of the environment that sets the webhook secret, which
// init does not write; empty for none.
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

// changes returns what to write, and whether it overwrites a value.
func (s *answers) changes() (all []config.Change, overwritten bool, err error) {
	add := func(a config.Change) {
		all, overwritten = append(all, a), overwritten || s.current(a.Key) != ""
	}
	if was, err := config.CheckBaseURL(s.current("base_url"), true); err != nil || was != s.baseURL {
		add(config.Change{Key: "base_url", Value: s.baseURL})
	}
	for _, key := range []string{"account", "ca_file", "insecure_http", "store"} {
		if !s.c.Cmd.Flags().Changed(strings.ReplaceAll(key, "_", "-")) {
			continue
		}
		e, err := s.c.Config.Get(key)
		if err != nil {
			return nil, false, err
		}
		if e.Text != s.current(key) {
			add(config.Change{Key: key, Value: e.Text})
		}
	}
	if !s.webhook.IsZero() && !s.draft.Holds(s.profile, "webhook.secret", s.webhook) {
		add(config.Change{Key: "webhook.secret", Value: s.webhook})
	}
	if s.key.IsZero() || s.draft.Holds(s.profile, "api_key", s.key) {
		return all, overwritten, nil
	}
	add(config.Change{Key: "api_key", Value: s.key})
	for _, key := range []string{"api_key_file", "api_key_keyring"} {
		if s.current(key) != "" {
			add(config.Change{Key: key})
		}
	}
	return all, overwritten, nil
}
