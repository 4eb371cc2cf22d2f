package webhook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// signedBy returns a delivery that was signed with the secret at that time.
func signedBy(t *testing.T, s webhook.Scheme, secret webhook.Secret) webhook.Request {
	t.Helper()
	r := post(body)
	signed, err := webhook.Sign(s, secret, r, at)
	if err != nil {
		t.Fatal(err)
	}
	return signed.Apply(r)
}

func presetSecret(name, text string) webhook.Secret {
	if name == "standard-webhooks" {
		text = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	}
	return webhook.Secret{Name: "env:S", Value: []byte(text)}
}

// signsNothing fails if a trace has a signature, whole, that its delivery does not have.
func signsNothing(t *testing.T, what string, trace webhook.Trace, s webhook.Scheme) {
	t.Helper()
	for _, e := range trace.Expected {
		if start := strings.TrimPrefix(e.Value, s.WithDefaults().Signature.Prefix); !e.Matches && len(start) > len("123456…") {
			t.Errorf("%s: the trace shows a signature that was not sent: %q", what, e.Value)
		}
	}
}

// TestTraceOfEveryPreset holds each step against what was sent, and that no secret shows.
func TestTraceOfEveryPreset(t *testing.T) {
	for _, p := range webhook.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			secret := presetSecret(p.Name, "a-secret-of-this-test")
			other := webhook.Secret{Name: "env:OTHER", Value: []byte("b2Zhbm90aGVydGVzdA==")}
			v, err := webhook.NewVerifier(p.Scheme, []webhook.Secret{other, secret})
			if err != nil {
				t.Fatal(err)
			}
			good := signedBy(t, p.Scheme, secret)
			got := v.Trace(good, at)
			if want := v.Verify(good, at); got.Verdict != want || !want.OK {
				t.Errorf("verdict %+v; want that of Verify, %+v", got.Verdict, want)
			}
			if got.Signature.Times != 1 || len(got.Entries) != 1 || !got.Entries[0].WellFormed {
				t.Errorf("signature %+v, entries %+v; want one that is well-formed", got.Signature, got.Entries)
			}
			if len(got.Expected) != 2 || got.Expected[0].Matches || !got.Expected[1].Matches || got.Expected[1].Secret != "env:S" || got.Expected[1].Value != got.Entries[0].Text {
				t.Errorf("expected %+v of entries %+v; want the second to match", got.Expected, got.Entries)
			}
			if p.Scheme.Timestamp.From != "" && !got.Time.Equal(at) {
				t.Errorf("time %v of %+v; want %v", got.Time, got.Timestamp, at)
			}
			checkParts(t, p.Scheme, got.Parts)
			hidesSecrets(t, got, secret, other)

			late := v.Trace(good, at.Add(time.Hour))
			if late.Verdict != v.Verify(good, at.Add(time.Hour)) || !late.Expected[1].Matches {
				t.Errorf("an hour later: %+v", late)
			}
			for what, r := range broken(good, p.Scheme) {
				trace := v.Trace(r, at)
				if want := v.Verify(r, at); trace.Verdict != want {
					t.Errorf("%s: verdict %+v; want that of Verify, %+v", what, trace.Verdict, want)
				}
				hidesSecrets(t, trace, secret, other)
				signsNothing(t, what, trace, p.Scheme)
			}
		})
	}
}

// checkParts compares parts with the template, and the bytes of the body.
func checkParts(t *testing.T, s webhook.Scheme, parts []webhook.Part) {
	t.Helper()
	template := ""
	for _, p := range parts {
		switch {
		case p.Name == "":
			template += string(p.Bytes)
		default:
			template += "{" + p.Name + "}"
		}
		if p.Name == "body" && string(p.Bytes) != body || p.Name == "secret" && p.Bytes != nil || p.Reason != "" {
			t.Errorf("part %q: %q, %s", p.Name, p.Bytes, p.Reason)
		}
	}
	if want := s.WithDefaults(); want.Kind != webhook.KindToken && template != want.Signed {
		t.Errorf("parts of %q; want those of %q", template, want.Signed)
	}
}

// hidesSecrets fails if a trace shows a secret in any way of printing it.
func hidesSecrets(t *testing.T, trace webhook.Trace, all ...webhook.Secret) {
	t.Helper()
	trace.Parts = slices.DeleteFunc(slices.Clone(trace.Parts), func(p webhook.Part) bool { return p.Name == "body" })
	asJSON, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	printed := fmt.Sprintf("%s %q", asJSON, fmt.Sprintf("%+v", trace))
	for _, s := range all {
		if strings.Contains(printed, string(s.Value)) {
			t.Errorf("the trace shows a secret: %s", printed)
		}
	}
}

