package setup

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/term"
)

func newConfigGet(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a setting",
		Long: `get prints the current value of one setting, wherever it comes from; with -o json
also where from. An empty line means that it is not set. Secrets are shown as ***.
KEY may be one name of a setting that holds several: carriers.UPS.`,
		Example: command.Example("waybill config get base_url", "waybill config get concurrency -o json"),
		Args:    command.Exactly(1, "one KEY"),
		RunE: f.RunE(func(_ context.Context, c *command.Call, args []string) error {
			e, err := c.Config.Get(args[0])
			if err != nil {
				return err
			}
			return c.Out.Result(settingJSON{e.Key, e.Value, e.Origin.String()}, "%s", e.Text)
		}),
	}
}

// profileHelp is said of all that change the user file.
const profileHelp = `The setting goes into your configuration file, below the profile in force; that of the
profile default is the top of the file. The file keeps its comments and its order,
and has the mode 0600 afterwards.`

func newConfigSet(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY [VALUE]",
		Short: "Change a setting in your configuration file",
		Long: `set checks a value and writes it into your configuration file. "waybill help
environment" lists the keys; a value is written as in an environment variable.

A secret is no VALUE: it would stay in the history of the shell. Leave VALUE out to
type the secret at a prompt, or write - to read it from standard input.

` + profileHelp,
		Example: command.Example("waybill config set concurrency 8", "waybill config set statuses.9001 registered", "pass show webhook | waybill config set webhook.secret -"),
		Args:    command.Between(1, 2, "KEY and VALUE"),
		RunE: f.RunBare(func(ctx context.Context, b *command.Bare, args []string) error {
			return runConfigSet(ctx, b, args[0], args[1:])
		}),
	}
}

func runConfigSet(ctx context.Context, b *command.Bare, key string, values []string) error {
	if err := config.CheckKey(key); err != nil {
		return err
	}
	a := config.Change{Key: key}
	switch {
	case config.IsSecret(key):
		secret, err := newSecret(ctx, b.IO, key, values)
		if err != nil {
			return err
		}
		a.Value = secret
	case len(values) == 0:
		return command.Usagef("`waybill config unset "+key+"` removes a setting", "missing argument: VALUE")
	default:
		a.Value = values[0]
	}
	return changeConfig(b, a)
}

// newSecret reads the new value of a setting that is a secret.
func newSecret(ctx context.Context, io *term.IO, key string, values []string) (config.Secret, error) {
	switch {
	case len(values) > 0 && values[0] != command.StdinName:
		return config.Secret{}, command.Usagef("leave the value out to type it at a prompt, or pipe it to `waybill config set "+key+" -`; the one you typed may stay in the history of your shell",
			"%s is a secret and can't be an argument", key)
	case len(values) > 0:
		return readSecret(ctx, io, command.StdinName)
	case !io.Interactive():
		return config.Secret{}, command.Usagef("pipe the secret to `waybill config set "+key+" -`", "there is no terminal to ask for %s", key)
	}
	return askSecret(ctx, io, key+" (not shown):")
}

// changeConfig makes one change of the user file, and says where and what is in
// force over it.
func changeConfig(b *command.Bare, a config.Change) error {
	d, err := config.OpenDraft(b.Sources)
	if err != nil {
		return err
	}
	profile, err := profileFor(d, a.Key)
	if err != nil {
		return err
	}
	path, err := config.Set(b.Sources, profile, a)
	if err != nil {
		return err
	}
	done := "Set "
	if a.Value == nil {
		done = "Removed "
	}
	b.IO.Note("%s", done+a.Key+" in "+path+ofProfile(profile))
	if c, err := config.Load(b.Sources); err == nil { // what hinders others is not for this command to say
		warnOverridden(b.IO, c, path, a)
	}
	return nil
}

// profileFor returns the profile that a change is for. The choice of the profile
// stands at the top.
func profileFor(d *config.Draft, key string) (string, error) {
	if key == "profile" {
		return config.DefaultProfile, nil
	}
	return d.Profile()
}

func ofProfile(name string) string {
	if name == config.DefaultProfile {
		return ""
	}
	return " (profile " + name + ")"
}

// warnOverridden says what is in force over the changes of the user file.
func warnOverridden(io *term.IO, c config.Config, path string, all ...config.Change) {
	for _, a := range all {
		if o := c.Origin(a.Key); o.Level > config.FromProfile {
			io.Warning("%s is also set by %s, which overrides %s", a.Key, o, path)
		}
	}
}

func newConfigUnset(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from your configuration file",
		Long: `unset removes a key from your configuration file, also one that is not known or
whose value is not valid. What overrode it, or its default, is then in force.

The key is removed below the profile in force; that of the profile default is the
top of the file. The file keeps its comments and its order.`,
		Example: command.Example("waybill config unset concurrency", "waybill config unset carriers.UPS"),
		Args:    command.Exactly(1, "one KEY"),
		RunE: f.RunBare(func(_ context.Context, b *command.Bare, args []string) error {
			return runConfigUnset(b, args[0])
		}),
	}
}

func runConfigUnset(b *command.Bare, key string) error {
	d, err := config.OpenDraft(b.Sources)
	if err != nil {
		return err
	}
	profile, err := profileFor(d, key)
	if err != nil {
		return err
	}
	if !d.Has(profile, key) {
		if err := config.CheckKey(key); err != nil {
			return err
		}
		b.IO.Note("%s is not set in %s", key, d.Path+ofProfile(profile))
		return nil
	}
	return changeConfig(b, config.Change{Key: key})
}
