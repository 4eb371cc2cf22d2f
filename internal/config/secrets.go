package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/disk"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// masked replaces secrets in output.
const masked = "***"

// Secret is a text that is hidden in output: formatted, marshalled or logged it is `***`, or "" if it is empty.
// [Secret.Reveal] returns the text.
//
// The text is behind a pointer, so that a formatter that can't call methods, as for an unexported field, prints an
// address and not the text.
type Secret struct {
	text *string // nil if empty
}

// NewSecret returns s as a Secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{text: &s}
}

// Reveal returns the text. The caller must not print, log or store it.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether the text is empty.
func (s Secret) IsZero() bool { return s.text == nil }

// String returns `***`, or "" if the text is empty.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return masked
}

// Format writes [Secret.String] for every verb.
func (s Secret) Format(f fmt.State, _ rune) {
	// The owner of the writer behind f reports its errors.
	_, _ = io.WriteString(f, s.String())
}

// MarshalText returns [Secret.String]; JSON, YAML and slog use it. It never fails.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MaxSecretFile is the maximum size of a file with a secret, in bytes.
const MaxSecretFile = 64 << 10

const stdinName = "-"

// apiKey locates the API key. Its value is a [Secret], the path of a file, stdinName, or the name of a keyring entry.
type apiKey struct {
	value
	setting string // one of apiKeySettings; empty for none
	service string // the base_url of the key's level or the nearest lower one; empty for none
}

// APIKey is the API key. It is hidden in output, see [Secret].
type APIKey struct {
	Secret  Secret
	Origin  Origin
	Service string // the base URL that the keyring stores with it; empty elsewhere
}

func (v value) text() string {
	if s, ok := v.v.(Secret); ok {
		return s.Reveal()
	}
	t, _ := v.v.(string)
	return t
}

// apiKeySettings returns the settings that locate the API key. Each level may set one of them.
func apiKeySettings() []string { return []string{"api_key", "api_key_file", "api_key_keyring"} }

func findAPIKey(layers []layer) (apiKey, error) {
	for i, layer := range slices.Backward(layers) {
		var key apiKey
		for _, name := range apiKeySettings() {
			switch val := layer[name]; {
			case val.text() == "":
			case key.setting == "":
				key = apiKey{value: val, setting: name}
			default:
				other := key.setting
				if key.origin.Name != "" {
					other += " (" + key.origin.Name + ")"
				}
				return apiKey{}, at(wrong("conflicts with "+other, "remove one of them"), name, val.origin)
			}
		}
		if key.setting == "" {
			continue
		}
		for _, below := range slices.Backward(layers[:i+1]) {
			key.service = cmp.Or(key.service, below["base_url"].text())
		}
		return key, nil
	}
	return apiKey{}, nil
}

// CheckService refuses to send the key to a base URL that it does not belong to. A key belongs to the base URL of its
// own level (flag, environment, profile, user file), or else of the nearest level below; a key in the keyring to the
// base URL stored with it. So a key from the environment may go to the base URL of the user file, but a key from the
// user file not to a base URL that only the environment, a flag or a profile sets. A key from the environment or a
// flag, with no base URL at or below its level, may go to any. So may every key with the flag --same-key. The error is
// a [*KeyError] that names both.
func (c Config) CheckService(k APIKey, base string) error {
	const other = "; a key for it: `waybill auth login --profile NAME --base-url URL`"
	kept := cmp.Or(k.Service, c.key.service)
	if normal, err := normalizeURL(strings.TrimSpace(kept)); err == nil {
		kept = normal
	}
	here, _ := SameLoopback(base)
	there, _ := SameLoopback(kept)
	switch from := c.key.origin; {
	case c.sameKey, here == there, kept == "" && from.Level >= FromEnv:
		return nil
	case kept == "":
		return c.Refuse("base_url", "the API key of "+from.String()+" is kept without a base URL, so it is not sent to "+base,
			"store them together: `waybill config set base_url "+base+"`; once: --same-key"+other)
	default:
		return c.Refuse("base_url", "the API key of "+from.String()+" belongs to "+kept+", so it is not sent to "+base,
			"if the key is for both, pass --same-key"+other)
	}
}

