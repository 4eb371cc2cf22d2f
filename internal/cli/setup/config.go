// Package setup has the commands init, auth, config, sandbox, demo and version.
package setup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/shell"
	"github.com/waybill-cli/waybill/internal/term"
)

// settingJSON is one setting in JSON output. Secrets are masked.
type settingJSON struct {
	Key    string `json:"key"`
	Value  any    `json:"value"`
	Origin string `json:"origin"`
}

type pathJSON struct {
	Kind   string `json:"kind"` // user or project
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// NewConfig returns the command group config.
func NewConfig(f *command.Factory) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Show and change settings"}
	group.AddCommand(newConfigList(f), newConfigGet(f), newConfigSet(f), newConfigUnset(f), newConfigEdit(f),
		newConfigPath(f), newConfigProfiles(f), newConfigUse(f))
	return group
}

func newConfigList(f *command.Factory) *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List every setting with its value",
		Long: `list shows the current value of every setting. Flags override environment
variables, which override .waybill.yaml in this folder, which overrides the user
file. Secrets are shown as ***.`,
		Example: command.Example("waybill config list --origin"),
	}
	columns := settingColumns()
	cmd.RunE = f.RunE(func(_ context.Context, c *command.Call, _ []string) error {
		columns[len(columns)-1].Extra = !origin
		return runConfigList(c, columns)
	})
	cmd.Flags().BoolVar(&origin, "origin", false, "show where each value comes from")
	command.ColumnsFlag(cmd, columns)
	return cmd
}

func runConfigList(c *command.Call, columns []command.Column[config.Entry]) error {
	asJSON := func(e config.Entry) any { return settingJSON{e.Key, e.Value, e.Origin.String()} }
	w := command.Listing[config.Entry]{Out: c.Out, JSON: asJSON, Columns: columns}
	return w.PrintAll(c.Config.List())
}

func settingColumns() []command.Column[config.Entry] {
	return []command.Column[config.Entry]{
		{Name: "KEY", Cell: func(e config.Entry) string { return e.Key }},
		{Name: "VALUE", Flex: true, Cell: func(e config.Entry) string { return e.Text }},
		{Name: "ORIGIN", Cell: func(e config.Entry) string { return e.Origin.String() }},
	}
}

func newConfigPath(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "path",
		Short:   "Show where the configuration files are",
		Example: command.Example("waybill config path"),
		RunE:    f.RunBare(runConfigPath),
	}
	command.ColumnsFlag(cmd, pathColumns())
	return cmd
}

// runConfigPath works even if the files can't be read, so that users find broken files.
func runConfigPath(_ context.Context, c *command.Call, _ []string) error {
	paths, err := config.Locate(c.Sources())
	if err != nil {
		return err
	}
	w := command.Listing[pathJSON]{Out: c.Out, Columns: pathColumns()}
	return w.PrintAll(
		[]pathJSON{{"user", paths.User, paths.UserExists}, {"project", paths.Project, paths.ProjectExists}})
}

func pathColumns() []command.Column[pathJSON] {
	return []command.Column[pathJSON]{
		{Name: "KIND", Cell: func(p pathJSON) string { return p.Kind }},
		{Name: "PATH", Cell: func(p pathJSON) string { return p.Path }},
		command.YesNo("EXISTS", func(p pathJSON) bool { return p.Exists }),
	}
}

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

const profileHelp = `The setting goes into your configuration file, below the profile in force; that of the
profile default is the top of the file. The file keeps its comments and its order,
and has the mode 0600 afterwards.`

func newConfigSet(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY [VALUE]",
		Short: "Change a setting in your configuration file",
		Long: `set checks a value and writes it into your configuration file. "waybill help
environment" lists the keys; a value is written as in an environment variable.

Secrets are not taken from the command line. Leave VALUE out to type the secret at
a prompt, or write - to read it from standard input.

` + profileHelp,
		Example: command.Example("waybill config set concurrency 16", "waybill config set statuses.9001 registered",
			"pass show webhook | waybill config set webhook.secret -"),
		Args: command.Between(1, 2, "KEY and VALUE"),
		RunE: f.RunBare(runConfigSet),
	}
}

func runConfigSet(ctx context.Context, c *command.Call, args []string) error {
	key, values := args[0], args[1:]
	isSecret, err := config.CheckKey(key)
	if err != nil {
		return err
	}
	a := edit.Change{Key: key}
	switch {
	case isSecret:
		if a.Value, err = newSecret(ctx, c.IO, key, values); err != nil {
			return err
		}
	case len(values) == 0:
		return command.Usagef("`waybill config unset "+key+"` removes a setting", "missing argument: VALUE")
	default:
		a.Value = values[0]
	}
	if key == "webhook.scheme" && a.Value != "" {
		if current, err := config.Load(c.Sources()); err == nil { // else Set reports the error
			if _, err := app.Scheme(current, values[0]); err != nil {
				return err
			}
		}
	}
	_, profile, err := openUserFile(c, key)
	if err != nil {
		return err
	}
	return changeConfig(c, a, profile)
}

