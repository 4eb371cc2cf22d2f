package config

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// EnvPrefix is the prefix of all environment variables that are settings.
const EnvPrefix = "WAYBILL_"

// ProjectFile is the name of the project file. Only the working folder is searched.
const ProjectFile = ".waybill.yaml"

// Kind is the form of a setting's value.
type Kind string

// The kinds. In a file, lists and names are written as YAML; in the environment a list is split at commas, names are
// `NAME=value` split at commas, and both may be written as JSON instead. Objects are JSON in the environment.
const (
	KindText     Kind = "text"
	KindChoice   Kind = "choice"   // one of Choices
	KindBool     Kind = "boolean"  // true or false
	KindInteger  Kind = "integer"  // decimal
	KindNumber   Kind = "number"   // decimal, with or without fraction
	KindDuration Kind = "duration" // see ParseDuration
	KindSize     Kind = "size"     // see ParseSize
	KindPath     Kind = "path"     // relative to its file's folder, or else to the working folder; ~/ is the home folder
	KindSecret   Kind = "secret"   // text that is never shown
	KindList     Kind = "list"     // of texts
	KindIntegers Kind = "integers" // a list of integers
	KindNames    Kind = "names"    // name to text; levels are merged name by name
	KindMatches  Kind = "matches"  // a list of [tracking.Match]
	KindAbsents  Kind = "absents"  // a list of [tracking.Absent]
	KindMaps     Kind = "maps"     // name to a value of KindNames; levels add up, name by name
	KindSchemes  Kind = "schemes"  // name to [webhook.Scheme]; levels add up, name by name
	kindLiteral  Kind = "literal"  // JSON text of a scalar or an empty value
)

// Setting describes one setting: its three spellings and the values that it accepts.
type Setting struct {
	Key     string // as in the files, dotted where nested
	Env     string // as in the environment
	Flag    string // without dashes; empty if no flag sets it
	Kind    Kind
	Choices []string // for KindChoice
	Default string   // in words; empty for none
	Help    string   // one line
	Value   string   // name of the flag's value in help; empty for flags of every command
	Section string   // of the flag in help; empty for none
	Why     string   // why the project file may not set it; empty if it may

	preset  any                 // default as decoded; the zero Secret for secrets
	check   func(string) string // for a text, item or named value: returns what is expected instead, or ""
	private bool                // a refused value is not shown: it may hold a secret
	fields  bool                // for names: they are fields, in any spelling; else case is ignored
	lastCut bool                // for names: NAME=VALUE splits at the last `=`, not the first
	least   float64             // of numbers and sizes
	most    float64             // of numbers and sizes
}

// Sections of the help with flags of settings.
const (
	InputSection    = "Input"
	RequestsSection = "Requests"
)

// Reasons why the project file, which may come with a cloned repository, may not set a key.
const (
	whyAddress = "it would decide where the API key is sent"
	whyKey     = "keys belong to the user"
	whyLedger  = "it would decide which trackings count as already created"
	whyMeaning = "it would decide what counts as accepted or sent again"
	whyVerify  = "it would decide which deliveries are trusted"
	whyKept    = "the user decides what is kept"
	whyLoud    = "the user decides how much is printed"
)

// Settings returns every setting, in the order of the help. The slice is shared and must not be modified.
func Settings() []Setting { return table() }

// table returns every setting. It is built once.
var table = sync.OnceValue(func() []Setting { return slices.Concat(general(), creating(), receiving()) })

func define(key string, kind Kind, help string, s Setting) Setting {
	s.Key, s.Kind, s.Help = key, kind, help
	s.Env = EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
	if kind == KindSecret {
		s.preset = Secret{}
	}
	s.Default = cmp.Or(s.Default, text(s.preset))
	return s
}

