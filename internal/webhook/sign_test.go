package webhook_test

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// signedRequest is r as a sender sends it.
func signedRequest(r webhook.Request, out webhook.Signed) webhook.Request {
	r.RawQuery = out.RawQuery
	var kept []webhook.Field
	for _, f := range r.Header {
		replaced := false
		for _, n := range out.Header {
			replaced = replaced || strings.EqualFold(n.Name, f.Name)
		}
		if !replaced {
			kept = append(kept, f)
		}
	}
	r.Header = slices.Concat(kept, out.Header)
	return r
}

func header(r webhook.Request, name string) string {
	for _, f := range r.Header {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// sender is one way of signing that is in use near this market.
type sender struct {
	name   string
	scheme webhook.Scheme
	secret string
	req    webhook.Request
	where  string                         // header that carries the signature, empty if it is in the body
	want   func(r webhook.Request) string // its value, made without this package
	covers bool
}

func senders() []sender {
	const number = `{"trackingNumber":"1Z999","ts":"1614265330","sign":"SIGN"}`
	bodyMAC := func(key string) []byte { return mac(key, body) }
	b64 := base64.StdEncoding.EncodeToString
	all := headerSenders(bodyMAC, b64)
	return append(all,
		sender{
			name:   "TrackingMore V2, 51Tracking, Track123: inside the body, timestamp alone, key is an e-mail",
			scheme: webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{From: "json:/sign"}, Timestamp: webhook.Timestamp{From: "json:/ts"}},
			secret: "ops@example.com",
			req:    post(strings.Replace(number, "SIGN", hexMAC("ops@example.com", "1614265330"), 1)),
		},
		sender{
			name: "Adyen: inside the body, eight fields, key in hex",
			scheme: webhook.Scheme{
				Key:       webhook.Key{Encoding: "hex"},
				Signed:    "{json:/pspReference}:{json:/originalReference}:{json:/merchantAccountCode}:{json:/merchantReference}:{json:/amount/value}:{json:/amount/currency}:{json:/eventCode}:{json:/success}",
				Signature: webhook.Signature{From: "json:/additionalData/hmacSignature", Encoding: "base64"},
			},
			// The example that the vendor publishes.
			secret: "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
			req: post(`{"pspReference":"7914073381342284","originalReference":"","merchantAccountCode":"TestMerchant","merchantReference":"TestPayment-1407325143704",` +
				`"amount":{"value":1130,"currency":"EUR"},"eventCode":"AUTHORISATION","success":"true","additionalData":{"hmacSignature":"coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0="}}`),
		},
	)
}

func headerSenders(bodyMAC func(string) []byte, b64 func([]byte) string) []sender {
	const composed, decomposed = "\ufb01\u2460\u00e9", "fi1e\u0301"
	return []sender{
		{
			name:   "Standard Webhooks",
			scheme: webhook.Scheme{Key: webhook.Key{StripPrefix: "whsec_", Encoding: "base64"}, Signed: "{header:webhook-id}.{timestamp}.{body}", Signature: webhook.Signature{From: "header:webhook-signature", Format: "list", Encoding: "base64"}, Timestamp: webhook.Timestamp{From: "header:webhook-timestamp"}},
			secret: "whsec_" + b64([]byte("raw key")), req: post(body, "webhook-id", "msg_1"), where: "webhook-signature", covers: true,
			want: func(webhook.Request) string { return "v1," + b64(mac("raw key", "msg_1.1614265330."+body)) },
		},
		{
			name:   "Stripe, Shippo",
			scheme: webhook.Scheme{Signed: "{timestamp}.{body}", Signature: webhook.Signature{From: "header:Stripe-Signature", Format: "kv"}, Timestamp: webhook.Timestamp{From: "sig:t"}},
			secret: "whsec_text", req: post(body), where: "Stripe-Signature", covers: true,
			want: func(webhook.Request) string {
				return "t=1614265330,v1=" + hexMAC("whsec_text", "1614265330."+body)
			},
		},
		{
			name:   "GitHub, Flexport",
			scheme: webhook.Scheme{Signature: webhook.Signature{From: "header:X-Hub-Signature-256", Prefix: "sha256="}},
			secret: "k", req: post(body), where: "X-Hub-Signature-256", covers: true,
			want: func(webhook.Request) string { return "sha256=" + hex.EncodeToString(bodyMAC("k")) },
		},
		{
			name:   "Shopify, AfterShip",
			scheme: webhook.Scheme{Signature: webhook.Signature{From: "header:aftership-hmac-sha256", Encoding: "base64"}},
			secret: "k", req: post(body), where: "aftership-hmac-sha256", covers: true,
			want: func(webhook.Request) string { return b64(bodyMAC("k")) },
		},
		{
			name:   "EasyPost",
			scheme: webhook.Scheme{Key: webhook.Key{Normalize: "nfkd"}, Signature: webhook.Signature{From: "header:X-Hmac-Signature", Prefix: "hmac-sha256-hex="}},
			secret: composed, req: post(body), where: "X-Hmac-Signature", covers: true,
			want: func(webhook.Request) string { return "hmac-sha256-hex=" + hex.EncodeToString(bodyMAC(decomposed)) },
		},
		{
			name:   "17TRACK",
			scheme: webhook.Scheme{Kind: "digest", Signed: "{body}/{secret}", Signature: webhook.Signature{From: "header:sign"}},
			secret: "apikey", req: post(body), where: "sign", covers: true,
			want: func(webhook.Request) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(body+"/apikey"))) },
		},
		{
			name:   "TrackingMore V4",
			scheme: webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{From: "header:Signature"}, Timestamp: webhook.Timestamp{From: "header:Timestamp"}},
			secret: "apikey", req: post(body), where: "Signature",
			want: func(webhook.Request) string { return hexMAC("apikey", "1614265330") },
		},
		{
			name:   "Square",
			scheme: webhook.Scheme{Signed: "{url}{body}", PublicURL: "https://hooks.example/in", Signature: webhook.Signature{From: "header:x-square-hmacsha256-signature", Encoding: "base64"}},
			secret: "k", req: post(body), where: "x-square-hmacsha256-signature", covers: true,
			want: func(webhook.Request) string { return b64(mac("k", "https://hooks.example/in"+body)) },
		},
		{
			name:   "Twilio",
			scheme: webhook.Scheme{Algorithm: "sha1", Signed: "{url}{formsorted}", PublicURL: "https://hooks.example/in", Signature: webhook.Signature{From: "header:X-Twilio-Signature", Encoding: "base64"}},
			secret: "k", req: post("To=%2B1&From=a+b&To=%2B0&To=%2B1"), where: "X-Twilio-Signature",
			want: func(webhook.Request) string {
				h := hmac.New(sha1.New, []byte("k"))
				h.Write([]byte("https://hooks.example/inFroma bTo+0To+1"))
				return b64(h.Sum(nil))
			},
		},
		{
			name:   "Slack",
			scheme: webhook.Scheme{Signed: "v0:{timestamp}:{body}", Signature: webhook.Signature{From: "header:X-Slack-Signature", Prefix: "v0="}, Timestamp: webhook.Timestamp{From: "header:X-Slack-Request-Timestamp"}},
			secret: "k", req: post(body), where: "X-Slack-Signature", covers: true,
			want: func(webhook.Request) string { return "v0=" + hexMAC("k", "v0:1614265330:"+body) },
		},
		{
			name:   "Sanity",
			scheme: webhook.Scheme{Signed: "{timestamp}.{body}", Signature: webhook.Signature{From: "header:sanity-webhook-signature", Format: "kv", Encoding: "base64url"}, Timestamp: webhook.Timestamp{From: "sig:t", Unit: "ms"}},
			secret: "k", req: post(body), where: "sanity-webhook-signature", covers: true,
			want: func(webhook.Request) string {
				return "t=1614265330000,v1=" + base64.RawURLEncoding.EncodeToString(mac("k", "1614265330000."+body))
			},
		},
		{
			name:   "Banri",
			scheme: webhook.Scheme{Kind: "digest", Algorithm: "md5", Signed: "{secret}&{timestamp}&{json:/0/data/trackingNumber}&{secret}", Signature: webhook.Signature{From: "header:sign"}, Timestamp: webhook.Timestamp{From: "header:timestamp"}},
			secret: "k", req: post(body), where: "sign",
			want: func(webhook.Request) string { return fmt.Sprintf("%x", md5.Sum([]byte("k&1614265330&1Z&k"))) },
		},
		{
			name:   "Ship24",
			scheme: webhook.Scheme{Kind: "token", Signature: webhook.Signature{From: "header:Authorization", Prefix: "Bearer "}},
			secret: "s3cret", req: post(body), where: "Authorization",
			want: func(webhook.Request) string { return "Bearer s3cret" },
		},
	}
}

