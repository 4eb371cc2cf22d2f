package signature

import (
	"context"
	"slices"
	"strings"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/replay"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// pin writes the first candidate to the configuration, and verifies the stored
// deliveries again.
func pin(ctx context.Context, call *command.Call, o learnOptions, l learning, result *learnJSON) error {
	c := l.Candidates[0]
	settings := c.Scheme.WithDefaults()
	if old, ok := call.Config.Webhook.Schemes[o.Pin]; ok && old.WithDefaults() != settings {
		return command.Usagef("choose another name, or remove webhook.schemes."+o.Pin+" from the configuration first", "another scheme named %q is already configured", o.Pin)
	}
	changes := []config.Change{
		{Key: []string{"webhook", "schemes", o.Pin}, Value: settings},
		{Key: []string{"webhook", "scheme"}, Value: o.Pin},
		{Key: []string{"webhook", "verify"}, Value: "observe"},
	}
	places, secrets, err := l.places(call.Session, c)
	if err != nil {
		return err
	}
	if places != nil {
		changes = append(changes, config.Change{Key: []string{"webhook", "secrets"}, Value: places})
	}
	v, err := webhook.NewVerifier(c.Scheme, secrets)
	if err != nil {
		return command.Usagef("pass the matching secrets with --secret-from", "not pinned: %w", err)
	}
	file, err := call.EditUser(changes...)
	if err != nil {
		return err
	}
	result.Pinned = &pinnedJSON{o.Pin, file, "observe"}
	warnOverridden(call.Session, "webhook.scheme", "webhook.verify", "webhook.schemes."+o.Pin)
	db, err := call.ExistingStore(ctx)
	if err != nil || db == nil {
		return err
	}
	n, err := replay.Reverify(ctx, db.Inbox, db.Verdicts, o.Pin, v)
	result.Rejudged = (*rejudgedJSON)(&n)
	return err
}

// places returns what webhook.secrets must hold for a candidate to verify, nil
// if it may stay as it is, and the secrets that are then in force.
func (l *learning) places(s *app.Session, c webhook.Candidate) ([]string, []webhook.Secret, error) {
	var matched []webhook.Secret
	for _, i := range c.Secrets {
		matched = append(matched, l.secrets[i])
	}
	configured := slices.Clone(l.secrets)
	if key, ok := s.APIKeySecret(); ok {
		configured = configured[:len(configured)-1]
		if slices.ContainsFunc(matched, func(m webhook.Secret) bool { return m.Name == key.Name && !hasSecret(configured, m.Name) }) {
			configured = nil
		}
	}
	if len(configured) > 0 && s.Config.Origin("webhook.secrets").Level != config.FromFlag {
		return nil, configured, nil
	}
	var places []string
	for _, m := range matched {
		if kind, _, _ := strings.Cut(m.Name, ":"); kind != "env" && kind != "file" {
			return nil, nil, command.Usagef("put it into a file or variable and pass that with --secret-from", "not pinned: the deliveries are signed with %s, which can't be set in webhook.secrets", m.Name)
		}
		places = append(places, m.Name)
	}
	return places, matched, nil
}

func hasSecret(all []webhook.Secret, name string) bool {
	return slices.ContainsFunc(all, func(s webhook.Secret) bool { return s.Name == name })
}

// warnOverridden warns of keys that were written to the user file and that the
// environment sets otherwise.
func warnOverridden(s *app.Session, keys ...string) {
	for _, key := range keys {
		if o := s.Config.Origin(key); o.Level == config.FromEnv {
			s.IO.Warning("%s is set in the environment, which overrides the file: unset it", o.Name)
		}
	}
}
