package config

import (
	"strings"
	"sync"
	"time"
)

// EnvPrefix begins the name of every environment variable that is a setting.
const EnvPrefix = "WAYBILL_"

// ProjectFile is the name of the project file, looked for in the working
// folder only.
const ProjectFile = ".waybill.yaml"

// Kind is the form of a setting's value.
type Kind string

// The kinds. In a file, lists and names are written as YAML; in the environment
// a list is split at commas, names are `NAME=value` split at commas, and both
// may be written as JSON instead. Objects are JSON in the environment.
const (
	KindText     Kind = "text"
	KindChoice   Kind = "choice"   // one of Choices
	KindBool     Kind = "boolean"  // true or false
	KindInteger  Kind = "integer"  // decimal
	KindNumber   Kind = "number"   // decimal, with or without fraction
	KindDuration Kind = "duration" // see ParseDuration
	KindSize     Kind = "size"     // see ParseSize
	KindPath     Kind = "path"     // a relative one counts from its file's folder, else from the working folder; ~/ is the home folder
	KindSecret   Kind = "secret"   // text that is never shown
	KindList     Kind = "list"     // of texts
	KindIntegers Kind = "integers" // a list of integers
	KindNames    Kind = "names"    // name to text; levels add up, name by name
	KindMatches  Kind = "matches"  // a list of [tracking.Match]
	KindAbsents  Kind = "absents"  // a list of [tracking.Absent]
	KindMaps     Kind = "maps"     // name to what KindNames holds; levels add up, name by name
	KindSchemes  Kind = "schemes"  // name to [webhook.Scheme]; levels add up, name by name
)

// Setting describes one setting: its three spellings and what it takes.
type Setting struct {
	Key     string // as in the files, dotted where nested
	Env     string // as in the environment
	Flag    string // without dashes; empty if no flag sets it
	Kind    Kind
	Choices []string // for KindChoice
	Default string   // in words; empty for none
	Help    string   // one line
	Why     string   // why the project file may not set it; empty if it may

	preset  any                 // default as decoded; the zero Secret for secrets
	check   func(string) string // of a text, an item or a named value: what is wanted instead, or nothing
	private bool                // a refused value is not shown: it may hold a secret
	fields  bool                // of names: they are fields, in any spelling; else names are one without case
	lastCut bool                // of names: NAME=VALUE splits at the last `=`, not the first
	least   float64             // of numbers and sizes
	most    float64             // of numbers and sizes
}

// FlagNames returns the name of every flag that [Load] takes: those of the
// settings and `config`.
func FlagNames() []string {
	names := []string{configFlag}
	for _, s := range table() {
		if s.Flag != "" {
			names = append(names, s.Flag)
		}
	}
	return names
}

// Why the project file may not set a key: it may come with a cloned repository.
const (
	whyAddress = "it would decide where the API key is sent"
	whyKey     = "keys belong to the user"
	whyLedger  = "it would decide which trackings count as already created"
	whyMeaning = "it would decide what counts as accepted or sent again"
	whyVerify  = "it would decide which deliveries are trusted"
	whyLoud    = "the user decides how much is printed"
)

// Settings returns every setting, in the order in which help shows them. All
// callers share them: they are not to be changed.
func Settings() []Setting { return table() }

// table holds everything about each setting; it is made once.
var table = sync.OnceValue(func() []Setting {
	all := append(sending(), receiving()...)
	for i := range all {
		s := &all[i]
		s.Env = EnvPrefix + strings.ToUpper(strings.ReplaceAll(s.Key, ".", "_"))
		if s.Kind == KindSecret {
			s.preset = Secret{}
		}
		if s.Default == "" {
			s.Default = text(s.preset)
		}
	}
	return all
})