// general returns the settings of every command.
func general() []Setting {
	return []Setting{
		define("output", KindChoice, "output format",
			Setting{Flag: "output", Choices: []string{"table", "json", "jsonl", "csv", "xlsx"}, preset: "table"}),
		define("color", KindChoice, "when to use color",
			Setting{Flag: "color", Choices: []string{"auto", "always", "never"}, preset: "auto"}),
		define("quiet", KindBool, "no progress and no notes on stderr",
			Setting{Flag: "quiet", Why: whyLoud, preset: false}),
		define("verbose", KindBool, "more detail on stderr", Setting{Flag: "verbose", Why: whyLoud, preset: false}),
		define("debug", KindBool, "print requests and responses on stderr, secrets masked",
			Setting{Flag: "debug", Why: whyLoud, preset: false}),
		define("profile", KindText, "profile in the user file; the settings at its top are default",
			Setting{Flag: "profile", Why: whyAddress, preset: DefaultProfile, check: filledLineError}),
		define("account", KindText, "name of the account that the trackings belong to",
			Setting{Flag: "account", Why: whyLedger, Default: "the base URL", preset: "", check: lineError}),
		define("base_url", KindText, "address of the service, https://HOST[/PATH]",
			Setting{Flag: "base-url", Why: whyAddress, preset: ""}),
		define("api_key", KindSecret, "the API key; in the user file only if no other user can read the file",
			Setting{Why: whyKey}),
		define("api_key_file", KindPath, "file with the API key; - is standard input (flag and environment only)",
			Setting{Flag: "api-key-file", Why: whyKey, preset: ""}),
		define("api_key_keyring", KindText,
			"name of the entry with the API key in the system's keyring; `waybill auth login --keyring` sets it",
			Setting{Why: whyKey, preset: "", check: lineError, private: true}),
		define("store", KindPath, "database of runs, rows and deliveries: "+
			"a file, postgres://USER@HOST/DATABASE[?schema=NAME], or service=NAME",
			Setting{Flag: "store", Why: whyLedger, Default: storeHelp, preset: "", check: storePlaceError, private: true}),
		define("store_password_file", KindPath,
			"file with the password for a store on PostgreSQL, instead of PGPASSWORD or PGPASSFILE",
			Setting{Why: whyLedger, preset: ""}),
		define("insecure_store", KindBool,
			"allow PostgreSQL on other hosts without verified TLS: others may read and change the store",
			Setting{Flag: "insecure-store", Why: whyLedger, preset: false}),
		define("ca_file", KindPath, "PEM file with additional certificate authorities to trust",
			Setting{Flag: "ca-file", Why: whyAddress, preset: ""}),
		define("insecure_http", KindBool, "allow http to other hosts: the API key is sent unencrypted",
			Setting{Flag: "insecure-http", Why: whyAddress, preset: false}),
		define("timeout", KindDuration, "how long a command retries or waits",
			Setting{Flag: "timeout", Default: "depends on the command", preset: time.Duration(0)}),
		define("request_timeout", KindDuration, "how long one request may take",
			Setting{Flag: "request-timeout", Default: "30s, create --sync 2m", preset: time.Duration(0)}),
	}
}

// creating returns the settings of requests, input files and trackings.
func creating() []Setting {
	return []Setting{
		define("concurrency", KindInteger, "how many requests run at once",
			Setting{Flag: "concurrency", Value: "N", Section: RequestsSection, preset: 8, least: 1, most: 256}),
		define("batch_size", KindInteger, "rows in one create request",
			Setting{
				Flag: "batch-size", Value: "N", Section: RequestsSection,
				Default: "0, as many as the service allows", preset: 0, most: 1_000_000,
			}),
		define("rate", KindNumber, "maximum requests per second",
			Setting{Flag: "rate", Value: "N", Section: RequestsSection, Default: "0, no limit", preset: 0.0, most: 100_000}),
		define("encoding", KindText, "encoding of input files, such as windows-1252",
			Setting{
				Flag: "encoding", Value: "ENCODING", Section: InputSection,
				Default: "UTF-8, or as the byte order mark says", preset: "", check: lineError,
			}),
		define("map", KindNames,
			"column of a field: FIELD=HEADER, fields "+strings.Join(MapFields(), ", ")+"; @NAME for a saved mapping",
			Setting{
				Flag: "map", Value: "FIELD=HEADER", Section: InputSection,
				preset: names{}, fields: true, check: emptyError,
			}),
		define(mapsKey, KindMaps, "saved mappings for --map @NAME: name, and the column of each field",
			Setting{preset: names{}}),
		define("carriers", KindNames, "code of a carrier name: NAME=CODE; NAME= lets the service identify the carrier",
			Setting{
				Flag: "carrier-map", Value: "NAME=CODE", Section: InputSection,
				preset: names{}, lastCut: true, check: lineError,
			}),
		define("strip_spaces", KindBool, "remove spaces inside tracking numbers",
			Setting{Flag: "strip-spaces", Section: InputSection, preset: false}),
		define("keep_columns", KindBool,
			"keep up to 16 columns of an input that are not sent, such as customer, with its rows",
			Setting{Why: whyKept, preset: true}),
		define("statuses", KindNames, "names of your own for statuses: number or label as sent, and the name",
			Setting{preset: names{}, check: filledLineError}),
	}
}

