package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/tracking"
	"github.com/waybill-cli/waybill/internal/webhook"
)

// place is a home and a working folder of their own.
type place struct {
	t    *testing.T
	home string
	work string
}

func newPlace(t *testing.T) place {
	t.Helper()
	root := t.TempDir()
	p := place{t, filepath.Join(root, "home"), filepath.Join(root, "project")}
	for _, folder := range []string{p.home, p.work} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func (p place) userPath() string    { return filepath.Join(p.home, ".config", "waybill", "config.yaml") }
func (p place) projectPath() string { return filepath.Join(p.work, config.ProjectFile) }

func (p place) write(path, text string, mode os.FileMode) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		p.t.Fatal(err)
	}
}

func (p place) user(text string)    { p.t.Helper(); p.write(p.userPath(), text, 0o600) }
func (p place) project(text string) { p.t.Helper(); p.write(p.projectPath(), text, 0o644) }

func (p place) sources(env []string, flags ...config.Flag) config.Sources {
	return config.Sources{Flags: flags, Env: env, WorkDir: p.work, Home: p.home}
}

func (p place) load(env []string, flags ...config.Flag) config.Config {
	p.t.Helper()
	c, err := config.Load(p.sources(env, flags...))
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// refused loads what must not load and returns why.
func (p place) refused(env []string, flags ...config.Flag) *config.KeyError {
	p.t.Helper()
	_, err := config.Load(p.sources(env, flags...))
	var key *config.KeyError
	if !errors.As(err, &key) {
		p.t.Fatalf("err = %v, want a *KeyError", err)
	}
	return key
}

func flag(name string, values ...string) config.Flag {
	return config.Flag{Name: name, Values: values}
}

func TestDefaults(t *testing.T) {
	p := newPlace(t)
	c := p.load(nil)
	for _, tt := range []struct {
		key  string
		got  any
		want any
	}{
		{"output", c.Output, "table"},
		{"color", c.Color, "auto"},
		{"account", c.Account, ""},
		{"base_url", c.BaseURL, ""},
		{"timeout", c.Timeout, time.Duration(0)},
		{"request_timeout", c.RequestTimeout, time.Duration(0)},
		{"concurrency", c.Concurrency, 8},
		{"batch_size", c.BatchSize, 0},
		{"rate", c.Rate, 0.0},
		{"query.tracking_number_param", c.Query.TrackingNumberParam, "trackingNumber"},
		{"query.absent", len(c.Query.Absent), 0},
		{"create.accepted", len(c.Create.Accepted), 0},
		{"assume_unprocessed", c.AssumeUnprocessed, []int{429}},
		{"webhook.verify", c.Webhook.Verify, "observe"},
		{"webhook.secrets", len(c.Webhook.Secrets), 0},
		{"listen.addr", c.Listen.Addr, "127.0.0.1:8377"},
		{"map", len(c.Map), 0},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.key, diff)
		}
		if o := c.Origin(tt.key); o.String() != "default" {
			t.Errorf("origin of %s = %v, want default", tt.key, o)
		}
	}
	if _, err := c.RequireBaseURL(); !errors.Is(err, config.ErrNoBaseURL) {
		t.Errorf("RequireBaseURL: %v, want ErrNoBaseURL", err)
	}
	if _, err := c.ReadAPIKey(nil, nil); !errors.Is(err, config.ErrNoAPIKey) {
		t.Errorf("ReadAPIKey: %v, want ErrNoAPIKey", err)
	}
}

