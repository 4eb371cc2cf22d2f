package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/config"
)

// What is wrong in a user file is named with file, line and key.
func TestUserFileRefused(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"unknown key", "output: json\nbase_ulr: x\n", ":2: base_ulr: unknown key, did you mean base_url?"},
		{"unknown key, dashes", "request-timeout: 30s\n", ":1: request-timeout: unknown key, did you mean request_timeout?"},
		{"unknown key, its last part", "tracking_number_parm: x\n", ":1: tracking_number_parm: unknown key, did you mean query.tracking_number_param?"},
		{"unknown nested key", "query:\n  absnt: []\n", ":2: query.absnt: unknown key, did you mean query.absent?"},
		{"unknown key like nothing", "zzzzzzzzzzzzz: 1\n", ":1: zzzzzzzzzzzzz: unknown key"},
		{"dotted key", "query.absent: []\n", ":1: query.absent: unknown key: keys with dots are not supported"},
		{"capital key", "Output: json\n", ":1: Output: unknown key, did you mean output?"},
		{"section that is a value", "query: x\n", ":1: query: must be a mapping of keys and values"},
		{"key twice", "output: json\ncolor: never\noutput: csv\n", ":3: output: appears twice, first in line 1"},
		{"nested key twice", "webhook:\n  scheme: a\n  scheme: b\n", ":3: scheme: appears twice, first in line 2"},
		{"anchor", "account: &a x\n", ":1: anchors and aliases"},
		{"alias", "account: &a x\nencoding: *a\n", ":1: anchors and aliases"},
		{"merge", "profiles:\n  a: &a {output: json}\n  b:\n    <<: *a\n", ":2: anchors and aliases"},
		{"tag", "account: !!binary aGk=\n", ":1: tags (!)"},
		{"two documents", "output: json\n---\noutput: csv\n", ": contains more than one YAML document"},
		{"broken second document", "output: json\n---\n[\n", ":3: not valid YAML"},
		{"not a mapping", "- output\n", ":1: must be a mapping of keys and values"},
		{"text alone", "hello\n", ":1: must be a mapping of keys and values"},
		{"key that is a list", "? [a]\n: b\n", ":1: a key must be plain text"},
		{"syntax", "output: json\n  color: [\n", ":2: not valid YAML: mapping values are not allowed"},
		{"tab", "query:\n\tabsent: []\n", ":2: not valid YAML"},
		{"depth", "map: " + strings.Repeat("[", 30) + strings.Repeat("]", 30) + "\n", ":1: nested too deep"},
		{"no value", "account:\n", ":1: account: must be text, but has no value"},
		{"list for text", "account: [x]\n", ":1: account: must be text, not a list or keys"},
		{"boolean for text", "account: true\n", ":1: account: must be text, not true or false (put it in quotes if it is a string)"},
		{"choice", "output: jsn\n", `:1: output: must be table, json, jsonl, csv or xlsx, not "jsn", did you mean json?`},
		{"text for boolean", "strip_spaces: maybe\n", `:1: strip_spaces: must be true or false, not "maybe"`},
		{"number for boolean", "strip_spaces: 1\n", ":1: strip_spaces: must be true or false"},
		{"text for integer", "concurrency: many\n", `:1: concurrency: must be a whole number from 1 to 256, not "many"`},
		{"quoted integer", "concurrency: \"4\"\n", `:1: concurrency: must be a whole number from 1 to 256, not "4" in quotes`},
		{"fraction for integer", "concurrency: 1.5\n", ":1: concurrency: must be a whole number from 1 to 256"},
		{"too small", "concurrency: 0\n", `:1: concurrency: must be a whole number from 1 to 256, not "0"`},
		{"negative", "batch_size: -1\n", `:1: batch_size: must be a whole number from 0 to 1000000, not "-1"`},
		{"not a number", "rate: .nan\n", ":1: rate: must be a number from 0 to 100000"},
		{"bare number for duration", "timeout: 30\n", `:1: timeout: "30" needs a unit: 30s, 30m, 30h or 30d`},
		{"base URL", "base_url: http://example.com\n", ":1: base_url: http would send the API key unencrypted to example.com"},
		{"control character", "account: \"a\\tb\"\n", ":1: account: must be text without control characters"},
		{"integers", "assume_unprocessed: 429\n", ":1: assume_unprocessed: must be whole numbers from 400 to 599 in [ ]"},
		{"integer in a list", "assume_unprocessed:\n  - 429\n  - 200\n", ":3: assume_unprocessed: must be whole numbers from 400 to 599, not \"200\""},
		{"names", "carriers: [x]\n", ":1: carriers: must be names with a string each"},
		{"name without text", "carriers:\n  DHL:\n", `:2: carriers: name "DHL": must be a string, but has no value`},
		{"name twice in other case", "carriers:\n  DHL: a\n  dhl: b\n", `:3: carriers: name "dhl" appears twice (also as "DHL")`},
		{"unknown field", "map:\n  refrId: x\n", `:2: map: unknown name "refrId", did you mean referId?`},
		{"one field in two spellings", "map:\n  tracking_number: x\n  rawTrackingNumber: y\n", ":3: map: name \"rawTrackingNumber\" appears twice"},
		{"absent without a condition", "query:\n  absent:\n    - {}\n", ":3: query.absent: an entry must have status, message, path, equals"},
		{"absent, unknown", "query: {absent: [{stauts: 200}]}\n", ":1: query.absent: stauts: unknown key, did you mean status?"},
		{"absent, path alone", "query: {absent: [{path: /a}]}\n", ":1: query.absent: path and equals must be set together"},
		{"absent, status", "query: {absent: [{status: 99}]}\n", `:1: query.absent: status: must be a whole number from 100 to 599, not "99"`},
		{"accepted, message", "create: {accepted: [{message: x}]}\n", ":1: create.accepted: message: unknown key"},
		{"accepted, pointer", "create: {accepted: [{path: a, equals: 1}]}\n", ":1: create.accepted: path: must be an RFC 6901 pointer"},
		{"accepted, pointer escape", "create: {accepted: [{path: /~2, equals: 1}]}\n", ":1: create.accepted: path: must be an RFC 6901 pointer"},
		{"accepted, list", "create: {accepted: [{path: /a, equals: [1]}]}\n", ":1: create.accepted: equals: must be one string"},
		{"accepted, hex", "create: {accepted: [{path: /a, equals: 0x10}]}\n", ":1: create.accepted: equals: must be one string"},
		{"literal among secrets", "webhook:\n  secrets:\n    - whsec_hush\n", ":3: webhook.secrets: must be env:NAME or file:PATH, never the secret itself"},
		{"address", "listen: {addr: 8377}\n", ":1: listen.addr: must be HOST:PORT"},
		{"port", "listen: {addr: \"h:70000\"}\n", ":1: listen.addr: must be HOST:PORT"},
		{"scheme, unknown part", "webhook:\n  schemes:\n    a:\n      signature: {form: x}\n", ":4: webhook.schemes: a.signature.form: unknown key, did you mean signature.from?"},
		{"scheme, choice", "webhook:\n  schemes:\n    a:\n      kind: hmca\n", ":4: webhook.schemes: a.kind: must be one of hmac, digest, token"},
		{"scheme, separator", "webhook:\n  schemes:\n    a:\n      signature: {separator: \"=\"}\n", `:4: webhook.schemes: a.signature.separator: must be one of ["," ";" " " "&" "|"], not "="`},
		{"scheme, place", "webhook: {schemes: {a: {signature: {from: X-Sig}}}}\n", ":1: webhook.schemes: a.signature.from: must be one of header:…, query:…, json:…"},
		{"scheme, pointer", "webhook: {schemes: {a: {timestamp: {from: \"json:x\"}}}}\n", ":1: webhook.schemes: a.timestamp.from: must be an RFC 6901 pointer"},
		{"scheme, no tolerance", "webhook: {schemes: {a: {timestamp: {tolerance: 0s}}}}\n", `:1: webhook.schemes: a.timestamp.tolerance: must be more than 0, not "0s"`},
		{"scheme, tolerance", "webhook: {schemes: {a: {timestamp: {tolerance: 300}}}}\n", `:1: webhook.schemes: a.timestamp.tolerance: "300" needs a unit`},
		{"scheme, text", "webhook: {schemes: {a: x}}\n", ":1: webhook.schemes: a: must be a mapping of keys and values"},
		{"api_key_file of stdin", "api_key_file: \"-\"\n", ":1: api_key_file: standard input can't be set in a file"},
		{"empty secret", "api_key: \"\"\n", ":1: api_key: is empty"},
		{"key and key file", "api_key: k\napi_key_file: f\n", ":2: api_key_file: conflicts with api_key"},
		{"profiles", "profiles: [a]\n", ":1: profiles: must be names with settings below each"},
		{"unknown key in a profile nobody chose", "profiles:\n  p:\n    outptu: json\n", ":3: profiles.p.outptu: unknown key, did you mean output?"},
		{"wrong value in a profile", "profiles:\n  p:\n    timeout: 5\n", `:3: profiles.p.timeout: "5" needs a unit`},
		{"profile in a profile", "profiles:\n  p:\n    profile: q\n", ":3: profiles.p: not allowed in a profile: profile"},
		{"a profile named as the top", "profiles:\n  default: {}\n", ":2: profiles.default: not allowed"},
		{"profiles in a profile", "profiles:\n  p:\n    profiles: {}\n", ":3: profiles.p: not allowed in a profile: profiles"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.user(tt.text)
			if got := p.refused(nil).Error(); !strings.HasPrefix(got, p.userPath()+tt.want) {
				t.Errorf("got  %q\nwant …%q…", got, tt.want)
			}
		})
	}
}