func receiving() []Setting {
	return []Setting{
		define("query.tracking_number_param", KindText, "query parameter for a tracking number",
			Setting{Why: whyMeaning, preset: "trackingNumber", check: identifierError}),
		define("query.absent", KindAbsents,
			"responses that mean \"no such tracking\": a list of {status, message, path, equals}",
			Setting{Why: whyMeaning, Default: "404 only", preset: []any{}}),
		define("create.accepted", KindMatches, "what the response to a successful create contains: a list of {path, equals}",
			Setting{Why: whyMeaning, Default: "built-in rules", preset: []any{}}),
		define("assume_unprocessed", KindIntegers, "HTTP statuses of a create that mean that nothing was stored",
			Setting{Why: whyMeaning, preset: []any{429}, least: 400, most: 599}),
		define("listen.addr", KindText, "address that listen binds to, HOST:PORT",
			Setting{Flag: "addr", Value: "HOST:PORT", Why: whyVerify, preset: "127.0.0.1:8377", check: HostPort}),
		define("listen.max_body", KindSize, "maximum size of a delivery's body",
			Setting{Flag: "max-body", Value: "SIZE", Why: whyVerify, preset: Size(5 << 20), least: 1, most: 1 << 30}),
		define("listen.max_unverified", KindSize,
			"disk space for unverified deliveries, an eighth of it per minute; 0 keeps none",
			Setting{Flag: "max-unverified", Value: "SIZE", Why: whyVerify, preset: Size(1 << 30), most: 1 << 50}),
		define("webhook.verify", KindChoice, "what happens to deliveries that do not verify",
			Setting{
				Choices: []string{"enforce", "observe", "off"}, Why: whyVerify,
				Default: "enforce when webhook.scheme is set, else observe", preset: "",
			}),
		define("webhook.scheme", KindText, "name of the signature scheme of deliveries",
			Setting{Why: whyVerify, preset: "", check: lineError}),
		define("webhook.secret", KindSecret, "the webhook secret, used when webhook.secrets is empty",
			Setting{Why: whyVerify}),
		define("webhook.secrets", KindList, "webhook secrets as env:NAME or file:PATH; any may match",
			Setting{Flag: "secret-from", Value: "PLACE", Why: whyVerify, preset: []any{}, check: placeError, private: true}),
		define("webhook.schemes", KindSchemes, "signature schemes by name; names are case-sensitive",
			Setting{Why: whyVerify, preset: names{}}),
	}
}

// named splits the key of a name in a map into the map's setting and the name as stored; the zero setting for others.
func named(key string) (Setting, string) {
	for _, s := range table() {
		name, ok := strings.CutPrefix(key, s.Key+".")
		if !ok || s.Kind != KindNames && s.Kind != KindMaps && s.Kind != KindSchemes {
			continue
		}
		if s.fields {
			name = cmp.Or(field(name), name)
		}
		return s, name
	}
	return Setting{}, ""
}

// CheckKey reports whether a setting is a secret. For an unknown key, the error is a [*KeyError] with the nearest key.
func CheckKey(key string) (secret bool, err error) {
	s := settingOf(key)
	if parent, name := named(key); s.Key != "" || parent.Key != "" && strings.TrimSpace(name) != "" {
		return s.Kind == KindSecret, nil
	}
	return false, unknownKey(key, keysOf(table()))
}

// Place returns the keys that lead to a key of a profile in the user file.
func Place(profile, key string) []string {
	place := strings.Split(key, ".")
	if s, name := named(key); name != "" {
		place = append(strings.Split(s.Key, "."), name)
	}
	if profile == DefaultProfile {
		return place
	}
	return append([]string{profilesKey, profile}, place...)
}

func unknownKey(key string, known []string) error {
	return wrong(didYouMean("unknown key "+quoted(key), key, known), "`waybill config list` lists every key")
}

// Variable is an environment variable that is honoured but is not a setting.
type Variable struct {
	Name string
	Help string // one line
}

// Variables returns the environment variables used besides [Settings].
func Variables() []Variable {
	return []Variable{
		{configEnv, "path of the user file, as --config"},
		{"WAYBILL_SANDBOX_KEY", "API key that `waybill sandbox` accepts"},
		{xdgConfig, "folder of waybill/config.yaml, default ~/.config"},
		{xdgData, "folder of waybill/waybill.db, default ~/.local/share (the system's data folder on macOS and Windows)"},
		{"PGHOST", "what --store postgres:// leaves out, as for psql; " +
			"likewise PGPORT, PGUSER, PGDATABASE, PGSERVICE, PGSSLMODE and the like"},
		{"PGPASSWORD", "password for a store on PostgreSQL"},
		{"PGPASSFILE", "file of passwords for stores on PostgreSQL, default ~/.pgpass"},
		{"HTTPS_PROXY", "proxy for the service; never used for this machine"},
		{"HTTP_PROXY", "proxy where --insecure-http allows http"},
		{"NO_PROXY", "hosts to reach without the proxy"},
		{"VISUAL", "editor of `waybill config edit`; without it EDITOR, else vi (notepad on Windows)"},
		{"NO_COLOR", "no color when set and not empty"},
		{"CLICOLOR_FORCE", "color without a terminal too, when set and neither empty nor 0"},
		{"TERM", "dumb: no color, no spinner"},
	}
}