func sending() []Setting {
	return []Setting{
		{Key: "output", Flag: "output", Kind: KindChoice, Choices: []string{"table", "json", "jsonl", "csv", "xlsx"},
			preset: "table", Help: "output format"},
		{Key: "color", Flag: "color", Kind: KindChoice, Choices: []string{"auto", "always", "never"}, preset: "auto",
			Help: "when to use color"},
		{Key: "quiet", Flag: "quiet", Kind: KindBool, Why: whyLoud, preset: false,
			Help: "no progress and no notes on stderr"},
		{Key: "verbose", Flag: "verbose", Kind: KindBool, Why: whyLoud, preset: false, Help: "more detail on stderr"},
		{Key: "debug", Flag: "debug", Kind: KindBool, Why: whyLoud, preset: false,
			Help: "print requests and responses on stderr, secrets masked"},
		{Key: "profile", Flag: "profile", Kind: KindText, Why: whyAddress, preset: DefaultProfile, check: oneLineFilled,
			Help: "profile in the user file; the settings at its top are default"},
		{Key: "account", Flag: "account", Kind: KindText, Why: whyLedger, Default: "the base URL",
			preset: "", check: oneLine, Help: "name of the account that the trackings belong to"},
		{Key: "base_url", Flag: "base-url", Kind: KindText, Why: whyAddress, preset: "",
			Help: "address of the service, https://HOST[/PATH]"},
		{Key: "api_key", Kind: KindSecret, Why: whyKey,
			Help: "the API key; in the user file only if no other user can read the file"},
		{Key: "api_key_file", Flag: "api-key-file", Kind: KindPath, Why: whyKey, preset: "",
			Help: "file with the API key; - is standard input (flag and environment only)"},
		{Key: "api_key_keyring", Kind: KindText, Why: whyKey, preset: "", check: oneLine, private: true,
			Help: "name of the entry with the API key in the system's keyring; `waybill auth login --keyring` sets it"},
		{Key: "store", Flag: "store", Kind: KindPath, Why: whyLedger, Default: storeHelp,
			preset: "", check: storePlace, private: true, Help: "database of runs, rows and deliveries: a file, postgres://USER@HOST/DATABASE[?schema=NAME], or service=NAME"},
		{Key: "store_password_file", Kind: KindPath, Why: whyLedger, preset: "",
			Help: "file with the password for a store on PostgreSQL, instead of PGPASSWORD or PGPASSFILE"},
		{Key: "insecure_store", Flag: "insecure-store", Kind: KindBool, Why: whyLedger, preset: false,
			Help: "allow PostgreSQL on other hosts without verified TLS: others may read and change the store"},
		{Key: "ca_file", Flag: "ca-file", Kind: KindPath, Why: whyAddress, preset: "",
			Help: "PEM file with additional certificate authorities to trust"},
		{Key: "insecure_http", Flag: "insecure-http", Kind: KindBool, Why: whyAddress, preset: false,
			Help: "allow http to other hosts: the API key is sent unencrypted"},
		{Key: "timeout", Flag: "timeout", Kind: KindDuration, Default: "depends on the command",
			preset: time.Duration(0), Help: "how long a command retries or waits"},
		{Key: "request_timeout", Flag: "request-timeout", Kind: KindDuration, Default: "30s, create --sync 2m",
			preset: time.Duration(0), Help: "how long one request may take"},
		{Key: "concurrency", Flag: "concurrency", Kind: KindInteger, preset: 4, least: 1, most: 256,
			Help: "how many requests run at once"},
		{Key: "batch_size", Flag: "batch-size", Kind: KindInteger, Default: "0, as many as the service allows",
			preset: 0, most: 1_000_000, Help: "rows in one create request"},
		{Key: "rate", Flag: "rate", Kind: KindNumber, Default: "0, no limit", preset: 0.0, most: 100_000,
			Help: "maximum requests per second"},
		{Key: "encoding", Flag: "encoding", Kind: KindText, Default: "UTF-8, or as the byte order mark says",
			preset: "", check: oneLine, Help: "encoding of input files, such as windows-1252"},
		{Key: "map", Flag: "map", Kind: KindNames, preset: names{}, fields: true, check: filled,
			Help: "column of a field: FIELD=HEADER, fields " + strings.Join(fields(), ", ") + "; @NAME for a saved mapping"},
		{Key: mapsKey, Kind: KindMaps, preset: names{},
			Help: "saved mappings for --map @NAME: name, and the column of each field"},
		{Key: "carriers", Flag: "carrier-map", Kind: KindNames, preset: names{}, lastCut: true, check: oneLine,
			Help: "code of a carrier name: NAME=CODE; NAME= lets the service identify the carrier"},
		{Key: "strip_spaces", Flag: "strip-spaces", Kind: KindBool, preset: false,
			Help: "remove spaces inside identifiers"},
		{Key: "statuses", Kind: KindNames, preset: names{}, check: oneLineFilled,
			Help: "names of your own for statuses: number or label as sent, and the name"},
	}
}

