package webhook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestSchemeDefaults(t *testing.T) {
	want := webhook.Scheme{
		Kind:      "hmac",
		Algorithm: "sha256",
		Key:       webhook.Key{Encoding: "utf8", Normalize: "none"},
		Signed:    "{body}",
		Signature: webhook.Signature{From: "header:X-Signature", Format: "plain", Tag: "v1", Encoding: "hex"},
		Timestamp: webhook.Timestamp{Unit: "s", Tolerance: 5 * time.Minute},
	}
	if got := (webhook.Scheme{}).WithDefaults(); got != want {
		t.Errorf("defaults %+v; want %+v", got, want)
	}
	if err := (webhook.Scheme{}).Check(); err != nil {
		t.Errorf("Check of the zero scheme: %v; want nil", err)
	}
}

func TestSchemeErrorsNameTheField(t *testing.T) {
	sig := func(s webhook.Signature) webhook.Scheme { return webhook.Scheme{Signature: s} }
	stamp := func(signed string, ts webhook.Timestamp) webhook.Scheme {
		return webhook.Scheme{Signed: signed, Timestamp: ts}
	}
	for _, tt := range []struct {
		scheme webhook.Scheme
		field  string
		says   string
	}{
		{webhook.Scheme{Kind: "HMAC"}, "kind", "hmac, digest, token"},
		{webhook.Scheme{Algorithm: "sha-256"}, "algorithm", "sha256, sha512, sha1, md5"},
		{webhook.Scheme{Algorithm: "md5"}, "algorithm", "digest only"},
		{webhook.Scheme{Key: webhook.Key{Encoding: "base32"}}, "key.encoding", "utf8, base64, hex"},
		{webhook.Scheme{Key: webhook.Key{Normalize: "nfd"}}, "key.normalize", "none, nfkd, nfc"},
		{webhook.Scheme{Key: webhook.Key{Encoding: "hex", Normalize: "nfkd"}}, "key.normalize", "utf8 only"},
		{webhook.Scheme{Signed: "{bdy}"}, "signed", `"{bdy}"`},
		{webhook.Scheme{Signed: "{body"}, "signed", "brace"},
		{webhook.Scheme{Signed: "body}"}, "signed", "brace"},
		{webhook.Scheme{Signed: "{sig:t}{body}"}, "signed", `"{sig:t}"`},
		{webhook.Scheme{Signed: "{header:}"}, "signed", `"{header:}"`},
		{webhook.Scheme{Signed: "{header:a b}"}, "signed", `"{header:a b}"`},
		{webhook.Scheme{Signed: "{json:data}"}, "signed", `"{json:data}"`},
		{webhook.Scheme{Signed: "{json:/a~2}"}, "signed", `"{json:/a~2}"`},
		{webhook.Scheme{Signed: "constant"}, "signed", "the same for every delivery"},
		{webhook.Scheme{Kind: "digest", Signed: "{secret}"}, "signed", "the same for every delivery"},
		{webhook.Scheme{Kind: "digest"}, "signed", "does not contain {secret}"},
		{webhook.Scheme{Kind: "token", Signed: "{timestamp}"}, "signed", "omit it"},
		{webhook.Scheme{Kind: "token", Key: webhook.Key{Encoding: "hex"}}, "key.encoding", "utf8"},
		{webhook.Scheme{Signed: "{header:x-signature}{body}"}, "signed", "the signature itself"},
		{webhook.Scheme{Signed: "{url}{body}"}, "public_url", "set the address"},
		{webhook.Scheme{PublicURL: "hooks.example/in"}, "public_url", "http or https"},
		{webhook.Scheme{PublicURL: "ftp://hooks.example/in"}, "public_url", "http or https"},
		{sig(webhook.Signature{From: "X-Signature"}), "signature.from", "header:NAME"},
		{sig(webhook.Signature{From: "header:"}), "signature.from", "header:NAME"},
		{sig(webhook.Signature{From: "sig:t"}), "signature.from", "header:NAME"},
		{sig(webhook.Signature{From: "json:sign"}), "signature.from", "json:/PATH"},
		{sig(webhook.Signature{From: "json:/sign"}), "signature.from", "a signature can't cover itself"},
		{sig(webhook.Signature{Format: "csv"}), "signature.format", "plain, list, kv"},
		{sig(webhook.Signature{Encoding: "base32"}), "signature.encoding", "hex, base64, base64url"},
		{sig(webhook.Signature{Format: "kv", Tag: "v=1"}), "signature.tag", "equals sign"},
		{sig(webhook.Signature{Format: "kv", Separator: ";", Tag: "a;b"}), "signature.tag", "separator"},
		{sig(webhook.Signature{Format: "kv", Separator: ";", Prefix: "a;"}), "signature.prefix", "kv"},
		{sig(webhook.Signature{Separator: ";"}), "signature.separator", "list and kv only"},
		{sig(webhook.Signature{Format: "kv", Separator: "="}), "signature.separator", `";"`},
		{sig(webhook.Signature{Format: "kv", Separator: ", "}), "signature.separator", `";"`},
		{sig(webhook.Signature{Format: "list", Separator: ","}), "signature.separator", "format list"},
		{webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{Format: "kv", Separator: ";"}, Timestamp: webhook.Timestamp{From: "sig:a;b"}}, "timestamp.from", "separator"},
		{sig(webhook.Signature{Format: "kv", Prefix: "a,"}), "signature.prefix", "kv"},
		{sig(webhook.Signature{Format: "list", Prefix: "Bearer "}), "signature.prefix", "list"},
		{stamp("{timestamp}", webhook.Timestamp{}), "timestamp.from", "set where it is"},
		{stamp("{timestamp}", webhook.Timestamp{From: "X-Time"}), "timestamp.from", "header:NAME"},
		{stamp("{timestamp}", webhook.Timestamp{From: "query:t"}), "timestamp.from", "header:NAME"},
		{stamp("{timestamp}", webhook.Timestamp{From: "sig:t"}), "timestamp.from", "list or kv"},
		{stamp("{timestamp}", webhook.Timestamp{From: "header:x-signature"}), "timestamp.from", "the place of the signature"},
		{stamp("{body}", webhook.Timestamp{From: "header:X-Time"}), "timestamp.from", "not signed"},
		{stamp("{timestamp}", webhook.Timestamp{From: "header:X-Time", Unit: "min"}), "timestamp.unit", "s, ms, rfc3339, rfc2822"},
		{stamp("{timestamp}", webhook.Timestamp{From: "header:X-Time", Tolerance: -1}), "timestamp.tolerance", "negative"},
		{webhook.Scheme{Kind: "token", Timestamp: webhook.Timestamp{From: "header:X-Time"}}, "timestamp.from", "not signed"},
		{webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{Format: "kv"}, Timestamp: webhook.Timestamp{From: "sig:v1"}}, "timestamp.from", "tag"},
		{webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{Format: "kv"}, Timestamp: webhook.Timestamp{From: "sig:t", Unit: "rfc2822"}}, "timestamp.unit", "commas"},
	} {
		err := tt.scheme.Check()
		var se *webhook.SchemeError
		if !errors.As(err, &se) || se.Field != tt.field || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), tt.field+": ") {
			t.Errorf("%+v: error %v; want one about %s that says %q", tt.scheme, err, tt.field, tt.says)
		}
	}
}