func TestSenders(t *testing.T) {
	for _, tt := range senders() {
		t.Run(tt.name, func(t *testing.T) {
			secret := webhook.Secret{Value: []byte(tt.secret)}
			r := tt.req
			out, err := webhook.Sign(tt.scheme, secret, r, at)
			if tt.where == "" {
				if !errors.Is(err, webhook.ErrUnsignable) {
					t.Fatalf("Sign: %v; want ErrUnsignable", err)
				}
			} else {
				if err != nil {
					t.Fatalf("Sign: %v", err)
				}
				r = signedRequest(r, out)
				if got, want := header(r, tt.where), tt.want(r); got != want {
					t.Errorf("%s is %q; want %q", tt.where, got, want)
				}
			}
			if got := verifier(t, tt.scheme, tt.secret).Verify(r, at); !got.OK || got.BodyAuthenticated != tt.covers {
				t.Errorf("verdict %+v; want OK, body authenticated %v", got, tt.covers)
			}
			other := strings.Map(func(c rune) rune { return c ^ 1 }, tt.secret[:1]) + tt.secret[1:]
			if v, err := webhook.NewVerifier(tt.scheme, secrets(other)); err == nil && tt.scheme.Key.StripPrefix == "" {
				if got := v.Verify(r, at); got.Reason != webhook.ReasonSignatureMismatch {
					t.Errorf("another secret: verdict %+v; want signature_mismatch", got)
				}
			}
		})
	}
}

