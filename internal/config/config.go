// Package config determines the settings, and provides them checked and typed. Sources in order of precedence: flag,
// environment, project file, user file, default. The package writes nothing: package edit changes the user file.
//
// One table holds every setting. The names in files, environment and flags, the help, the listing and what a project
// file may set are all derived from it. The package opens no network connection or database. [Load] reads the two
// files of settings; files with secrets are read only when the secret is requested.
package config

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// Flag is a flag given on the command line.
type Flag struct {
	Name   string   // without dashes
	Values []string // as typed; one per occurrence
}

// Sources has the inputs from which settings are determined.
type Sources struct {
	Flags   []Flag   // of settings, and `config` and `same-key`
	Env     []string // NAME=value; an empty value counts as unset
	WorkDir string   // absolute; folder of the project file and base of relative paths; empty for none
	Home    string   // absolute; empty if unknown
}

// FromOS returns the sources of this process. A folder that can't be determined is empty.
func FromOS(flags []Flag) Sources {
	folder, _ := os.Getwd()
	home, _ := os.UserHomeDir()
	return Sources{Flags: flags, Env: os.Environ(), WorkDir: folder, Home: home}
}

// Config holds the value of every setting. It is read-only, and so safe for concurrent use. It can be printed: secrets
// show as `***`.
type Config struct {
	Output  string `mapstructure:"output"` // table, json, jsonl, csv or xlsx
	Color   string `mapstructure:"color"`  // auto, always or never
	Quiet   bool   `mapstructure:"quiet"`
	Verbose bool   `mapstructure:"verbose"`
	Debug   bool   `mapstructure:"debug"`
	Profile string `mapstructure:"profile"`  // DefaultProfile or another
	Account string `mapstructure:"account"`  // the base URL by default; may be empty
	BaseURL string `mapstructure:"base_url"` // see normalizeURL; empty for none
	// An absolute path, or a server, see [IsServer]; empty if it has no default, see [Config.StorePath].
	Store             string                       `mapstructure:"store"`
	StorePasswordFile string                       `mapstructure:"store_password_file"` // absolute path; empty for none
	InsecureStore     bool                         `mapstructure:"insecure_store"`
	Timeout           time.Duration                `mapstructure:"timeout"`         // 0 for the command's own
	RequestTimeout    time.Duration                `mapstructure:"request_timeout"` // 0 for 30s, v1 create 120s
	CAFile            string                       `mapstructure:"ca_file"`         // absolute path; empty for none
	InsecureHTTP      bool                         `mapstructure:"insecure_http"`
	Concurrency       int                          `mapstructure:"concurrency"` // at least 1
	BatchSize         int                          `mapstructure:"batch_size"`  // rows; 0 for as many as the service takes
	Rate              float64                      `mapstructure:"rate"`        // requests per second; 0 for no limit
	Encoding          string                       `mapstructure:"encoding"`    // empty to detect it
	Map               map[string]string            `mapstructure:"map"`         // field, see MapFields, to header
	Maps              map[string]map[string]string `mapstructure:"maps"`        // saved mappings by name
	Carriers          map[string]string            `mapstructure:"carriers"`    // case-insensitive name to code
	StripSpaces       bool                         `mapstructure:"strip_spaces"`
	KeepColumns       bool                         `mapstructure:"keep_columns"`
	Statuses          map[string]string            `mapstructure:"statuses"` // number or name as sent, to the name shown
	// Statuses without the project file's names, which are for display only.
	OwnStatuses       map[string]string `mapstructure:"own_statuses"`
	Query             Query             `mapstructure:"query"`
	Create            Create            `mapstructure:"create"`
	AssumeUnprocessed []int             `mapstructure:"assume_unprocessed"` // HTTP statuses
	Webhook           Webhook           `mapstructure:"webhook"`
	Listen            Listen            `mapstructure:"listen"`

	key      apiKey
	sameKey  bool                                            // the key may go to any base URL
	hook     Secret                                          // value of webhook.secret
	lookup   func(variable string) (text string, isSet bool) // reads the environment
	entries  []Entry
	origins  map[string]Origin
	warnings []string
}