// APIKeyFromStdin reports whether [Config.ReadAPIKey] reads stdin, which then can't be used for data.
func (c Config) APIKeyFromStdin() bool {
	return c.key.setting == "api_key_file" && c.key.text() == stdinName
}

// APIKeyFile returns the file of the API key; empty if the key has another source.
func (c Config) APIKeyFile() string {
	if c.key.setting != "api_key_file" || c.APIKeyFromStdin() {
		return ""
	}
	return c.key.text()
}

// ReadAPIKey returns the API key and its origin. A flag wins over the environment, a profile and the top level of the
// user file, in this order. It reads stdin only if the key's file is `-`. It calls keyring, which returns the content
// of a keyring entry, see [KeyringEntry], only if an entry is named.
//
// The error is [ErrNoAPIKey] if no key is set, else a [*KeyError].
//
// Interface: Authentication, 1 and 2.
func (c Config) ReadAPIKey(stdin io.Reader, keyring func(name string) (string, error)) (APIKey, error) {
	text, service := c.key.text(), ""
	key := NewSecret(text)
	var err error
	switch c.key.setting {
	case "":
		return APIKey{}, ErrNoAPIKey
	case "api_key_file":
		key, err = readSecret(text, stdin)
	case "api_key_keyring":
		entry, errEntry := keyring(text)
		text, service, _ = strings.Cut(entry, "\n")
		key, err = cleanSecret([]byte(text))
		if errEntry != nil {
			err = &KeyError{Message: Cause(errEntry), Err: errEntry}
		}
	}
	if err == nil {
		err = checkAPIKey(key)
	}
	if c.key.setting == "api_key_file" {
		err = in("key file "+text, err)
	}
	if err != nil {
		return APIKey{}, at(err, c.key.setting, c.key.origin)
	}
	return APIKey{key, c.key.origin, service}, nil
}

// KeyringEntry returns the content of a keyring entry: the key, and on a second line its base URL, if known.
func KeyringEntry(key Secret, base string) string {
	return strings.TrimSuffix(key.Reveal()+"\n"+base, "\n")
}

// APIKeySetting returns the setting with the API key: api_key, api_key_file or api_key_keyring; empty if none is set.
func (c Config) APIKeySetting() string { return c.key.setting }

// WebhookSecrets reads the webhook secrets; it returns nil if none is set. Each call reads them anew. Their names are
// env:NAME, file:PATH, or webhook.secret for a secret in the user file. The error is a [*KeyError], also if only one of
// several is missing or empty.
func (c Config) WebhookSecrets() ([]webhook.Secret, error) {
	if len(c.Webhook.Secrets) == 0 {
		if c.hook.IsZero() {
			return nil, nil
		}
		name := "webhook.secret"
		if o := c.Origin(name); o.Level == FromEnv {
			name = "env:" + o.Name
		}
		return []webhook.Secret{{Name: name, Value: []byte(c.hook.Reveal())}}, nil
	}
	var all []webhook.Secret
	for _, place := range c.Webhook.Secrets {
		s, err := secretAt(place, c.lookup)
		if err != nil {
			return nil, at(err, "webhook.secrets", c.Origin("webhook.secrets"))
		}
		all = append(all, webhook.Secret{Name: place, Value: []byte(s.Reveal())})
	}
	return all, nil
}

// SecretFiles returns the files that settings name for the API key, the store's password and webhook secrets.
func (c Config) SecretFiles() []string {
	all := slices.Concat([]string{c.APIKeyFile(), c.StorePasswordFile}, c.secretsAt("file:"))
	return slices.DeleteFunc(all, func(file string) bool { return file == "" })
}

// secretsAt returns the places in webhook.secrets that begin with kind, without it.
func (c Config) secretsAt(kind string) []string {
	var all []string
	for _, place := range c.Webhook.Secrets {
		if name, ok := strings.CutPrefix(place, kind); ok {
			all = append(all, name)
		}
	}
	return all
}