func TestSignPresets(t *testing.T) {
	for _, p := range webhook.Presets() {
		secret := webhook.Secret{Value: []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}
		r := post(body, "Content-Type", "application/json", "X-Signature", "stale", "x-signature", "stale too")
		out, err := webhook.Sign(p.Scheme, secret, r, at)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		signed := signedRequest(r, out)
		v, err := webhook.NewVerifier(p.Scheme, []webhook.Secret{secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Verify(signed, at); !got.OK {
			t.Errorf("%s: %+v; want what was signed to verify: %+v", p.Name, got, signed.Header)
		}
		again, err := webhook.Sign(p.Scheme, secret, r, at)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(out) {
			t.Errorf("%s: signed again %v, %v; want the same %v", p.Name, again, err, out)
		}
		if header(r, "X-Signature") != "stale" || len(r.Header) != 3 {
			t.Errorf("%s: Sign changed the request: %v", p.Name, r.Header)
		}
	}
}

func TestSignMakesUpAnIdentifier(t *testing.T) {
	sw := preset(t, "standard-webhooks")
	secret := webhook.Secret{Value: []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}
	id := func(body string, at time.Time) string {
		out, err := webhook.Sign(sw, secret, post(body), at)
		if err != nil {
			t.Fatal(err)
		}
		return header(signedRequest(post(body), out), "webhook-id")
	}
	first := id(body, at)
	if !strings.HasPrefix(first, "msg_") || strings.Contains(first, ".") {
		t.Errorf("id %q; want msg_… without a full stop", first)
	}
	if again := id(body, at.Add(time.Hour)); again != first {
		t.Errorf("id %q when sent again; want %q", again, first)
	}
	if other := id(body+" ", at); other == first {
		t.Errorf("id %q for another body too", other)
	}
	out, err := webhook.Sign(sw, secret, post(body, "Webhook-Id", "mine"), at)
	if err != nil || header(webhook.Request{Header: out.Header}, "webhook-id") != "" {
		t.Errorf("Sign = %v, %v; want the request's own id left alone", out, err)
	}
}

func TestSignIntoTheQuery(t *testing.T) {
	s := webhook.Scheme{
		Signed:    "{query:id}.{body}",
		Signature: webhook.Signature{From: "query:sig nature", Encoding: "base64", Prefix: "v 0+"},
	}
	r := post(body)
	r.RawQuery = "a=%7e&sig+nature=stale"
	secret := secrets("k")[0]
	out, err := webhook.Sign(s, secret, r, at)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.RawQuery, "a=%7e&id=msg_") || strings.Contains(out.RawQuery, "stale") || len(out.Header) != 0 {
		t.Errorf("signed %+v; want the query only, other parameters as they were", out)
	}
	if got := verifier(t, s, "k").Verify(signedRequest(r, out), at); !got.OK {
		t.Errorf("verdict %+v on query %q; want OK", got, out.RawQuery)
	}
}

func TestSignErrors(t *testing.T) {
	twice := post(body, "X-Id", "1", "x-id", "2")
	for _, tt := range []struct {
		scheme webhook.Scheme
		req    webhook.Request
		want   error
	}{
		{webhook.Scheme{Signed: "{json:/0/nonesuch}"}, post(body), webhook.ErrUnsignedPart},
		{webhook.Scheme{Signed: "{json:/0/nonesuch}"}, post("not JSON"), webhook.ErrUnsignedPart},
		{webhook.Scheme{Signed: "{header:X-Id}"}, twice, webhook.ErrUnsignedPart},
		{webhook.Scheme{Signed: "{formsorted}"}, post("a=%zz"), webhook.ErrUnsignedPart},
		{webhook.Scheme{Timestamp: webhook.Timestamp{From: "json:/ts"}}, post(body), webhook.ErrUnsignedPart},
		{webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{From: "json:/s"}, Timestamp: webhook.Timestamp{From: "json:/ts"}}, post(body), webhook.ErrUnsignable},
	} {
		if _, err := webhook.Sign(tt.scheme, secrets("k")[0], tt.req, at); !errors.Is(err, tt.want) {
			t.Errorf("%+v: error %v; want %v", tt.scheme, err, tt.want)
		}
	}
	var se *webhook.SchemeError
	if _, err := webhook.Sign(webhook.Scheme{}, webhook.Secret{}, post(body), at); !errors.As(err, &se) || se.Field != "secret" {
		t.Errorf("empty secret: error %v; want one about secret", err)
	}
	if _, err := webhook.Sign(webhook.Scheme{Kind: "x"}, secrets("k")[0], post(body), at); !errors.As(err, &se) || se.Field != "kind" {
		t.Errorf("bad scheme: error %v; want one about kind", err)
	}
}