// A cloned repository cannot steer the key, the store or the verification.
func TestProjectFileRefused(t *testing.T) {
	for _, s := range config.Settings() {
		section, last, nested := strings.Cut(s.Key, ".")
		text, key := s.Key+": x\n", s.Key
		if nested {
			text, key = section+":\n  "+last+": x\n", section
		}
		p := newPlace(t)
		p.project("# ours\n" + text)
		_, err := config.Load(p.sources(nil))
		want := p.projectPath() + ":2: " + key + ": not allowed in a project file: "
		if refused := err != nil && strings.HasPrefix(err.Error(), want); refused == (s.Why == "") {
			t.Errorf("%s: %v; may be set: %v", s.Key, err, s.Why == "")
		}
	}
	p := newPlace(t)
	p.project("profiles: {a: {}}\n")
	if got := p.refused(nil); got.Key != "profiles" || got.Line != 1 || got.Hint == "" {
		t.Errorf("profiles: %+v", got)
	}
	p.project("outptu: json\n")
	if got := p.refused(nil).Error(); got != p.projectPath()+":1: outptu: unknown key, did you mean output?" {
		t.Errorf("unknown key: %q", got)
	}
}

// The list stands here too, so that a setting does not get open by accident.
func TestWhatAProjectFileMaySet(t *testing.T) {
	var open []string
	for _, s := range config.Settings() {
		if s.Why == "" {
			open = append(open, s.Key)
		}
	}
	const want = "output color timeout request_timeout concurrency batch_size rate encoding map maps carriers strip_spaces statuses"
	if got := strings.Join(open, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	p := newPlace(t)
	p.project("output: json\ncolor: never\ntimeout: 1m\nrequest_timeout: 5s\nconcurrency: 1\nbatch_size: 2\nrate: 1.5\n" +
		"encoding: utf-8\nmap: {referId: A}\ncarriers: {B: b}\nstrip_spaces: true\nstatuses: {3: C}\n")
	if c := p.load(nil); c.BatchSize != 2 || c.Map["referId"] != "A" || c.Statuses["3"] != "C" || !c.StripSpaces {
		t.Errorf("not taken: %+v", c)
	}
}

func TestFlagsAndEnvironmentRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		env   []string
		flags []config.Flag
		want  string
	}{
		{"duration", nil, []config.Flag{flag("timeout", "30")}, `--timeout: "30" needs a unit`},
		{"choice", nil, []config.Flag{flag("output", "yaml")}, `--output: must be table, json, jsonl, csv or xlsx, not "yaml"`},
		{"empty flag", nil, []config.Flag{flag("store", "")}, "--store: must be the path of a file that is not empty"},
		{"empty --config", nil, []config.Flag{flag("config", "")}, "--config: must be the path of a file"},
		{"pair", nil, []config.Flag{flag("map", "referId")}, `--map: must be NAME=VALUE, not "referId"`},
		{"field", nil, []config.Flag{flag("map", "ref=A")}, `--map: unknown name "ref"`},
		{"field twice", nil, []config.Flag{flag("map", "referId=A", "refer_id=B")}, `--map: name "referId" appears twice`},
		{"code", nil, []config.Flag{flag("carrier-map", "DHL=d\x01")}, `--carrier-map: name "DHL": must be text without control characters`},
		{"not a setting's flag", nil, []config.Flag{flag("dry-run", "true")}, "--dry-run: is not a setting"},
		{"last one counts", nil, []config.Flag{flag("concurrency", "3", "x")}, "--concurrency: must be a whole number"},
		{"http", []string{"WAYBILL_BASE_URL=http://example.com"}, nil, "WAYBILL_BASE_URL: http would send the API key unencrypted"},
		{"number", []string{"WAYBILL_RATE=fast"}, nil, `WAYBILL_RATE: must be a number from 0 to 100000, not "fast"`},
		{"boolean", []string{"WAYBILL_DEBUG=2"}, nil, `WAYBILL_DEBUG: must be true or false, not "2"`},
		{"JSON", []string{"WAYBILL_MAP={"}, nil, "WAYBILL_MAP: not valid YAML"},
		{"JSON of another form", []string{"WAYBILL_MAP=[1]"}, nil, "WAYBILL_MAP: must be names with a string each"},
		{"objects want JSON", []string{"WAYBILL_CREATE_ACCEPTED=ok"}, nil, "WAYBILL_CREATE_ACCEPTED: must be JSON: a list of {path, equals}"},
		{"secrets", []string{"WAYBILL_WEBHOOK_SECRETS=whsec_hush"}, nil, "WAYBILL_WEBHOOK_SECRETS: must be env:NAME or file:PATH"},
		{"two keys", []string{"WAYBILL_API_KEY=k", "WAYBILL_API_KEY_FILE=f"}, nil, "WAYBILL_API_KEY_FILE: conflicts with api_key (WAYBILL_API_KEY)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := newPlace(t).refused(tt.env, tt.flags...).Error()
			if !strings.HasPrefix(got, tt.want) || strings.Contains(got, "whsec_hush") {
				t.Errorf("got  %q\nwant %q…", got, tt.want)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Run("missing by name", func(t *testing.T) {
		p := newPlace(t)
		err := p.refused(nil, flag("config", "no.yaml"))
		if err.File != filepath.Join(p.work, "no.yaml") || !strings.Contains(err.Hint, "--config") || !os.IsNotExist(err.Err) {
			t.Errorf("%+v", err)
		}
		if err := p.refused([]string{"WAYBILL_CONFIG=no.yaml"}); !strings.Contains(err.Hint, "WAYBILL_CONFIG") {
			t.Errorf("%+v", err)
		}
	})
	t.Run("a folder", func(t *testing.T) {
		p := newPlace(t)
		if err := os.MkdirAll(p.userPath(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := p.refused(nil); err.Error() != p.userPath()+": is not a regular file" {
			t.Errorf("%q", err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		p := newPlace(t)
		p.project("# " + strings.Repeat("x", config.MaxFile))
		if err := p.refused(nil); err.Error() != p.projectPath()+": is larger than 1048576 bytes" {
			t.Errorf("%q", err)
		}
	})
	t.Run("empty", func(t *testing.T) {
		p := newPlace(t)
		for _, text := range []string{"", "# nothing\n", "---\n", "~\n"} {
			p.user(text)
			p.project(text)
			if c := p.load(nil); c.Output != "table" {
				t.Errorf("%q: output %q", text, c.Output)
			}
		}
	})
}

// Somebody who names the project file as the user file means all of it.
func TestProjectFileNamedAsUserFile(t *testing.T) {
	p := newPlace(t)
	p.project("base_url: https://example.com\n")
	if c := p.load(nil, flag("config", config.ProjectFile)); c.BaseURL != "https://example.com" {
		t.Errorf("base URL %q", c.BaseURL)
	}
	if err := p.refused(nil); err.Key != "base_url" {
		t.Errorf("%+v", err)
	}
}

// The parser quotes the file in its errors; what it quotes may be a key.
func TestSyntaxErrorsKeepSecrets(t *testing.T) {
	for _, text := range []string{"api_key: *sk_hush\n", "api_key: 'sk_hush\n", "api_key: \"sk_hush\\q\"\n", "api_key: @sk_hush\n", "api_key: %sk_hush\n", "api_key: !sk_hush x\n", "api_key: {sk_hush\n", "api_key: [sk_hush]\n", "api_key: sk_hush: x\n", "api_key: \"a\\nsk_hush\"\n"} {
		p := newPlace(t)
		p.user(text)
		if err := p.refused(nil); strings.Contains(err.Error()+err.Hint, "sk_hush") {
			t.Errorf("%q: %q shows the key", text, err)
		}
	}
}