func receiving() []Setting {
	return []Setting{
		{Key: "query.tracking_number_param", Kind: KindText, Why: whyMeaning, preset: "trackingNumber",
			check: identifier, Help: "query parameter for a tracking number"},
		{Key: "query.absent", Kind: KindAbsents, Why: whyMeaning, Default: "404 only", preset: []any{},
			Help: "responses that mean \"no such tracking\": a list of {status, message, path, equals}"},
		{Key: "create.accepted", Kind: KindMatches, Why: whyMeaning, Default: "built-in rules",
			preset: []any{}, Help: "what the response to a successful create contains: a list of {path, equals}"},
		{Key: "assume_unprocessed", Kind: KindIntegers, Why: whyMeaning, preset: []any{429}, least: 400, most: 599,
			Help: "HTTP statuses of a create that mean that nothing was stored"},
		{Key: "bulk.refused_means_none", Kind: KindBool, Why: whyMeaning, preset: true,
			Help: "assume that nothing of a refused batch was stored"},
		{Key: "listen.addr", Flag: "addr", Kind: KindText, Why: whyVerify, preset: "127.0.0.1:8377", check: HostPort,
			Help: "address that listen binds to, HOST:PORT"},
		{Key: "listen.max_body", Flag: "max-body", Kind: KindSize, Why: whyVerify,
			preset: Size(5 << 20), least: 1, most: 1 << 30, Help: "maximum size of a delivery's body"},
		{Key: "listen.max_unverified", Flag: "max-unverified", Kind: KindSize, Why: whyVerify,
			preset: Size(1 << 30), most: 1 << 50, Help: "disk space for unverified deliveries, an eighth of it per minute; 0 keeps none"},
		{Key: "webhook.verify", Kind: KindChoice, Choices: []string{"enforce", "observe", "off"}, Why: whyVerify,
			preset: "", Default: "enforce when webhook.scheme is set, else observe", Help: "what happens to deliveries that do not verify"},
		{Key: "webhook.scheme", Kind: KindText, Why: whyVerify, preset: "", check: oneLine,
			Help: "name of the signature scheme of deliveries"},
		{Key: "webhook.secret", Kind: KindSecret, Why: whyVerify,
			Help: "the webhook secret, used when webhook.secrets is empty"},
		{Key: "webhook.secrets", Flag: "secret-from", Kind: KindList, Why: whyVerify, preset: []any{},
			check: secretPlace, private: true, Help: "webhook secrets as env:NAME or file:PATH; any may match"},
		{Key: "webhook.schemes", Kind: KindSchemes, Why: whyVerify, preset: names{},
			Help: "signature schemes by name; names are case-sensitive"},
	}
}

// Variable is an environment variable that is honoured but is no setting.
type Variable struct {
	Name string
	Help string // one line
}

// Variables returns the environment variables that are honoured besides those
// of [Settings].
func Variables() []Variable {
	return []Variable{
		{configEnv, "path of the user file, as --config"},
		{"WAYBILL_SANDBOX_KEY", "API key that `waybill sandbox` accepts"},
		{xdgConfig, "folder of waybill/config.yaml, default ~/.config"},
		{xdgData, "folder of waybill/waybill.db, default ~/.local/share (the system's data folder on macOS and Windows)"},
		{"PGHOST", "what --store postgres:// leaves out, as for psql; likewise PGPORT, PGUSER, PGDATABASE, PGSERVICE, PGSSLMODE and the like"},
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