// TestCorruptedIsAMismatch alters every digit that can be chosen, in every way
// of signing that is in use: each keeps its form and none verifies.
func TestCorruptedIsAMismatch(t *testing.T) {
	tried := 0
	for _, s := range senders() {
		if s.where == "" {
			continue // inside the body
		}
		secret := webhook.Secret{Name: "s", Value: []byte(s.secret)}
		at := time.Unix(1614265330, 0)
		out, err := webhook.Sign(s.scheme, secret, s.req, at)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		r := out.Apply(s.req)
		v, err := webhook.NewVerifier(s.scheme, []webhook.Secret{secret})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.Verify(r, at); !got.OK {
			t.Fatalf("%s: %+v", s.name, got)
		}
		before := header(r, s.where)
		for i, n := 0, 1; i < n; i++ {
			bad, err := webhook.CorruptSignatures(s.scheme, r, func(most int) int { n = most; return i })
			if err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
			if got := v.Verify(bad, at); got.OK || got.Reason != webhook.ReasonSignatureMismatch {
				t.Errorf("%s: %q: %+v", s.name, header(bad, s.where), got)
			}
			tried++
		}
		if header(r, s.where) != before {
			t.Errorf("%s: the request itself was altered", s.name)
		}
	}
	if tried < 100 {
		t.Errorf("%d alterations tried", tried)
	}
}

