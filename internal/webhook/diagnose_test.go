package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestDiagnose(t *testing.T) {
	const secret = "deadbeefdeadbeef"
	apiKey := webhook.Secret{Name: "the API key", Value: []byte("api-key-1")}
	plain, kv, semicolon := webhook.Scheme{}, preset(t, "timestamped-kv"), preset(t, "timestamped-kv-semicolon")
	signed := func(s webhook.Scheme, secret string) webhook.Sample {
		return samples(t, s, secret, 1)[0]
	}
	change := func(d webhook.Sample, f func(*webhook.Sample)) webhook.Sample {
		d.Header = slices.Clone(d.Header)
		f(&d)
		return d
	}
	rename := func(d *webhook.Sample, to string) {
		for i := range d.Header {
			if d.Header[i].Name == "X-Signature" {
				d.Header[i].Name = to
			}
		}
	}
	for _, tt := range []struct {
		name   string
		scheme webhook.Scheme
		sample webhook.Sample
		cause  webhook.Cause
		says   string
	}{
		{"good", plain, signed(plain, secret), webhook.CauseNone, "it verifies"},
		{"good, timestamp alone", preset(t, "hmac-timestamp-hex"), signed(preset(t, "hmac-timestamp-hex"), secret), webhook.CauseNone, "body not authenticated"},
		{"stale", kv, change(signed(kv, secret), func(d *webhook.Sample) { d.At = d.At.Add(2 * time.Hour) }), webhook.CauseTime, "2h0m0s before"},
		{"in the future", kv, change(signed(kv, secret), func(d *webhook.Sample) { d.At = d.At.Add(-2 * time.Hour) }), webhook.CauseTime, "2h0m0s after"},
		{"API key", plain, signed(plain, "api-key-1"), webhook.CauseOtherSecret, "the API key"},
		{"key as hex", plain, signed(webhook.Scheme{Key: webhook.Key{Encoding: "hex"}}, secret), webhook.CauseKeyForm, "key.encoding hex"},
		{"line break in the sender's secret", plain, signed(plain, secret+"\n"), webhook.CauseSecretSpace, "line break"},
		{"body written anew", plain, change(signed(plain, secret), func(d *webhook.Sample) { d.Body = bytes.ReplaceAll(d.Body, []byte(`":`), []byte(`": `)) }), webhook.CauseBodyChanged, "compact form"},
		{"header renamed", plain, change(signed(plain, secret), func(d *webhook.Sample) { rename(d, "X-Sig") }), webhook.CauseElsewhere, "header:X-Sig, not at header:X-Signature"},
		{"other form", plain, signed(webhook.Scheme{Signature: webhook.Signature{Prefix: "sha256=", Encoding: "base64"}}, secret), webhook.CauseElsewhere, "another form"},
		{"other scheme", plain, signed(kv, secret), webhook.CauseOtherScheme, "{timestamp}.{body}"},
		{"other separator", kv, signed(semicolon, secret), webhook.CauseOtherScheme, "{timestamp}:{body}"},
		{"other separator, other secret", kv, signed(semicolon, "nobody knows"), webhook.CauseNotExplained, `has no entry with tag "v1"; read in another way, it has a signature: encoding hex, prefix "", format kv with separator ";" and tag "h1"`},
		{"other tag", kv, signed(webhook.Scheme{Signature: webhook.Signature{Format: "list", Tag: "v1a"}}, "nobody knows"), webhook.CauseNotExplained, "cut, or not in the form"},
		{"other secret", plain, signed(plain, "nobody knows"), webhook.CauseNotExplained, "the secret does not make"},
		{"t altered", kv, change(signed(kv, secret), func(d *webhook.Sample) {
			for i, f := range d.Header {
				d.Header[i].Value = strings.Replace(f.Value, "t=1614265330", "t=1614265331", 1)
			}
		}), webhook.CauseNotExplained, "was changed"},
		{"header missing", plain, change(signed(plain, secret), func(d *webhook.Sample) { d.Header = nil }), webhook.CauseNotExplained, "no signature at header:X-Signature"},
		{"cut", plain, change(signed(plain, secret), func(d *webhook.Sample) { d.Header[len(d.Header)-1].Value = "ab" }), webhook.CauseNotExplained, "cut"},
		{"empty body", plain, change(signed(plain, secret), func(d *webhook.Sample) { d.Body = nil }), webhook.CauseNotExplained, "empty"},
		{"no timestamp", preset(t, "hmac-timestamp-hex"), change(signed(plain, secret), func(d *webhook.Sample) { d.Body = []byte("x") }), webhook.CauseNotExplained, "no timestamp at header:X-Timestamp"},
	} {
		got, err := webhook.Diagnose(t.Context(), tt.scheme, secrets(secret), []webhook.Secret{apiKey}, tt.sample)
		if err != nil || got.Cause != tt.cause || !strings.Contains(got.Text, tt.says) || (got.Hint == "") != (tt.cause == webhook.CauseNone) {
			t.Errorf("%s: %+v, %v; want %s that says %q", tt.name, got, err, tt.cause, tt.says)
		}
		if strings.Contains(got.Text+got.Hint, secret) || strings.Contains(got.Text+got.Hint, "api-key-1") {
			t.Errorf("%s: a secret shows in %q, %q", tt.name, got.Text, got.Hint)
		}
		if got.Scheme != nil {
			v, err := webhook.NewVerifier(*got.Scheme, secrets(secret))
			if err != nil || v.Verify(tt.sample.Request, tt.sample.At).SecretIndex != 0 {
				t.Errorf("%s: does not verify in the scheme that was named: %+v, %v", tt.name, got.Scheme, err)
			}
		}
	}
}