func newSecret(ctx context.Context, io *term.IO, key string, values []string) (config.Secret, error) {
	switch {
	case len(values) > 0 && values[0] != command.StdinName:
		return config.Secret{}, command.Usagef("leave the value out to type it at a prompt, "+
			"or pipe it to `waybill config set "+key+" -`; the one you typed may stay in the history of your shell",
			"%s is a secret and can't be an argument", key)
	case len(values) > 0:
		return term.Await(ctx, func() (config.Secret, error) { return config.ReadSecretFile(command.StdinName, io.In) })
	case !io.Interactive():
		return config.Secret{}, command.Usagef("pipe the secret to `waybill config set "+key+" -`",
			"there is no terminal to ask for %s", key)
	}
	return askSecret(ctx, io, key+" (not shown):")
}

// changeConfig makes one change in the user file, and prints where, and which other source overrides the value.
func changeConfig(c *command.Call, a edit.Change, profile string) error {
	path, err := edit.Set(c.Sources(), profile, a)
	if err != nil {
		return err
	}
	done := "Set "
	if a.Value == nil {
		done = "Removed "
	}
	done += a.Key + " in " + path + ofProfile(profile)
	now, err := config.Load(c.Sources())
	if name, chosen := a.Value.(string); chosen && a.Key == "profile" {
		done = "Now using profile " + name
		if err == nil && now.Profile == name && now.BaseURL != "" {
			done += " (" + strings.TrimPrefix(strings.TrimPrefix(now.BaseURL, "https://"), "http://") + ")"
		}
	}
	c.IO.Note("%s", done)
	if err == nil { // what hinders others is not for this command to say
		warnOverridden(c.IO, now, path, a)
	}
	return nil
}

// openUserFile opens the user file and returns the profile of key. The key profile itself is at the top level.
func openUserFile(c *command.Call, key string) (config.UserFile, string, error) {
	user, err := config.OpenUserFile(c.Sources())
	if err != nil || key == "profile" {
		return user, config.DefaultProfile, err
	}
	profile, _, err := user.Profile()
	return user, profile, err
}

func ofProfile(name string) string {
	if name == config.DefaultProfile {
		return ""
	}
	return " (profile " + name + ")"
}

func warnOverridden(io *term.IO, c config.Config, path string, all ...edit.Change) {
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
		RunE:    f.RunBare(runConfigUnset),
	}
}

func runConfigUnset(_ context.Context, c *command.Call, args []string) error {
	key := args[0]
	user, profile, err := openUserFile(c, key)
	if err != nil {
		return err
	}
	if !user.Has(profile, key) {
		if _, err := config.CheckKey(key); err != nil {
			return err
		}
		c.IO.Note("%s is not set in %s", key, user.Path+ofProfile(profile))
		return nil
	}
	return changeConfig(c, edit.Change{Key: key}, profile)
}

type profileJSON struct {
	Name    string `json:"name"`
	Active  bool   `json:"active"`
	Origin  string `json:"origin"`  // what chose it; empty unless it is active
	BaseURL string `json:"baseUrl"` // empty if the profile does not set it
	Account string `json:"account"` // empty if the profile does not set it
}

func newConfigProfiles(f *command.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the profiles of your configuration file",
		Long: `profiles shows every profile, which one is in force, and what chose it: the flag
--profile, WAYBILL_PROFILE, or the configuration file. The settings at the top of
the file are the profile default.`,
		Example: command.Example("waybill config profiles"),
		RunE:    f.RunBare(runConfigProfiles),
	}
	command.ColumnsFlag(cmd, profileColumns())
	return cmd
}

func runConfigProfiles(_ context.Context, c *command.Call, _ []string) error {
	user, err := config.ReadUserFile(c.Sources())
	if err != nil {
		return err
	}
	active, origin, _ := user.Profile() // one that is missing is warned about
	var all []profileJSON
	for _, name := range user.Profiles() {
		j := profileJSON{Name: name, BaseURL: user.Text(name, "base_url"), Account: user.Text(name, "account")}
		if name == active {
			j.Active, j.Origin = true, origin.String()
		}
		all = append(all, j)
	}
	w := command.Listing[profileJSON]{Out: c.Out, Columns: profileColumns()}
	if err := w.PrintAll(all); err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(p profileJSON) bool { return p.Active }) {
		c.IO.Warning("%s chooses profile %s, which is not in %s", origin, command.Quoted(active), user.Path)
	}
	return nil
}