func TestCorruptAltersEverySignature(t *testing.T) {
	scheme := webhook.Scheme{Signature: webhook.Signature{From: "header:X-Sig", Format: webhook.FormatKV, Tag: "v1"}, Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "sig:t"}}
	r := webhook.Request{Header: []webhook.Field{{Name: "x-sig", Value: "t=5, v1=ab,v0=cd,v1=0f"}, {Name: "Other", Value: "v1=ab"}}}
	got, err := webhook.CorruptSignatures(scheme, r, func(int) int { return 0 })
	if err != nil || header(got, "X-Sig") != "t=5, v1=0b,v0=cd,v1=1f" || header(got, "Other") != "v1=ab" {
		t.Errorf("%+v, %v", got.Header, err)
	}
}

func TestCorruptInTheQuery(t *testing.T) {
	scheme := webhook.Scheme{Signature: webhook.Signature{From: "query:sig", Encoding: webhook.EncodingBase64}}
	got, err := webhook.CorruptSignatures(scheme, webhook.Request{RawQuery: "a=1&sig=xy%2Bz&&%zz=3&b=2"}, func(int) int { return 1 })
	if err != nil || got.RawQuery != "a=1&%zz=3&b=2&sig=x0%2Bz" {
		t.Errorf("%q, %v", got.RawQuery, err)
	}
	if got, err := webhook.CorruptSignatures(scheme, webhook.Request{RawQuery: "sig=%zz"}, func(int) int { return 1 }); !errors.Is(err, webhook.ErrUnsigned) {
		t.Errorf("a malformed escape: %q, %v", got.RawQuery, err)
	}
}

func TestCorruptErrors(t *testing.T) {
	var bad *webhook.SchemeError
	for _, tt := range []struct {
		name   string
		scheme webhook.Scheme
		header []webhook.Field
		is     func(error) bool
	}{
		{"no signature", webhook.Scheme{Signature: webhook.Signature{From: "header:X"}}, nil, func(err error) bool { return errors.Is(err, webhook.ErrUnsigned) }},
		{"without its prefix", webhook.Scheme{Signature: webhook.Signature{From: "header:X", Prefix: "p="}}, []webhook.Field{{Name: "X", Value: "ab"}}, func(err error) bool { return errors.Is(err, webhook.ErrUnsigned) }},
		{"inside the body", webhook.Scheme{Signed: "{json:/a}", Signature: webhook.Signature{From: "json:/sig"}}, nil, func(err error) bool { return errors.Is(err, webhook.ErrUnsignable) }},
		{"no scheme", webhook.Scheme{Kind: "x"}, nil, func(err error) bool { return errors.As(err, &bad) }},
	} {
		if _, err := webhook.CorruptSignatures(tt.scheme, webhook.Request{Header: tt.header}, func(int) int { return 0 }); !tt.is(err) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestSignedOn(t *testing.T) {
	r := webhook.Request{RawQuery: "a", Header: []webhook.Field{{Name: "A", Value: "1"}, {Name: "x-sig", Value: "old"}, {Name: "B", Value: "2"}, {Name: "X-SIG", Value: "older"}}}
	got := webhook.Signed{RawQuery: "q", Header: []webhook.Field{{Name: "X-Sig", Value: "new"}, {Name: "X-Time", Value: "5"}}}.Apply(r)
	want := []webhook.Field{{Name: "A", Value: "1"}, {Name: "X-Sig", Value: "new"}, {Name: "B", Value: "2"}, {Name: "X-Time", Value: "5"}}
	if diff := cmp.Diff(want, got.Header); diff != "" || got.RawQuery != "q" || len(r.Header) != 4 || r.Header[1].Value != "old" {
		t.Errorf("query %q, original %v, header (-want +got):\n%s", got.RawQuery, r.Header, diff)
	}
}
