package setup

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/config/edit"
	"github.com/waybill-cli/waybill/internal/keyring"
	"github.com/waybill-cli/waybill/internal/render"
	"github.com/waybill-cli/waybill/internal/term"
	"github.com/waybill-cli/waybill/internal/tracking"
)

// NewAuth returns the command group auth.
func NewAuth(f *command.Factory) *cobra.Command {
	group := &cobra.Command{Use: "auth", Short: "Store, check and remove the API key"}
	group.AddCommand(newAuthLogin(f), newAuthStatus(f), newAuthLogout(f))
	return group
}

func newAuthLogin(f *command.Factory) *cobra.Command {
	var inKeyring bool
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Store the API key",
		Long: `login reads the API key at a prompt, or from --api-key-file (- for standard input),
tries it with one query that changes nothing, and stores it in your configuration file, which
only you can read (mode 0600), below the profile in force, together with the base URL that
it is for: a stored key is sent to no other one.

--keyring stores it in the keyring of your system instead: Secret Service, Keychain
or Credential Manager. Without a keyring that is an error; the key does not go into
the file. The keyring must be unlocked when waybill needs the key.

A key that the service refuses (401, 403) is not stored.`,
		Example: command.Example("waybill auth login", "waybill auth login --api-key-file key.txt",
			"pass show waybill | waybill auth login --api-key-file -"),
		RunE: f.RunE(func(ctx context.Context, c *command.Call, _ []string) error { return runLogin(ctx, c, inKeyring) }),
	}
	cmd.Flags().BoolVar(&inKeyring, "keyring", false, "store the key in the keyring of your system")
	return cmd
}

type loginJSON struct {
	Profile     string   `json:"profile"`
	StoredIn    string   `json:"storedIn"` // file or keyring
	Path        string   `json:"path"`     // of the configuration file
	Fingerprint string   `json:"fingerprint"`
	Check       keyCheck `json:"check"`
}

func runLogin(ctx context.Context, c *command.Call, inKeyring bool) error {
	key, err := loginKey(ctx, c)
	if err != nil {
		return err
	}
	j := loginJSON{Profile: c.Config.Profile, StoredIn: "file", Check: keyCheck{Result: keyNotChecked}}
	j.Fingerprint = keyPrint(key.Reveal())
	if c.Config.BaseURL == "" {
		c.IO.Note("The key was not tried: no base URL is set")
	} else if j.Check = checkKey(ctx, c, c.Config.BaseURL, key.Reveal()); j.Check.err != nil {
		return notStored(j.Check)
	}
	if j.Path, err = storeKey(ctx, c, key, inKeyring); err != nil {
		return err
	}
	place := j.Path
	if inKeyring {
		j.StoredIn, place = "keyring", "the keyring"
	}
	return c.Out.Result(j, "Stored the API key in %s (%s)", place, j.Check.text())
}

func notStored(k keyCheck) error {
	code, hint := command.CodeAndHint(k.err)
	e := &command.ExitError{Code: code, Err: fmt.Errorf("nothing was stored: %w", k.err), Hint: hint}
	if k.Result != keyRefused {
		e.Hint = "try again later, or write it without a query with `waybill config set api_key`"
	}
	return e
}

func loginKey(ctx context.Context, c *command.Call) (config.Secret, error) {
	switch {
	case c.Cmd.Flags().Changed("api-key-file"):
		key, err := c.Key()
		return config.NewSecret(key), err
	case !c.IO.Interactive():
		return config.Secret{}, command.Usagef("pass --api-key-file FILE, or - for standard input",
			"there is no terminal to ask for the API key")
	}
	return askSecret(ctx, c.IO, "API key (not shown):")
}

// storeKey stores a key and its base URL in the keyring or the configuration file, and removes other key settings.
func storeKey(ctx context.Context, c *command.Call, key config.Secret, inKeyring bool) (string, error) {
	profile := c.Config.Profile
	user, err := config.OpenUserFile(c.Sources())
	if err != nil {
		return "", err
	}
	changes := []edit.Change{{Key: "api_key", Value: key}, {Key: "api_key_keyring"}, {Key: "api_key_file"}}
	name, base := "", c.Config.BaseURL
	if base != "" && !config.IsSameBaseURL(user.Text(profile, "base_url"), base) {
		changes = append(changes, edit.Change{Key: "base_url", Value: base})
	}
	if inKeyring {
		if name = profile; profile != config.DefaultProfile {
			name = "profile " + profile
		}
		if err := c.Keyring().Set(ctx, name, config.KeyringEntry(key, base)); err != nil {
			return "", err
		}
		changes[0], changes[1] = edit.Change{Key: "api_key"}, edit.Change{Key: "api_key_keyring", Value: name}
	}
	path, err := c.EditUser(changes...)
	if err != nil {
		return "", err
	}
	if len(changes) > 3 {
		c.IO.Note("Set base_url to %s%s, the service that the key is for", base, ofProfile(profile))
	}
	forgetEntry(ctx, c, user, profile, name)
	warnOtherKey(c, path)
	return path, nil
}