func TestFormatSkew(t *testing.T) {
	for d, want := range map[time.Duration]string{
		90*time.Second + time.Millisecond: "1m30s",
		-47 * time.Hour:                   "47h0m0s",
		26496 * time.Hour:                 "1104 days",
		-(50 * time.Hour):                 "2 days",
	} {
		if got := webhook.FormatSkew(d); got != want {
			t.Errorf("FormatSkew(%v) = %q, want %q", d, got, want)
		}
	}
}

// What was learnt is shown and written down, so no part of it may hold a
// secret that stands before the signature.
func TestNothingLearntHoldsASecret(t *testing.T) {
	const key, secret = "the-api-key", "the-webhook-secret"
	var signed, tagged, token []webhook.Sample
	for i := range 3 {
		r := post(fmt.Sprintf(`[{"eventId":"e%d"}]`, i))
		h := hmac.New(sha256.New, []byte(secret))
		h.Write(r.Body)
		mac := base64.StdEncoding.EncodeToString(h.Sum(nil))
		r.Header = []webhook.Field{{Name: "Authorization", Value: key + ":" + mac}}
		signed = append(signed, webhook.Sample{Request: r, At: at})
		r.Header = []webhook.Field{{Name: "X-Signature", Value: "a=b," + key + "=" + mac}}
		tagged = append(tagged, webhook.Sample{Request: r, At: at})
		r.Header = []webhook.Field{{Name: "X-Token", Value: key + ":" + secret}}
		token = append(token, webhook.Sample{Request: r, At: at})
	}
	for name, samples := range map[string][]webhook.Sample{"a signature": signed, "a tagged signature": tagged, "a token": token} {
		lesson, err := webhook.Learn(t.Context(), samples, secrets(secret, key), "")
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%+v", lesson); strings.Contains(text, key) || strings.Contains(text, secret) {
			t.Errorf("%s after a secret: learnt %s", name, text)
		}
		d, err := webhook.Diagnose(t.Context(), webhook.Scheme{}, secrets(secret), secrets(key), samples[0])
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%+v %+v", d, d.Scheme); strings.Contains(text, key) || strings.Contains(text, secret) {
			t.Errorf("%s after a secret: diagnosed %s", name, text)
		}
	}
}