func profileColumns() []command.Column[profileJSON] {
	return []command.Column[profileJSON]{
		{Name: "PROFILE", CSV: "name", Cell: func(p profileJSON) string { return p.Name }},
		{Name: "CHOSEN BY", CSV: "origin", Cell: func(p profileJSON) string { return p.Origin }},
		{Name: "BASE URL", Flex: true, Cell: func(p profileJSON) string { return p.BaseURL }},
		{Name: "ACCOUNT", Cell: func(p profileJSON) string { return p.Account }},
	}
}

func newConfigUse(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Choose the profile that commands use",
		Long: `use writes the name of a profile into your configuration file, as the setting
"profile". --profile and WAYBILL_PROFILE override it. The settings at the top of the
file are the profile default.`,
		Example: command.Example("waybill config use test", "waybill config use default"),
		Args:    command.Exactly(1, "one NAME"),
		RunE: f.RunBare(func(_ context.Context, c *command.Call, args []string) error {
			if err := checkProfile(c, args[0]); err != nil {
				return err
			}
			return changeConfig(c, edit.Change{Key: "profile", Value: args[0]}, config.DefaultProfile)
		}),
	}
}

// checkProfile returns an error for a profile that the configuration file does not have. The change itself reports an
// unreadable file.
func checkProfile(c *command.Call, name string) error {
	hint := "`waybill config profiles` shows the profiles, `waybill init --profile NAME` adds one"
	if name == "" {
		return command.Usagef(hint, "the NAME of the profile is empty")
	}
	user, err := config.ReadUserFile(c.Sources())
	if err != nil {
		return nil //nolint:nilerr // the change reports it
	}
	names := user.Profiles()
	if slices.Contains(names, name) {
		return nil
	}
	if near := config.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return command.Usagef(hint, "no profile %s in %s", command.Quoted(name), user.Path)
}

const newFile = "# Settings of waybill. \"waybill help environment\" lists every key.\n"

func newConfigEdit(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "edit",
		Short: "Edit your configuration file",
		Long: `edit opens a copy of your configuration file in $VISUAL or $EDITOR. When the editor
ends, the copy is checked and replaces the file. A copy that is not valid replaces
nothing: you can edit it again, or it stays in the same folder and the error names it.

Keys and secrets show as kept-secret-1 and so on. Leave that to keep one, or write
a new one in its place.`,
		Example: command.Example("waybill config edit", "EDITOR='code --wait' waybill config edit"),
		RunE:    f.RunBare(runConfigEdit),
	}
}

func runConfigEdit(ctx context.Context, c *command.Call, _ []string) error {
	editor, err := command.Editor(c.IO, c.Getenv, "use `waybill config set KEY VALUE`")
	if err != nil {
		return err
	}
	user, err := config.OpenUserFile(c.Sources())
	if err != nil {
		return err
	}
	before := user.Data
	if before == nil {
		before = []byte(newFile)
	}
	hidden, restore := user.Hide(before)
	copied, err := copyBeside(user.Path, hidden)
	if err != nil {
		return err
	}
	for {
		ended := c.IO.Edit(ctx, editor, copied)
		data, err := os.ReadFile(copied)
		data = restore(data)
		unchanged := err == nil && bytes.Equal(data, before)
		switch {
		case ended != nil && unchanged:
			_ = os.Remove(copied) // it holds no changes
			return command.EditorError(editor, ended, "")
		case ended != nil:
			err := os.WriteFile(copied, data, 0o600)
			return errors.Join(command.EditorError(editor, ended, "; your changes are in "+copied), err)
		case err != nil:
			return err
		case unchanged:
			c.IO.Note("%s is unchanged", user.Path)
			return os.Remove(copied)
		}
		if err = user.Check(data, copied); err == nil {
			err = edit.Replace(user, data)
		}
		if err == nil {
			c.IO.Note("Changed %s", user.Path)
			return os.Remove(copied)
		}
		hint := "fix the copy and move it: " + shell.Line("mv", copied, user.Path)
		if errors.Is(err, edit.ErrChanged) {
			hint = "run `waybill config edit` again; your changes are in " + copied
		}
		if e := os.WriteFile(copied, data, 0o600); e != nil { // for users who move it
			return errors.Join(err, e)
		}
		again, e := editAgain(ctx, c, err)
		if e != nil || !again {
			return errors.Join(&command.UsageError{Err: err, Hint: hint}, e)
		}
	}
}

func editAgain(ctx context.Context, c *command.Call, fault error) (bool, error) {
	if !c.IO.Interactive() || errors.Is(fault, edit.ErrChanged) {
		return false, nil
	}
	c.IO.Warning("%v", fault)
	return c.IO.Confirm(ctx, "Edit it again?")
}

func copyBeside(path string, data []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "edit.*.yaml") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), errors.Join(err, f.Close())
}