func warnOtherKey(c *command.Call, path string) {
	left, err := config.Load(onlyFlags(c, func(name string) bool { return name != "api-key-file" }))
	setting := left.APIKeySetting()
	if o := left.Origin(setting); err == nil && setting != "" && o.Level > config.FromProfile {
		c.IO.Warning("%s sets an API key too, which overrides %s", o, path)
	}
}

func onlyFlags(c *command.Call, keep func(name string) bool) config.Sources {
	src := c.Sources()
	src.Flags = slices.DeleteFunc(slices.Clone(src.Flags), func(g config.Flag) bool { return !keep(g.Name) })
	return src
}

type authJSON struct {
	Profile     string   `json:"profile"`
	BaseURL     string   `json:"baseUrl"`
	Setting     string   `json:"setting"`     // api_key, api_key_file or api_key_keyring; empty for none
	Origin      string   `json:"origin"`      // what set it
	Fingerprint string   `json:"fingerprint"` // differs from key to key; empty without a key
	Check       keyCheck `json:"check"`
}

func newAuthStatus(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show where the API key comes from and if it is refused",
		Long: `status shows what sets the API key, its fingerprint, and the result of one query
that changes nothing. The key itself is not shown; two keys have two fingerprints.

Exit status: 0 if the service did not refuse the key or was not asked, 4 if it did
or if there is no key.`,
		Example: command.Example("waybill auth status", "waybill auth status -o json"),
		RunE:    f.RunE(runStatus),
	}
}

func runStatus(ctx context.Context, c *command.Call, _ []string) error {
	cfg := c.Config
	j := authJSON{Profile: cfg.Profile, BaseURL: cfg.BaseURL, Setting: cfg.APIKeySetting()}
	j.Check.Result = keyNotChecked
	if j.Setting != "" {
		j.Origin = cfg.Origin(j.Setting).String()
	}
	key, err := c.ServiceKey(cfg.BaseURL)
	if key != "" {
		j.Fingerprint = keyPrint(key)
		if cfg.BaseURL != "" && err == nil {
			j.Check = checkKey(ctx, c, cfg.BaseURL, key)
			err = j.Check.err
		}
	}
	return errors.Join(printStatus(c.Out, j, cfg.APIKeyFile()), err)
}

func printStatus(out *command.Output, j authJSON, file string) error {
	if out.Machine() {
		return out.Object(j)
	}
	place := cmp.Or(j.Setting, "none")
	if file != "" {
		place += " " + file
	}
	return out.Fields([]render.Field{
		{Name: "Profile", Value: j.Profile},
		{Name: "Base URL", Value: j.BaseURL},
		{Name: "API key", Value: place},
		{Name: "Set by", Value: j.Origin},
		{Name: "Fingerprint", Value: j.Fingerprint},
		{Name: "Check", Value: j.Check.text()},
	})
}

func newAuthLogout(f *command.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Remove the stored API key",
		Long: `logout removes the API key from your configuration file, below the profile in force,
and from the keyring. A key file that the configuration names is
kept; only its name is removed. A key that still comes from elsewhere is reported.

The service still accepts the key: revoke it in the portal under Settings, API &
Webhooks.`,
		Example: command.Example("waybill auth logout", "waybill auth logout --profile test"),
		RunE:    f.RunE(runLogout),
	}
}