// Query configures queries for trackings.
type Query struct {
	// TrackingNumberParam is the query parameter for a tracking number.
	//
	// Assumed: trackingNumber; the interface does not show its name.
	TrackingNumberParam string            `mapstructure:"tracking_number_param"`
	Absent              []tracking.Absent `mapstructure:"absent"` // besides 404
}

// Create configures how the response to a create is read.
type Create struct {
	Accepted []tracking.Match `mapstructure:"accepted"` // all must match; empty for the built-in rules
}

// Webhook configures how deliveries are verified. [Config.WebhookSecrets] returns the secrets.
type Webhook struct {
	Verify  string                    `mapstructure:"verify"`  // enforce, observe or off; never empty
	Scheme  string                    `mapstructure:"scheme"`  // a name in Schemes, or of a preset; empty for none
	Secrets []string                  `mapstructure:"secrets"` // env:NAME or file:ABSOLUTE-PATH
	Schemes map[string]webhook.Scheme `mapstructure:"schemes"` // names as written
}

// Listen configures where deliveries are received, and how much of them is kept.
type Listen struct {
	Addr          string `mapstructure:"addr"`           // HOST:PORT; port 0 for any free port
	MaxBody       Size   `mapstructure:"max_body"`       // at least 1
	MaxUnverified Size   `mapstructure:"max_unverified"` // as inbox.Retention counts; 0 keeps none
}

// Load returns the value of every setting. The error is a [*KeyError] that names the flag, the variable, or the file,
// line and key at fault. A missing base URL, API key or store is not an error, as not every command needs one.
func Load(src Sources) (Config, error) {
	l, err := newLoader(src)
	if err != nil {
		return Config{}, err
	}
	user, errUser := l.user()
	project, errProject := l.project()
	profile, _, errProfile := user.Profile()
	if err := cmp.Or(errUser, errProject, errProfile); err != nil {
		return Config{}, err
	}
	return l.decide([]layer{user.profiles[DefaultProfile], user.profiles[profile], project, l.environment, l.flags})
}

// RequireBaseURL returns the base URL, or a [*KeyError] that wraps [ErrNoBaseURL].
func (c Config) RequireBaseURL() (string, error) {
	if c.BaseURL == "" {
		return "", &KeyError{
			Key: "base_url", Message: ErrNoBaseURL.Error(), Err: ErrNoBaseURL,
			Hint: "run `waybill init`, set WAYBILL_BASE_URL, or pass --base-url URL",
		}
	}
	return c.BaseURL, nil
}

// StorePath returns the store's path or server, see [IsServer]; a [*KeyError] if none is set or known by default.
func (c Config) StorePath() (string, error) {
	if c.Store == "" {
		return "", c.Refuse("store", "there is no home folder to put it in", "pass --store FILE, or set WAYBILL_STORE")
	}
	return c.Store, nil
}

// SetByProject returns the keys that the project file sets, as a whole or for a single name.
func (c Config) SetByProject(keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool {
		return !slices.ContainsFunc(c.entries, func(e Entry) bool {
			return e.Origin.Level == FromProject && (e.Key == key || strings.HasPrefix(e.Key, key+"."))
		})
	})
}

// Warnings returns warnings about environment variables and a project file that are ignored.
func (c Config) Warnings() []string { return slices.Clone(c.warnings) }

// Origin returns the origin of a setting's value; the zero value, a default, for an unknown key.
func (c Config) Origin(key string) Origin { return c.origins[key] }

// Refuse returns a [*KeyError] at the origin of a setting whose value the caller can't use. hint may be empty.
func (c Config) Refuse(key, message, hint string) error {
	return at(wrong(message, hint), key, c.Origin(key))
}