// Each level wins over all below it, and the listing names it.
func TestPrecedence(t *testing.T) {
	const userText = "concurrency: 5\nprofiles:\n  fast:\n    concurrency: 6\n"
	var (
		user    = func(p place) { p.user(userText) }
		project = func(p place) { p.project("concurrency: 7\n") }
		inEnv   = []string{"WAYBILL_CONCURRENCY=8"}
		profile = []string{"WAYBILL_PROFILE=fast"}
		both    = []string{"WAYBILL_CONCURRENCY=8", "WAYBILL_PROFILE=fast"}
		given   = flag("concurrency", "9")
	)
	for _, tt := range []struct {
		name   string
		files  []func(place)
		env    []string
		flags  []config.Flag
		want   int
		origin func(place) string
	}{
		{"nothing", nil, nil, nil, 8, func(place) string { return "default" }},
		{"user", []func(place){user}, nil, nil, 5, place.userPath},
		{"profile over user", []func(place){user}, profile, nil, 6, func(p place) string { return p.userPath() + " (profile fast)" }},
		{"project over user", []func(place){user, project}, nil, nil, 7, place.projectPath},
		{"project over profile", []func(place){user, project}, profile, nil, 7, place.projectPath},
		{"environment over all files", []func(place){user, project}, both, nil, 8, func(place) string { return "env WAYBILL_CONCURRENCY" }},
		{"flag over all", []func(place){user, project}, both, []config.Flag{given}, 9, func(place) string { return "flag --concurrency" }},
		{"flag over environment", nil, inEnv, []config.Flag{given}, 9, func(place) string { return "flag --concurrency" }},
		{"empty variable", []func(place){user}, []string{"WAYBILL_CONCURRENCY="}, nil, 5, place.userPath},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			for _, write := range tt.files {
				write(p)
			}
			c := p.load(tt.env, tt.flags...)
			if c.Concurrency != tt.want {
				t.Errorf("concurrency = %d, want %d", c.Concurrency, tt.want)
			}
			e, err := c.Get("concurrency")
			if err != nil || e.Value != tt.want || e.Origin.String() != tt.origin(p) {
				t.Errorf("Get = %v from %q, %v; want %d from %q", e.Value, e.Origin, err, tt.want, tt.origin(p))
			}
		})
	}
}

// Every setting is reached by its variable, the nested ones too.
func TestEnvironment(t *testing.T) {
	p := newPlace(t)
	c := p.load([]string{
		"WAYBILL_OUTPUT=jsonl", "WAYBILL_COLOR=never", "WAYBILL_QUIET=1", "WAYBILL_VERBOSE=yes", "WAYBILL_DEBUG=on",
		"WAYBILL_ACCOUNT=shop", "WAYBILL_BASE_URL=https://API.example.com:443/v/", "WAYBILL_STORE=s.db",
		"WAYBILL_CA_FILE=~/ca.pem", "WAYBILL_INSECURE_HTTP=true", "WAYBILL_TIMEOUT=1h30m", "WAYBILL_REQUEST_TIMEOUT=500ms",
		"WAYBILL_CONCURRENCY=2", "WAYBILL_BATCH_SIZE=40", "WAYBILL_RATE=0.5", "WAYBILL_ENCODING=windows-1252",
		"WAYBILL_MAP=referid=Order No, tracking_number=AWB", `WAYBILL_CARRIERS={"DHL, Express": "dhl"}`,
		"WAYBILL_STRIP_SPACES=true", "WAYBILL_STATUSES=2=In transit",
		"WAYBILL_QUERY_TRACKING_NUMBER_PARAM=number", `WAYBILL_QUERY_ABSENT=[{"status":200,"message":"none"},{"path":"/data","equals":null}]`,
		`WAYBILL_CREATE_ACCEPTED=[{"path":"/a~1b","equals":"<ok>"},{"path":"","equals":true}]`, "WAYBILL_ASSUME_UNPROCESSED=429,503",
		"WAYBILL_LISTEN_ADDR=:0", "WAYBILL_WEBHOOK_VERIFY=off",
		"WAYBILL_WEBHOOK_SCHEME=Mine", "WAYBILL_WEBHOOK_SECRETS=env:OLD,file:new", `WAYBILL_WEBHOOK_SCHEMES={"Mine":{"kind":"token"}}`,
	})
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings %v, want none", w)
	}
	for _, tt := range []struct {
		key       string
		got, want any
	}{
		{"output", c.Output, "jsonl"},
		{"color", c.Color, "never"},
		{"booleans", []bool{c.Quiet, c.Verbose, c.Debug, c.InsecureHTTP, c.StripSpaces}, []bool{true, true, true, true, true}},
		{"account", c.Account, "shop"},
		{"base_url", c.BaseURL, "https://api.example.com/v"},
		{"store", c.Store, filepath.Join(p.work, "s.db")},
		{"ca_file", c.CAFile, filepath.Join(p.home, "ca.pem")},
		{"timeout", c.Timeout, 90 * time.Minute},
		{"request_timeout", c.RequestTimeout, 500 * time.Millisecond},
		{"numbers", []int{c.Concurrency, c.BatchSize}, []int{2, 40}},
		{"rate", c.Rate, 0.5},
		{"encoding", c.Encoding, "windows-1252"},
		{"map", c.Map, map[string]string{"referId": "Order No", "rawTrackingNumber": "AWB"}},
		{"carriers", c.Carriers, map[string]string{"DHL, Express": "dhl"}},
		{"statuses", c.Statuses, map[string]string{"2": "In transit"}},
		{"query.tracking_number_param", c.Query.TrackingNumberParam, "number"},
		{"query.absent", c.Query.Absent, []tracking.Absent{{Status: 200, Message: "none"}, {Match: tracking.Match{Path: "/data", Equals: "null"}}}},
		{"create.accepted", c.Create.Accepted, []tracking.Match{{Path: "/a~1b", Equals: `"<ok>"`}, {Path: "", Equals: "true"}}},
		{"assume_unprocessed", c.AssumeUnprocessed, []int{429, 503}},
		{"listen.addr", c.Listen.Addr, ":0"},
		{"webhook.verify", c.Webhook.Verify, "off"},
		{"webhook.scheme", c.Webhook.Scheme, "Mine"},
		{"webhook.secrets", c.Webhook.Secrets, []string{"env:OLD", "file:" + filepath.Join(p.work, "new")}},
		{"webhook.schemes", c.Webhook.Schemes["Mine"].Kind, "token"},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.key, diff)
		}
	}
}