// StorePassword reads the store's password from its file; zero if no file is set. The error is a [*KeyError].
func (c Config) StorePassword() (Secret, error) {
	if c.StorePasswordFile == "" {
		return Secret{}, nil
	}
	password, err := readSecret(c.StorePasswordFile, nil)
	err = in("password file "+c.StorePasswordFile, err)
	return password, at(err, "store_password_file", c.Origin("store_password_file"))
}

func secretAt(place string, lookup func(name string) (string, bool)) (s Secret, err error) {
	if kind, name, _ := strings.Cut(place, ":"); kind == "file" {
		s, err = readSecret(name, nil)
	} else if text, ok := lookup(name); ok {
		s, err = cleanSecret([]byte(text))
	} else {
		err = wrong("environment variable not set", "set "+name+", or remove the entry")
	}
	return s, in(place, err)
}

// ReadSecret returns the secret at env:NAME or file:PATH. The error is a [*KeyError]. It does not show a place that is
// not valid, as it may be a secret.
func ReadSecret(place string, getenv func(string) string) (Secret, error) {
	if want := placeError(place); want != "" {
		return Secret{}, wrong("must be "+want, "")
	}
	return secretAt(place, func(name string) (string, bool) {
		v := getenv(name)
		return v, v != ""
	})
}

// readSecret reads a secret, one line, from a file, a pipe such as a password manager's, or for `-` from stdin.
func readSecret(path string, stdin io.Reader) (Secret, error) {
	r := stdin
	if path != stdinName {
		f, err := os.Open(path)
		var info fs.FileInfo
		if err == nil {
			defer func() { _ = f.Close() }() // only read from: nothing is lost
			info, err = f.Stat()
		}
		if err != nil {
			return Secret{}, &KeyError{Message: Cause(err), Hint: "check the path and its permissions", Err: err}
		}
		if info.Mode()&fs.ModeDevice == 0 { // a terminal belongs to a group that may write
			if err := refuseChangers(path, disk.ChangersOf(path, info)); err != nil {
				return Secret{}, err
			}
		}
		r = f
	}
	if r == nil {
		return Secret{}, wrong("standard input can't be used here", "name a file")
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxSecretFile+1))
	if err != nil {
		return Secret{}, &KeyError{Message: Cause(err), Err: err}
	}
	if len(data) > MaxSecretFile {
		const hint = "the file must contain the secret and nothing else"
		return Secret{}, wrong(fmt.Sprintf("larger than %d bytes", MaxSecretFile), hint)
	}
	return cleanSecret(data)
}

// cleanSecret removes one trailing line break, and refuses data that can't be a secret.
func cleanSecret(data []byte) (Secret, error) {
	const hint = "the file must contain only the secret, on one line, as plain text"
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return Secret{}, wrong("is UTF-16", "save it as plain text (UTF-8 without BOM)")
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return Secret{}, wrong("starts with a byte order mark", "save it as plain text (UTF-8 without BOM)")
	}
	s := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case s == "":
		return Secret{}, wrong("is empty", hint)
	case !utf8.ValidString(s):
		return Secret{}, wrong("is not UTF-8", hint)
	case strings.ContainsFunc(s, unicode.IsControl):
		return Secret{}, wrong("contains a line break or another control character", hint)
	}
	return NewSecret(s), nil
}

// checkAPIKey refuses a key that an HTTP header would change.
func checkAPIKey(s Secret) error {
	if strings.TrimSpace(s.Reveal()) != s.Reveal() {
		return wrong("has space at its start or end", "copy the key again without the space")
	}
	return nil
}

// Cause returns the message of an error, without the path of the file.
func Cause(err error) string {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}

// ReadSecretFile returns the secret in a one-line file; `-` is stdin. The error is a [*KeyError] that names the file.
func ReadSecretFile(path string, stdin io.Reader) (Secret, error) {
	s, err := readSecret(path, stdin)
	if path == stdinName {
		path = "standard input"
	}
	return s, in(path, err)
}

// ParseSecret returns a typed secret. It refuses surrounding space and control characters with a [*KeyError] that does
// not contain the text.
func ParseSecret(typed string) (Secret, error) {
	s, err := cleanSecret([]byte(typed))
	if err == nil {
		err = checkAPIKey(s)
	}
	return s, err
}