func runLogout(ctx context.Context, c *command.Call, _ []string) error {
	profile := c.Config.Profile
	user, err := config.OpenUserFile(c.Sources())
	if err != nil {
		return err
	}
	var changes []edit.Change
	for _, key := range []string{"api_key", "api_key_file", "api_key_keyring"} {
		if user.Has(profile, key) {
			changes = append(changes, edit.Change{Key: key})
		}
	}
	if len(changes) == 0 {
		c.IO.Note("No API key is stored in %s", user.Path+ofProfile(profile))
	} else if _, err := c.EditUser(changes...); err != nil {
		return err
	}
	for _, change := range changes {
		c.IO.Note("Removed %s from %s", change.Key, user.Path+ofProfile(profile))
	}
	forgetEntry(ctx, c, user, profile, "")
	left, err := config.Load(c.Sources())
	if setting := left.APIKeySetting(); err == nil && setting != "" {
		c.IO.Warning("an API key is still set: %s by %s", setting, left.Origin(setting))
	}
	return err
}

const (
	keyNotRefused = "not_refused" // the service answered a query
	keyRefused    = "refused"     // with 401 or 403
	keyUnclear    = "unclear"     // no response, or one that shows nothing of the key
	keyNotChecked = "not_checked"
)

type keyCheck struct {
	Result     string `json:"result"`
	HTTPStatus int    `json:"httpStatus"` // 0 if no response came
	Message    string `json:"message"`    // of the service, as sent, or what went wrong

	err error // why the key was refused or could not be checked; else nil
}

func (k keyCheck) text() string {
	switch k.Result {
	case keyNotRefused:
		return "not refused: the service answered a query for a tracking that does not exist"
	case keyRefused:
		return "refused: " + k.Message
	case keyUnclear:
		return "not known: " + k.Message
	}
	return "not checked"
}

// checkKey checks a key by one query for a tracking that can't exist. It changes nothing at the service.
//
// Assumed: a service that refuses a key answers 401 or 403.
func checkKey(ctx context.Context, c *command.Call, base, key string) keyCheck {
	client, err := c.NewClient(base, key)
	if err != nil {
		return keyCheck{Result: keyUnclear, Message: err.Error(), err: err}
	}
	defer client.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(c.Config.Timeout, command.QueryTimeout), command.ErrTimeUp)
	defer cancel()
	item := tracking.Item{ReferID: "waybill-check-" + rand.Text()[:12], Number: "WB" + rand.Text()[:14]}
	f := client.Find(ctx, tracking.Query{ReferID: item.ReferID}, item)
	status, _ := errors.AsType[*api.StatusError](f.Err)
	k := keyCheck{Result: keyUnclear, HTTPStatus: f.Status, Message: f.Body.ErrorText(), err: f.Err}
	switch {
	case f.Unauthorized:
		k.Result = keyRefused
	case f.Status == 0, status == nil && f.Err != nil, f.Systemic, f.Throttled,
		status != nil && status.Status >= http.StatusInternalServerError:
	case !f.Body.JSON():
		k.err = &api.AnswerError{Status: f.Status, Problem: "not JSON"}
	default:
		k.Result, k.err = keyNotRefused, nil
	}
	if k.err != nil {
		k.Message = k.err.Error()
	}
	return k
}

// keyPrint returns a fingerprint that distinguishes API keys and reveals nothing about them.
func keyPrint(key string) string {
	sum := sha256.Sum256([]byte("waybill API key\x00" + key))
	return hex.EncodeToString(sum[:4])
}

// forgetEntry removes the unused key of a profile from the keyring. A failure is only a warning.
func forgetEntry(ctx context.Context, c *command.Call, user config.UserFile, profile, used string) {
	name := user.Text(profile, "api_key_keyring")
	if name == "" || name == used {
		return
	}
	err := c.Keyring().Delete(ctx, name)
	switch {
	case err == nil:
		c.IO.Note("Removed the API key from the keyring")
	case !errors.Is(err, keyring.ErrNotFound):
		c.IO.Warning("the API key is still in the keyring: %v", err)
	}
}

func askSecret(ctx context.Context, io *term.IO, question string) (config.Secret, error) {
	for {
		secret, err := askOptionalSecret(ctx, io, question)
		if err != nil || !secret.IsZero() {
			return secret, err
		}
		io.Warning("it can't be empty; Ctrl-C ends without a change")
	}
}

func askOptionalSecret(ctx context.Context, io *term.IO, question string) (config.Secret, error) {
	for {
		text, err := io.AskSecret(ctx, "%s", question)
		if err != nil || text == "" {
			return config.Secret{}, err
		}
		secret, err := config.ParseSecret(text)
		if err == nil {
			return secret, nil
		}
		io.WarningWith(term.Failure{Message: "the answer " + err.Error(), Hint: command.HintOf(err)})
	}
}