// The whole of a user file, with names that keep their case, dots and colons.
func TestUserFile(t *testing.T) {
	p := newPlace(t)
	p.user(`# a comment
account: 0042
base_url: https://api.example.com
store: ~/data/w.db
ca_file: ca.pem
timeout: 2m
rate: 2
map: {referId: "Order: No. 1"}
carriers:
  DHL Express: dhl
  U.P.S.::x: 00123
statuses: {2: In transit, Lost: "Lost?"}
query:
  tracking_number_param: no
  absent:
    - {status: 200, message: Not found}
    - {path: /meta/code, equals: 4041}
create: {accepted: [{path: /success, equals: true}]}
assume_unprocessed: [429, 503]
webhook:
  scheme: Mine.v1
  secrets: [env:HOOK, file:old.txt]
  schemes:
    Mine.v1:
      algorithm: sha512
      key: {strip_prefix: whsec_, encoding: base64}
      signed: "{timestamp}.{body}"
      signature: {from: header:X-Sig, format: kv, separator: ";", prefix: "v=", encoding: base64url}
      timestamp: {from: "sig:t", unit: ms, tolerance: 90s}
    other: {}
listen: {addr: "[::1]:9000"}
`)
	c := p.load(nil)
	folder := filepath.Dir(p.userPath())
	for _, tt := range []struct {
		key       string
		got, want any
	}{
		{"account", c.Account, "0042"},
		{"store", c.Store, filepath.Join(p.home, "data", "w.db")},
		{"ca_file", c.CAFile, filepath.Join(folder, "ca.pem")},
		{"timeout", c.Timeout, 2 * time.Minute},
		{"rate", c.Rate, 2.0},
		{"map", c.Map, map[string]string{"referId": "Order: No. 1"}},
		{"carriers", c.Carriers, map[string]string{"DHL Express": "dhl", "U.P.S.::x": "00123"}},
		{"statuses", c.Statuses, map[string]string{"2": "In transit", "Lost": "Lost?"}},
		{"query", c.Query, config.Query{TrackingNumberParam: "no", Absent: []tracking.Absent{
			{Status: 200, Message: "Not found"}, {Match: tracking.Match{Path: "/meta/code", Equals: "4041"}},
		}}},
		{"create", c.Create.Accepted, []tracking.Match{{Path: "/success", Equals: "true"}}},
		{"assume_unprocessed", c.AssumeUnprocessed, []int{429, 503}},
		{"listen", c.Listen.Addr, "[::1]:9000"},
		{"webhook", c.Webhook, config.Webhook{
			Verify: "enforce", Scheme: "Mine.v1",
			Secrets: []string{"env:HOOK", "file:" + filepath.Join(folder, "old.txt")},
			Schemes: map[string]webhook.Scheme{
				"Mine.v1": {
					Kind: "hmac", Algorithm: "sha512", Signed: "{timestamp}.{body}",
					Key:       webhook.Key{StripPrefix: "whsec_", Encoding: "base64", Normalize: "none"},
					Signature: webhook.Signature{From: "header:X-Sig", Format: "kv", Separator: ";", Tag: "v1", Prefix: "v=", Encoding: "base64url"},
					Timestamp: webhook.Timestamp{From: "sig:t", Unit: "ms", Tolerance: 90 * time.Second},
				},
				"other": {
					Kind: "hmac", Algorithm: "sha256", Signed: "{body}",
					Key:       webhook.Key{Encoding: "utf8", Normalize: "none"},
					Signature: webhook.Signature{From: "header:X-Signature", Format: "plain", Tag: "v1", Encoding: "hex"},
					Timestamp: webhook.Timestamp{Unit: "s", Tolerance: 5 * time.Minute},
				},
			},
		}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.key, diff)
		}
	}
	if o := c.Origin("query.absent"); o.File != p.userPath() || o.Line != 15 {
		t.Errorf("origin of query.absent = %+v, want line 15 of the user file", o)
	}
}