// broken returns requests that do not verify.
func broken(good webhook.Request, s webhook.Scheme) map[string]webhook.Request {
	header := func(change func(webhook.Field) []webhook.Field) webhook.Request {
		r := good
		r.Header = nil
		for _, f := range good.Header {
			r.Header = append(r.Header, change(f)...)
		}
		return r
	}
	from := strings.TrimPrefix(s.WithDefaults().Signature.From, "header:")
	only := func(change func(webhook.Field) []webhook.Field) webhook.Request {
		return header(func(f webhook.Field) []webhook.Field {
			if strings.EqualFold(f.Name, from) {
				return change(f)
			}
			return []webhook.Field{f}
		})
	}
	altered, empty := good, good
	altered.Body, empty.Body = append(bytes.Clone(good.Body), ' '), []byte{}
	return map[string]webhook.Request{
		"body altered": altered,
		"body empty":   empty,
		"no header":    header(func(webhook.Field) []webhook.Field { return nil }),
		"all repeated": header(func(f webhook.Field) []webhook.Field { return []webhook.Field{f, f} }),
		"no signature": only(func(webhook.Field) []webhook.Field { return nil }),
		"repeated":     only(func(f webhook.Field) []webhook.Field { return []webhook.Field{f, f} }),
		"empty value":  only(func(f webhook.Field) []webhook.Field { return []webhook.Field{{Name: f.Name}} }),
		"cut": only(func(f webhook.Field) []webhook.Field {
			return []webhook.Field{{Name: f.Name, Value: f.Value[:len(f.Value)-1]}}
		}),
		"in other form": only(func(f webhook.Field) []webhook.Field { return []webhook.Field{{Name: f.Name, Value: "=,;\xff"}} }),
		"a letter more": only(func(f webhook.Field) []webhook.Field { return []webhook.Field{{Name: f.Name, Value: f.Value + "x"}} }),
	}
}

func TestTraceSaysWhatIsMissing(t *testing.T) {
	s := webhook.Scheme{
		Signed: "{method}|{path}|{query:q}|{json:/id}|{header:X-Id}|{timestamp}|{body}", Timestamp: webhook.Timestamp{From: "header:X-At", Unit: webhook.UnitMilliseconds},
	}
	v := verifier(t, s, "k")
	got := v.Trace(webhook.Request{Method: "PUT", Path: "/a%20b", RawQuery: "q=%2F", Body: []byte(`{"id":7}`), Header: []webhook.Field{{Name: "X-At", Value: "soon"}}}, at)
	texts := map[string]string{}
	for _, p := range got.Parts {
		if p.Name != "" {
			texts[p.Name] = string(p.Bytes) + string(p.Reason)
		}
	}
	want := map[string]string{
		"method": "PUT", "path": "/a%20b", "query:q": "%2F", "json:/id": "7", "header:X-Id": "signed_part_missing", "timestamp": "soon", "body": `{"id":7}`,
	}
	if fmt.Sprint(texts) != fmt.Sprint(want) || got.Expected != nil || !got.Time.IsZero() || got.Signature.Times != 0 || got.Verdict.Reason != webhook.ReasonSignatureMissing {
		t.Errorf("trace %+v, parts %v; want %v", got, texts, want)
	}
}

func TestTraceOfSeveralSignatures(t *testing.T) {
	s := preset(t, "timestamped-kv")
	v := verifier(t, s, "old", "new")
	right := hexMAC("new", "1614265330."+body)
	value := "t=1614265330,v0=zz,v1=zz,v1=" + strings.Repeat("0", 64) + ",v1=" + right
	got := v.Trace(post(body, "X-Signature", value), at)
	want := []webhook.Entry{{Text: "zz"}, {Text: strings.Repeat("0", 64), WellFormed: true}, {Text: right, WellFormed: true}}
	if !slices.Equal(got.Entries, want) || got.Expected[0].Matches || !got.Expected[1].Matches || got.Verdict.SecretName != "env:S1" || got.Timestamp != (webhook.Found{From: "sig:t", Value: "1614265330", Times: 1}) {
		t.Errorf("trace %+v", got)
	}
	twice := v.Trace(post(body, "X-Signature", "t=1,t=2,v1="+right), at)
	if twice.Timestamp.Times != 2 || twice.Expected != nil || twice.Entries != nil {
		t.Errorf("two timestamps: %+v", twice)
	}
	query := verifier(t, webhook.Scheme{Signature: webhook.Signature{From: "query:sig", Encoding: webhook.EncodingBase64}}, "k")
	signed, err := webhook.Sign(webhook.Scheme{Signature: webhook.Signature{From: "query:sig", Encoding: webhook.EncodingBase64}}, secrets("k")[0], post(body), at)
	if err != nil {
		t.Fatal(err)
	}
	if got := query.Trace(signed.Apply(post(body)), at); !got.Verdict.OK || !got.Expected[0].Matches {
		t.Errorf("in the query: %+v", got)
	}
}

// A secret may be shorter than what shows of a signature that is missing.
func TestTraceOfAShortToken(t *testing.T) {
	s := webhook.Scheme{Kind: webhook.KindToken, Signature: webhook.Signature{From: "header:X-Token"}}
	v, err := webhook.NewVerifier(s, secrets("abc"))
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Trace(post(body, "X-Token", "abd"), at); got.Verdict.OK || len(got.Expected) != 1 || got.Expected[0].Value != webhook.Mask {
		t.Errorf("%+v; want one expected token, masked", got)
	}
}