// A timestamp counts as signed wherever its bytes are.
func TestSchemeTimestampMayBeSignedIndirectly(t *testing.T) {
	for _, s := range []webhook.Scheme{
		{Signed: "{header:x-time}.{body}", Timestamp: webhook.Timestamp{From: "header:X-Time"}},
		{Signed: "{body}", Timestamp: webhook.Timestamp{From: "json:/0/eventTime", Unit: "rfc3339"}},
		{Signed: "{json:/ts}", Timestamp: webhook.Timestamp{From: "json:/ts"}},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v; want it accepted", s, err)
		}
	}
}

func TestSecretErrors(t *testing.T) {
	for _, tt := range []struct {
		key    webhook.Key
		secret string
		says   string
	}{
		{webhook.Key{}, "", "empty"},
		{webhook.Key{StripPrefix: "whsec_"}, "whsec_", "empty"},
		{webhook.Key{Encoding: "base64"}, "hunter2!", "not base64"},
		{webhook.Key{Encoding: "base64"}, "aHVudGVyMg==\n", "not base64"},
		{webhook.Key{Encoding: "base64"}, "aHVudGVyMg", "not base64"},
		{webhook.Key{Encoding: "hex"}, "hunter2!", "not hex"},
	} {
		good := webhook.Secret{Name: "env:GOOD", Value: []byte("abcd")}
		_, err := webhook.NewVerifier(webhook.Scheme{Key: tt.key}, []webhook.Secret{good, {Name: "env:BAD", Value: []byte(tt.secret)}})
		var se *webhook.SchemeError
		if !errors.As(err, &se) || se.Field != "secrets[1] (env:BAD)" || !strings.Contains(se.Problem, tt.says) {
			t.Errorf("%+v, secret %q: error %v; want secrets[1] and %q", tt.key, tt.secret, err, tt.says)
			continue
		}
		if tt.secret != "" && tt.secret != "whsec_" && strings.Contains(err.Error(), tt.secret) {
			t.Errorf("error %q shows the secret", err)
		}
	}
	_, err := webhook.NewVerifier(webhook.Scheme{}, nil)
	var se *webhook.SchemeError
	if !errors.As(err, &se) || se.Field != "secrets" {
		t.Errorf("no secrets: error %v; want one about secrets", err)
	}
	_, err = webhook.NewVerifier(webhook.Scheme{Kind: "x"}, secrets("k"))
	if !errors.As(err, &se) || se.Field != "kind" {
		t.Errorf("bad scheme: error %v; want one about kind", err)
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := webhook.Secret{Name: "env:X", Value: []byte("hunter2")}
	marshalled, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{
		s.String(), string(marshalled), fmt.Sprint(s), fmt.Sprintf("%v", s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s),
		fmt.Sprintf("%s", s), fmt.Sprintf("%q", s), fmt.Sprintf("%x", s), fmt.Sprintf("%d", s),
	} {
		if got != "***" {
			t.Errorf("printed %q; want ***", got)
		}
	}
}

func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range webhook.Presets() {
		if seen[p.Name] || p.Name == "" || p.About == "" {
			t.Errorf("preset %+v: no name, a name twice, or no words about it", p)
		}
		seen[p.Name] = true
		if err := p.Scheme.Check(); err != nil {
			t.Errorf("preset %s: %v", p.Name, err)
		}
		if weak := strings.Contains(p.About, "does not authenticate the body"); weak == p.Scheme.CoversBody() {
			t.Errorf("preset %s covers the body: %v, but says %q", p.Name, p.Scheme.CoversBody(), p.About)
		}
		if got, ok := webhook.PresetByName(p.Name); !ok || got != p {
			t.Errorf("PresetByName(%q) = %+v, %v", p.Name, got, ok)
		}
	}
	for _, name := range []string{"hmac-body-hex", "hmac-body-base64", "standard-webhooks", "timestamped-kv", "digest-body-slash-key"} {
		if !seen[name] {
			t.Errorf("no preset %s", name)
		}
	}
	if _, ok := webhook.PresetByName("nonesuch"); ok {
		t.Error("found a preset nonesuch")
	}
}