// Names add up over the levels, and each keeps the place it came from.
func TestNamesAddUp(t *testing.T) {
	p := newPlace(t)
	p.user("carriers: {DHL Express: a, UPS: b, GLS: c}\nprofiles: {x: {carriers: {Gls: d}}}\nwebhook: {schemes: {One: {}, Two: {}}}\n")
	p.project("carriers: {ups: e}\n")
	c := p.load([]string{"WAYBILL_CARRIERS=New=f", "WAYBILL_PROFILE=x", `WAYBILL_WEBHOOK_SCHEMES={"Two":{"kind":"token"}}`}, flag("carrier-map", "dhl express=g", "A=B=h"))
	want := map[string]string{"dhl express": "g", "ups": "e", "Gls": "d", "New": "f", "A=B": "h"}
	if diff := cmp.Diff(want, c.Carriers); diff != "" {
		t.Errorf("carriers (-want +got):\n%s", diff)
	}
	if got := []string{c.Webhook.Schemes["One"].Kind, c.Webhook.Schemes["Two"].Kind}; !cmp.Equal(got, []string{"hmac", "token"}) {
		t.Errorf("kinds of schemes = %q", got)
	}
	for key, origin := range map[string]string{
		"carriers.dhl express": "flag --carrier-map",
		"carriers.ups":         p.projectPath(),
		"carriers.Gls":         p.userPath() + " (profile x)",
		"carriers.New":         "env WAYBILL_CARRIERS",
		"webhook.schemes.One":  p.userPath(),
		"webhook.schemes.Two":  "env WAYBILL_WEBHOOK_SCHEMES",
	} {
		e, err := c.Get(key)
		if err != nil || e.Origin.String() != origin {
			t.Errorf("Get(%q) from %q, %v; want %q", key, e.Origin, err, origin)
		}
	}
	whole, err := c.Get("carriers")
	if err != nil || len(whole.Value.(map[string]any)) != len(want) || whole.Origin.String() != "flag --carrier-map" {
		t.Errorf("Get(carriers) = %v from %q, %v", whole.Value, whole.Origin, err)
	}
}

func TestProfiles(t *testing.T) {
	const text = `profile: test
account: top
base_url: https://top.example.com
profiles:
  test: {account: testing, insecure_http: true, base_url: "http://test.example.com"}
  prod: {output: json, query: {tracking_number_param: no}}
  empty:
`
	for _, tt := range []struct {
		name             string
		env              []string
		flags            []config.Flag
		profile, account string
		output, number   string
	}{
		{"named in the file", nil, nil, "test", "testing", "table", "trackingNumber"},
		{"environment over the file", []string{"WAYBILL_PROFILE=prod"}, nil, "prod", "top", "json", "no"},
		{"flag over the environment", []string{"WAYBILL_PROFILE=prod"}, []config.Flag{flag("profile", "test")}, "test", "testing", "table", "trackingNumber"},
		{"the default", nil, []config.Flag{flag("profile", "default")}, "default", "top", "table", "trackingNumber"},
		{"an empty one", nil, []config.Flag{flag("profile", "empty")}, "empty", "top", "table", "trackingNumber"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.user(text)
			c := p.load(tt.env, tt.flags...)
			got := []string{c.Profile, c.Account, c.Output, c.Query.TrackingNumberParam}
			if diff := cmp.Diff([]string{tt.profile, tt.account, tt.output, tt.number}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUnknownProfile(t *testing.T) {
	p := newPlace(t)
	p.user("profiles: {prod: {}, test: {}}\n")
	err := p.refused(nil, flag("profile", "prd"))
	if got := err.Error(); !strings.Contains(got, `--profile: no profile "prd"`) || !strings.HasSuffix(got, "which has prod, test") {
		t.Errorf("error %q does not name the known profiles", got)
	}
	if err.Hint != "did you mean prod?" {
		t.Errorf("hint %q", err.Hint)
	}
	err = newPlace(t).refused([]string{"WAYBILL_PROFILE=x"})
	if !strings.HasPrefix(err.Error(), `WAYBILL_PROFILE: no profile "x" in `) {
		t.Errorf("without a file: %q", err)
	}
}

func TestAccountIsTheBaseURL(t *testing.T) {
	p := newPlace(t)
	c := p.load([]string{"WAYBILL_BASE_URL=HTTPS://Api.Example.com:443/x//"})
	if c.Account != "https://api.example.com/x" || c.Origin("account").String() != "default" {
		t.Errorf("account = %q from %q", c.Account, c.Origin("account"))
	}
	if got, err := c.RequireBaseURL(); got != c.Account || err != nil {
		t.Errorf("base URL = %q, %v", got, err)
	}
}

func TestRefuseNamesThePlace(t *testing.T) {
	p := newPlace(t)
	p.user("\nencoding: latin-9\n")
	err := p.load(nil).Refuse("encoding", "unknown encoding", "use utf-8")
	if want := p.userPath() + ":2: encoding: unknown encoding"; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestWarnings(t *testing.T) {
	p := newPlace(t)
	c := p.load([]string{
		"WAYBILL_API_KY=sk_secret", "WAYBILL_TIMEOUTS=3", "WAYBILL_ZZZZZZZZZZ=1", "WAYBILL_EMPTY_ONE=", "OTHER=1",
		"WAYBILL_SANDBOX_KEY=k", "WAYBILL_CONFIG=", "WAYBILL_OLD_HOOK=s", "WAYBILL_WEBHOOK_SECRETS=env:WAYBILL_OLD_HOOK",
	})
	want := []string{
		`environment variable "WAYBILL_API_KY" is not a setting and is ignored, did you mean WAYBILL_API_KEY?`,
		`environment variable "WAYBILL_TIMEOUTS" is not a setting and is ignored, did you mean WAYBILL_TIMEOUT?`,
		`environment variable "WAYBILL_ZZZZZZZZZZ" is not a setting and is ignored`,
	}
	if diff := cmp.Diff(want, c.Warnings()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The page for users has every setting of a scheme.
func TestSchemeSettingsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range config.SchemeSettings(webhook.Scheme{}) {
		names := []string{name}
		if section, ok := value.(map[string]any); ok {
			names = nil
			for last := range section {
				names = append(names, name+"."+last)
			}
		}
		for _, name := range names {
			if !strings.Contains(string(page), "| `"+name+"` |") {
				t.Errorf("docs/webhooks.md lacks %s", name)
			}
		}
	}
}