// Whatever passes the check can be signed and then verifies, and only with the secret it was signed with.
func FuzzScheme(f *testing.F) {
	add := func(s webhook.Scheme) {
		f.Add(s.Kind, s.Algorithm, s.Key.StripPrefix, s.Key.Encoding, s.Key.Normalize, s.Signed, s.Signature.From, s.Signature.Format,
			s.Signature.Tag, s.Signature.Prefix, s.Signature.Encoding, s.Timestamp.From, s.Timestamp.Unit, s.PublicURL)
	}
	for _, p := range webhook.Presets() {
		add(p.Scheme)
	}
	for _, tt := range senders() {
		add(tt.scheme)
	}
	f.Fuzz(func(t *testing.T, kind, algorithm, strip, encoding, normalize, signed, from, format, tag, prefix, sigEncoding, stampFrom, unit, url string) {
		s := webhook.Scheme{
			Kind: kind, Algorithm: algorithm, Signed: signed, PublicURL: url,
			Key:       webhook.Key{StripPrefix: strip, Encoding: encoding, Normalize: normalize},
			Signature: webhook.Signature{From: from, Format: format, Tag: tag, Prefix: prefix, Encoding: sigEncoding},
			Timestamp: webhook.Timestamp{From: stampFrom, Unit: unit},
		}
		secret := webhook.Secret{Value: []byte("deadbeef")} // text, hex and base64
		r := post(`[{"eventId":"a","n":1,"form":"x=y"}]`, "Host", "localhost")
		r.RawQuery = "a=1&b=%20"
		out, err := webhook.Sign(s, secret, r, at)
		if err != nil {
			var se *webhook.SchemeError
			if !errors.As(err, &se) && !errors.Is(err, webhook.ErrUnsignable) && !errors.Is(err, webhook.ErrUnsignedPart) {
				t.Fatalf("unknown error %v", err)
			}
			return
		}
		r = signedRequest(r, out)
		v, err := webhook.NewVerifier(s, []webhook.Secret{secret})
		if err != nil {
			t.Fatalf("%+v was signed but not compiled: %v", s, err)
		}
		if got := v.Verify(r, at); !got.OK && s.Timestamp.From[:min(5, len(s.Timestamp.From))] != "json:" {
			t.Fatalf("%+v: %+v; want what was signed to verify; request %+v", s, got, r)
		}
		other, err := webhook.NewVerifier(s, []webhook.Secret{{Value: []byte("deadbee0")}})
		if err != nil {
			return
		}
		if got := other.Verify(r, at); got.OK && s.Key.StripPrefix == "" {
			t.Fatalf("%+v: verifies with another secret; request %+v", s, r)
		}
	})
}
