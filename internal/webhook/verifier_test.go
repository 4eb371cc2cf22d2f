package webhook_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

// at is the time of signing in these tests.
var at = time.Unix(1614265330, 0)

const body = `[{"eventId":"6f1f9d9c-8f62-4a3c-9b53-1c1f8f5a0b11","event":"router.delivered","data":{"trackingNumber":"1Z"}}]`

func mac(key, message string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(message))
	return h.Sum(nil)
}

func hexMAC(key, message string) string { return hex.EncodeToString(mac(key, message)) }

func secrets(values ...string) []webhook.Secret {
	var all []webhook.Secret
	for i, v := range values {
		all = append(all, webhook.Secret{Name: fmt.Sprintf("env:S%d", i), Value: []byte(v)})
	}
	return all
}

func verifier(t testing.TB, s webhook.Scheme, values ...string) *webhook.Verifier {
	t.Helper()
	v, err := webhook.NewVerifier(s, secrets(values...))
	if err != nil {
		t.Fatalf("NewVerifier(%+v): %v", s, err)
	}
	return v
}

func preset(t testing.TB, name string) webhook.Scheme {
	t.Helper()
	p, ok := webhook.PresetByName(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	return p.Scheme
}

func post(body string, header ...string) webhook.Request {
	r := webhook.Request{Method: "POST", Path: "/hook", Body: []byte(body)}
	for i := 0; i < len(header); i += 2 {
		r.Header = append(r.Header, webhook.Field{Name: header[i], Value: header[i+1]})
	}
	return r
}

func TestVerifyPublishedValues(t *testing.T) {
	const slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	slack := preset(t, "versioned-timestamp-body")
	slack.Signature.From = "header:X-Slack-Signature"
	slack.Timestamp.From = "header:X-Slack-Request-Timestamp"
	for _, tt := range []struct {
		name   string
		scheme webhook.Scheme
		secret string
		at     int64
		req    webhook.Request
	}{
		{
			"GitHub", preset(t, "hmac-body-hex-prefixed"), "It's a Secret to Everybody", 0,
			post("Hello, World!", "X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
		},
		{
			"Standard Webhooks", preset(t, "standard-webhooks"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1614265330,
			post(`{"test": 2432232314}`, "webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330",
				"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
		},
		{
			"Slack", slack, "8f742231b10e8888abcd99yyyzzz85a5", 1531420618,
			post(slackBody, "X-Slack-Request-Timestamp", "1531420618",
				"X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
		},
		{
			"Twilio",
			webhook.Scheme{
				Algorithm: "sha1", Signed: "{url}{formsorted}", PublicURL: "https://mycompany.com/myapp.php?foo=1&bar=2",
				Signature: webhook.Signature{From: "header:X-Twilio-Signature", Encoding: "base64"},
			},
			"12345", 0,
			post("To=%2B18005551212&CallSid=CA1234567890ABCDE&Digits=1234&Caller=%2B12349013030&From=%2B12349013030",
				"X-Twilio-Signature", "0/KCTR6DLpKmkAf8muzZqo1nDgQ="),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, tt.scheme, tt.secret)
			if got := v.Verify(tt.req, time.Unix(tt.at, 0)); !got.OK || got.Reason != "" || got.SecretIndex != 0 || got.SecretName != "env:S0" {
				t.Errorf("verdict %+v; want OK", got)
			}
			tt.req.Body = append([]byte(" "), tt.req.Body...)
			if got := v.Verify(tt.req, time.Unix(tt.at, 0)); got.OK || got.Reason != webhook.ReasonSignatureMismatch {
				t.Errorf("altered body: verdict %+v; want signature_mismatch", got)
			}
		})
	}
}

func TestVerifyBadDeliveries(t *testing.T) {
	plain := webhook.Scheme{}
	sw := preset(t, "standard-webhooks")
	sw.Key = webhook.Key{}
	kv := preset(t, "timestamped-kv")
	b64 := webhook.Scheme{Signature: webhook.Signature{Encoding: "base64"}}
	b64url := webhook.Scheme{Signature: webhook.Signature{Encoding: "base64url"}}
	const ts = "1614265330"
	good := hexMAC("k", body)
	good64 := base64.StdEncoding.EncodeToString(mac("k", body))
	stamped := hexMAC("k", ts+"."+body)
	signedID := "v1," + base64.StdEncoding.EncodeToString(mac("k", "msg_1."+ts+"."+body))
	query := webhook.Scheme{Signature: webhook.Signature{From: "query:sig"}}
	withQuery := func(q string) webhook.Request { r := post(body); r.RawQuery = q; return r }
	inBody := webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{From: "json:/sign"}, Timestamp: webhook.Timestamp{From: "json:/ts"}}

	for _, tt := range []struct {
		name   string
		scheme webhook.Scheme
		req    webhook.Request
		want   webhook.Reason
	}{
		{"good", plain, post(body, "x-signature", good), ""},
		{"good, upper-case hex", plain, post(body, "X-Signature", strings.ToUpper(good)), ""},
		{"good, kv", kv, post(body, "X-Signature", "t="+ts+",v1="+stamped), ""},
		{"good, kv with spaces, other versions and a bad entry", kv, post(body, "X-Signature", "t="+ts+", v0=abc, v1=abc, v1="+stamped), ""},
		{"good, list", sw, post(body, "webhook-id", "msg_1", "webhook-timestamp", ts, "webhook-signature", "v1a,xx v1,"+good64+" "+signedID), ""},
		{"good, base64", b64, post(body, "X-Signature", good64), ""},
		{"good, query", query, withQuery("a=b&sig=" + good), ""},
		{"good, base64url padded", b64url, post(body, "X-Signature", base64.URLEncoding.EncodeToString(mac("k", body))), ""},
		{"good, base64url bare", b64url, post(body, "X-Signature", base64.RawURLEncoding.EncodeToString(mac("k", body))), ""},
		{"good, bytes that are no text", plain, post(body+"\x00\xff\r\n", "X-Signature", hexMAC("k", body+"\x00\xff\r\n")), ""},
		{"good, kv beside a wrong one", kv, post(body, "X-Signature", "t="+ts+",v1="+hexMAC("x", "y")+",v1="+stamped+",v1=short"), ""},
		{"good, in the body", inBody, post(`{"sign":"` + hexMAC("k", ts) + `","ts":` + ts + `}`), ""},

		{"no header", plain, post(body), "signature_missing"},
		{"renamed header", plain, post(body, "X-Signature-2", good), "signature_missing"},
		{"wrong secret", plain, post(body, "X-Signature", hexMAC("k2", body)), "signature_mismatch"},
		{"secret with a newline", plain, post(body, "X-Signature", hexMAC("k\n", body)), "signature_mismatch"},
		{"made with an empty secret", plain, post(body, "X-Signature", hexMAC("", body)), "signature_mismatch"},
		{"plain hash instead", plain, post(body, "X-Signature", fmt.Sprintf("%x", sha256.Sum256([]byte(body)))), "signature_mismatch"},
		{"altered byte", plain, post(strings.Replace(body, "1Z", "2Z", 1), "X-Signature", good), "signature_mismatch"},
		{"re-serialised", plain, post(strings.Replace(body, ":", ": ", 1), "X-Signature", good), "signature_mismatch"},
		{"newline added", plain, post(body+"\n", "X-Signature", good), "signature_mismatch"},
		{"truncated MAC", plain, post(body, "X-Signature", good[:32]), "signature_malformed"},
		{"one digit short", plain, post(body, "X-Signature", good[:63]), "signature_malformed"},
		{"MAC too long", plain, post(body, "X-Signature", good+"00"), "signature_malformed"},
		{"empty MAC", plain, post(body, "X-Signature", ""), "signature_malformed"},
		{"not hex", plain, post(body, "X-Signature", strings.Repeat("zz", 32)), "signature_malformed"},
		{"space before", plain, post(body, "X-Signature", " "+good), "signature_malformed"},
		{"prefix that is not wanted", plain, post(body, "X-Signature", "sha256="+good), "signature_malformed"},
		{"prefix missing", preset(t, "hmac-body-hex-prefixed"), post(body, "X-Hub-Signature-256", good), "signature_malformed"},
		{"prefix alone", preset(t, "hmac-body-hex-prefixed"), post(body, "X-Hub-Signature-256", "sha256="), "signature_malformed"},
		{"repeated header", plain, post(body, "X-Signature", good, "x-signature", good), "header_repeated"},
		{"repeated header, one of them bad", plain, post(body, "X-Signature", "x", "X-Signature", good), "header_repeated"},
		{"a bit of the MAC flipped", plain, post(body, "X-Signature", good[:63]+strings.Trim("01", good[63:])[:1]), "signature_mismatch"},
		{"two MACs in a plain header", plain, post(body, "X-Signature", good+", "+good), "signature_malformed"},
		{"empty body", plain, post("", "X-Signature", hexMAC("k", "")), "body_empty"},
		{"base64 without padding", b64, post(body, "X-Signature", strings.TrimRight(good64, "=")), "signature_malformed"},
		{"base64 with a line break", b64, post(body, "X-Signature", good64[:10]+"\n"+good64[10:]), "signature_malformed"},
		{"base64 with stray bits", b64, post(body, "X-Signature", strayBits(good64)), "signature_malformed"},
		{"hex where base64 is due", b64, post(body, "X-Signature", good), "signature_malformed"},
		{"query repeated", query, withQuery("sig=" + good + "&sig=" + good), "header_repeated"},
		{"query repeated under an escape", query, withQuery("sig=" + good + "&s%69g=" + good), "header_repeated"},
		{"query with a malformed escape", query, withQuery("sig=" + good + "%zz"), "signature_malformed"},
		{"good, query beside malformed escapes", query, withQuery("%zz=1&s%zzig=2&sig=" + good), ""},
		{"query absent", query, withQuery("sign=" + good), "signature_missing"},
		{"kv without tag", kv, post(body, "X-Signature", "t="+ts+",v0="+stamped), "signature_missing"},
		{"kv without key", kv, post(body, "X-Signature", "t="+ts+","+stamped), "signature_malformed"},
		{"kv with empty MAC", kv, post(body, "X-Signature", "t="+ts+",v1="), "signature_malformed"},
		{"kv without t", kv, post(body, "X-Signature", "v1="+stamped), "timestamp_missing"},
		{"kv with t doubled", kv, post(body, "X-Signature", "t="+ts+",t="+ts+",v1="+stamped), "signature_malformed"},
		{"kv with another t", kv, post(body, "X-Signature", "t=1614265331,v1="+stamped), "signature_mismatch"},
		{"list without comma", sw, post(body, "webhook-id", "msg_1", "webhook-timestamp", ts, "webhook-signature", "v1"), "signature_malformed"},
		{"id missing", sw, post(body, "webhook-timestamp", ts, "webhook-signature", signedID), "signed_part_missing"},
		{"id repeated", sw, post(body, "webhook-id", "msg_1", "Webhook-Id", "msg_1", "webhook-timestamp", ts, "webhook-signature", signedID), "header_repeated"},
		{"another id", sw, post(body, "webhook-id", "msg_2", "webhook-timestamp", ts, "webhook-signature", signedID), "signature_mismatch"},
		{"timestamp missing", sw, post(body, "webhook-id", "msg_1", "webhook-signature", signedID), "timestamp_missing"},
		{"timestamp repeated", sw, post(body, "webhook-id", "msg_1", "webhook-timestamp", ts, "webhook-timestamp", ts, "webhook-signature", signedID), "header_repeated"},
		{"signature repeated in the body", inBody, post(`{"sign":"` + hexMAC("k", ts) + `","sign":"x","ts":` + ts + `}`), "header_repeated"},
		{"signature in a body that is no JSON", inBody, post(`{"sign":`), "signature_missing"},
		{"timestamp in the body null", inBody, post(`{"sign":"` + hexMAC("k", ts) + `","ts":null}`), "timestamp_missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := verifier(t, tt.scheme, "other", "k").Verify(tt.req, at)
			if got.Reason != tt.want || got.OK != (tt.want == "") {
				t.Fatalf("verdict %+v; want reason %q", got, tt.want)
			}
			wantIndex, wantName := -1, ""
			if got.OK {
				wantIndex, wantName = 1, "env:S1"
			}
			if got.SecretIndex != wantIndex || got.SecretName != wantName {
				t.Errorf("secret %d %q; want %d %q", got.SecretIndex, got.SecretName, wantIndex, wantName)
			}
			if !got.OK && got.BodyAuthenticated {
				t.Error("body authenticated though refused")
			}
		})
	}
}

// strayBits sets bits of the last digit before the padding that stand for no byte.
func strayBits(s string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	i := len(strings.TrimRight(s, "=")) - 1
	return s[:i] + string(digits[strings.IndexByte(digits, s[i])|1]) + s[i+1:]
}

func TestVerifyTime(t *testing.T) {
	for _, tt := range []struct {
		unit, stamp string
		skew        time.Duration // of the stamp against the clock
		want        webhook.Reason
	}{
		{"s", "1614265330", 0, ""},
		{"s", "1614265330", 5 * time.Minute, ""},
		{"s", "1614265330", -5 * time.Minute, ""},
		{"s", "1614265330", 5*time.Minute + 1, "timestamp_in_future"},
		{"s", "1614265330", -5*time.Minute - 1, "timestamp_too_old"},
		{"ms", "1614265330000", 0, ""},
		{"ms", "1614265330", -(1614265330000 - 1614265330) * time.Millisecond, "timestamp_too_old"},
		{"rfc3339", "2021-02-25T15:02:10Z", 0, ""},
		{"rfc3339", "2021-02-25T16:02:10+01:00", 0, ""},
		{"rfc2822", "Thu, 25 Feb 2021 15:02:10 +0000", 0, ""},
		{"rfc2822", "Thu, 25 Feb 2021 15:02:10 GMT", 0, ""},
		{"rfc2822", "25 Feb 2021 16:02:10 +0100", 0, ""},
		{"s", "", 0, "timestamp_malformed"},
		{"s", "1614265330 ", 0, "timestamp_malformed"},
		{"s", "+1614265330", 0, "timestamp_malformed"},
		{"s", "-1", 0, "timestamp_malformed"},
		{"s", "1614265330.5", 0, "timestamp_malformed"},
		{"s", "1.6e9", 0, "timestamp_malformed"},
		{"s", "0x60378e32", 0, "timestamp_malformed"},
		{"s", "١٦١٤", 0, "timestamp_malformed"},
		{"s", "1614265330000", 0, "timestamp_malformed"}, // past the year 9999
		{"s", "99999999999999999999", 0, "timestamp_malformed"},
		{"ms", "9223372036854775807", 0, "timestamp_malformed"},
		{"rfc3339", "2021-02-25 15:02:10", 0, "timestamp_malformed"},
		{"rfc2822", "Thu, 25 Feb 2021 15:02:10 EST", 0, "timestamp_malformed"},
	} {
		t.Run(tt.unit+" "+tt.stamp+" "+tt.skew.String(), func(t *testing.T) {
			s := webhook.Scheme{Signed: "{timestamp}.{body}", Timestamp: webhook.Timestamp{From: "header:X-Time", Unit: tt.unit}}
			v := verifier(t, s, "k")
			now := at.Add(-tt.skew)
			if tt.unit == "ms" && tt.want == "timestamp_too_old" {
				now = at
			}
			r := post(body, "X-Time", tt.stamp, "X-Signature", hexMAC("k", tt.stamp+"."+body))
			got := v.Verify(r, now)
			if got.Reason != tt.want {
				t.Fatalf("verdict %+v; want reason %q", got, tt.want)
			}
			if got.SecretIndex != 0 {
				t.Errorf("secret %d; want it known, the clock is another matter", got.SecretIndex)
			}
			wantSkew := tt.skew
			if tt.want == "timestamp_malformed" {
				wantSkew = 0
			}
			if got.Skew != wantSkew || got.Timestamp.IsZero() != (tt.want == "timestamp_malformed") {
				t.Errorf("skew %v, timestamp %v; want skew %v", got.Skew, got.Timestamp, wantSkew)
			}

			r.Header[1].Value = hexMAC("wrong", tt.stamp+"."+body)
			if got := v.Verify(r, now); got.Reason != webhook.ReasonSignatureMismatch || got.Skew != 0 {
				t.Errorf("wrong secret: verdict %+v; want signature_mismatch whatever the time", got)
			}
		})
	}
}

func TestToleranceIsASetting(t *testing.T) {
	s := preset(t, "timestamped-kv")
	s.Timestamp.Tolerance = 2 * time.Hour
	r := post(body, "X-Signature", "t=1614265330,v1="+hexMAC("k", "1614265330."+body))
	if got := verifier(t, s, "k").Verify(r, at.Add(90*time.Minute)); !got.OK || got.Skew != -90*time.Minute {
		t.Errorf("verdict %+v; want OK with a skew of -1h30m", got)
	}
}

// What a sender writes is never read as a template.
func TestTemplateIsFixedBeforeTheRequest(t *testing.T) {
	s := webhook.Scheme{Signed: "{header:X-Id}.{body}"}
	r := post(body, "X-Id", "{body}{secret}", "X-Signature", hexMAC("k", "{body}{secret}."+body))
	if got := verifier(t, s, "k").Verify(r, at); !got.OK {
		t.Errorf("verdict %+v; want OK", got)
	}
	r = post("{secret}{timestamp}", "X-Id", "1", "X-Signature", hexMAC("k", "1.{secret}{timestamp}"))
	if got := verifier(t, s, "k").Verify(r, at); !got.OK {
		t.Errorf("verdict %+v; want OK", got)
	}
}

func TestTemplateTakesBytesAsTheyWere(t *testing.T) {
	s := webhook.Scheme{
		Signed:    "{method}|{url}|{path}|{query:a b}|{json:/0/data}|{json:/0/eventId}|{json:/0/n}",
		PublicURL: "https://hooks.example/in?x=1",
	}
	const sent = `[ {"eventId": "a\u0062\"c", "n": 1.50, "data": {"k" :1}} ]`
	const signed = `PUT|https://hooks.example/in?x=1|/p%2Fq|%7Ev+w|{"k" :1}|ab"c|1.50`
	r := post(sent, "X-Signature", hexMAC("k", signed))
	r.Method, r.Path, r.RawQuery = "PUT", "/p%2Fq", "z=1&a+b=%7Ev+w"
	got := verifier(t, s, "k").Verify(r, at)
	if !got.OK {
		t.Fatalf("verdict %+v; want OK", got)
	}
	if got.BodyAuthenticated {
		t.Error("body authenticated, but only parts of it are signed")
	}
}

func TestBodyAuthenticated(t *testing.T) {
	for _, tt := range []struct {
		scheme webhook.Scheme
		want   bool
	}{
		{webhook.Scheme{}, true},
		{webhook.Scheme{Kind: "digest", Signed: "{body}/{secret}"}, true},
		{webhook.Scheme{Signed: "{json:/0/event}"}, false},
		{webhook.Scheme{Signed: "{formsorted}"}, false},
		{preset(t, "hmac-timestamp-hex"), false},
		{preset(t, "bearer-token"), false},
	} {
		signed, err := webhook.Sign(tt.scheme, secrets("k")[0], post(body), at)
		if err != nil {
			t.Fatalf("Sign(%+v): %v", tt.scheme, err)
		}
		r := post(body)
		r.Header = signed.Header
		got := verifier(t, tt.scheme, "k").Verify(r, at)
		if !got.OK || got.BodyAuthenticated != tt.want || tt.scheme.CoversBody() != tt.want {
			t.Errorf("%+v: verdict %+v, covers the body %v; want OK and %v", tt.scheme, got, tt.scheme.CoversBody(), tt.want)
		}
	}
}

func TestToken(t *testing.T) {
	v := verifier(t, preset(t, "bearer-token"), "s3cret", "older")
	for _, tt := range []struct {
		value string
		want  webhook.Reason
		index int
	}{
		{"Bearer s3cret", "", 0},
		{"Bearer older", "", 1},
		{"Bearer s3cre", "signature_mismatch", -1},
		{"Bearer s3cret ", "signature_mismatch", -1},
		{"Bearer ", "signature_malformed", -1},
		{"s3cret", "signature_malformed", -1},
	} {
		got := v.Verify(post(body, "Authorization", tt.value), at)
		if got.Reason != tt.want || got.SecretIndex != tt.index {
			t.Errorf("%q: verdict %+v; want reason %q, secret %d", tt.value, got, tt.want, tt.index)
		}
	}
}

func TestVerifyChangesNothing(t *testing.T) {
	v := verifier(t, webhook.Scheme{}, "k")
	r := post(body, "X-Signature", hexMAC("k", body))
	for range 3 {
		if got := v.Verify(r, at); !got.OK {
			t.Fatalf("verdict %+v; want OK each time", got)
		}
	}
	if !bytes.Equal(r.Body, []byte(body)) {
		t.Errorf("body changed to %q", r.Body)
	}
}

func FuzzSignatureHeader(f *testing.F) {
	ts := strconv.FormatInt(at.Unix(), 10)
	right := hexMAC("k", ts+"."+body)
	f.Add("t=" + ts + ",v1=" + right)
	f.Add("t=" + ts + ", v0=1,v1=" + strings.ToUpper(right))
	f.Add("t=,v1=,,=")
	f.Add("t=" + ts + ",t=" + ts + ",v1=" + right)
	f.Fuzz(func(t *testing.T, value string) {
		s := preset(t, "timestamped-kv")
		got := verifier(t, s, "k").Verify(post(body, "X-Signature", value), at)
		var macs, stamps int
		for item := range strings.SplitSeq(value, ",") {
			item = strings.Trim(item, " \t")
			if k, v, _ := strings.Cut(item, "="); k == "v1" && strings.EqualFold(v, right) {
				macs++
			}
			if item == "t="+ts {
				stamps++
			}
		}
		if got.OK && (macs == 0 || stamps != 1) {
			t.Errorf("accepted %q", value)
		}
		if got.OK != (got.Reason == "") || got.OK && got.SecretIndex != 0 {
			t.Errorf("%q: verdict contradicts itself: %+v", value, got)
		}
	})
}

// In no format does a value verify that does not hold the whole signature as an entry of its own.
func FuzzSignatureFormats(f *testing.F) {
	right := base64.StdEncoding.EncodeToString(mac("k", body))
	hexed := hexMAC("k", body)
	for _, v := range []string{right, "v1," + right, "v1a,x v1," + right, "sha256=" + hexed, hexed, strings.ToUpper(hexed), right + "=", " ", "v1,", ", ,", "v1," + right + " v1," + right} {
		f.Add(v)
	}
	var all []*webhook.Verifier
	for _, sig := range []webhook.Signature{
		{}, {Encoding: "base64"}, {Encoding: "base64url"}, {Prefix: "sha256="}, {Format: "list", Encoding: "base64"}, {Format: "list"}, {Format: "kv", Encoding: "base64"}, {Format: "kv", Prefix: "sha256="},
	} {
		all = append(all, verifier(f, webhook.Scheme{Signature: sig}, "k"))
	}
	f.Fuzz(func(t *testing.T, value string) {
		for i, v := range all {
			got := v.Verify(post(body, "X-Signature", value), at)
			url := strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(right, "="))
			whole := strings.Contains(value, right) || strings.Contains(value, url) || strings.Contains(strings.ToLower(value), hexed)
			if got.OK && !whole {
				t.Errorf("verifier %d accepted %q", i, value)
			}
			if got.OK != (got.Reason == "") || got.OK && (got.SecretIndex != 0 || !got.BodyAuthenticated) {
				t.Errorf("verifier %d, %q: verdict contradicts itself: %+v", i, value, got)
			}
		}
	})
}

func TestSkewIsToldAfterThreeTimelyRefusals(t *testing.T) {
	s := preset(t, "timestamped-kv")
	v := verifier(t, s, "k")
	// receive is the verdict on a delivery signed at one moment of the sender's
	// clock and received at one of ours.
	receive := func(secret string, signed, received time.Duration) webhook.Verdict {
		out, err := webhook.Sign(s, secrets(secret)[0], post(body), at.Add(signed))
		if err != nil {
			t.Fatal(err)
		}
		return v.Verify(signedRequest(post(body), out), at.Add(received))
	}
	const off = time.Hour
	for _, tt := range []struct {
		name string
		last []webhook.Verdict
		want time.Duration
		ok   bool
	}{
		{"nothing yet", nil, 0, false},
		{"two", []webhook.Verdict{receive("k", off, 0), receive("k", off+time.Second, time.Second)}, 0, false},
		{"three, the sender ahead", []webhook.Verdict{receive("k", off, 0), receive("k", off+time.Second, time.Second), receive("k", off+9*time.Second, 11*time.Second)}, off, true},
		{"three, the sender behind", []webhook.Verdict{receive("k", 0, off), receive("k", time.Second, off+time.Second), receive("k", 2*time.Second, off+2*time.Second)}, -off, true},
		{"the last three of four", []webhook.Verdict{receive("k", 0, 0), receive("k", off, 0), receive("k", off+time.Second, time.Second), receive("k", off+2*time.Second, 2*time.Second)}, off, true},
		{"one of them good", []webhook.Verdict{receive("k", off, 0), receive("k", 0, 0), receive("k", off+2*time.Second, 2*time.Second)}, 0, false},
		{"one of them forged", []webhook.Verdict{receive("k", off, 0), receive("forger", off, 0), receive("k", off+2*time.Second, 2*time.Second)}, 0, false},
		{"one delivery replayed", []webhook.Verdict{receive("k", 0, off), receive("k", 0, off+time.Second), receive("k", 0, off+2*time.Second)}, 0, false},
		{"a queue that was held back", []webhook.Verdict{receive("k", 0, off), receive("k", 10*time.Minute, off), receive("k", 20*time.Minute, off)}, 0, false},
	} {
		var d webhook.SkewDetector
		var got time.Duration
		ok := false
		for _, v := range tt.last {
			got, ok = d.Observe(v)
		}
		if ok != tt.ok || got.Round(2*time.Second) != tt.want {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestStrength(t *testing.T) {
	for _, tt := range []struct {
		scheme webhook.Scheme
		want   webhook.Strength
	}{
		{webhook.Scheme{}, webhook.StrengthBody},
		{webhook.Scheme{Kind: "digest", Signed: "{body}/{secret}"}, webhook.StrengthBody},
		{webhook.Scheme{Signed: "{json:/0}"}, webhook.StrengthParts},
		{webhook.Scheme{Signed: "{url}{formsorted}", PublicURL: "https://hooks.example"}, webhook.StrengthParts},
		{preset(t, "hmac-timestamp-hex"), webhook.StrengthTimestamp},
		{webhook.Scheme{Signed: "{timestamp}", Signature: webhook.Signature{From: "json:/s"}, Timestamp: webhook.Timestamp{From: "json:/t"}}, webhook.StrengthTimestamp},
		{webhook.Scheme{Signed: "{path}"}, webhook.StrengthNothing},
		{preset(t, "bearer-token"), webhook.StrengthToken},
		{webhook.Scheme{Kind: "digest", AcceptWeak: true}, webhook.StrengthKeyless},
		{webhook.Scheme{Kind: "digest"}, ""},
	} {
		if got := tt.scheme.Strength(); got != tt.want {
			t.Errorf("%+v: %q; want %q", tt.scheme, got, tt.want)
		}
		if covers := tt.scheme.CoversBody(); covers != (tt.want == webhook.StrengthBody) {
			t.Errorf("%+v: covers the body %v, strength %q", tt.scheme, covers, tt.want)
		}
	}
}

func TestKeylessHashAuthenticatesNoBody(t *testing.T) {
	s := webhook.Scheme{Kind: "digest", AcceptWeak: true}
	out, err := webhook.Sign(s, secrets("anything")[0], post(body), at)
	if err != nil {
		t.Fatal(err)
	}
	if got := verifier(t, s, "something else").Verify(signedRequest(post(body), out), at); !got.OK || got.BodyAuthenticated {
		t.Errorf("verdict %+v; want OK, and the body not authenticated", got)
	}
}

// Senders that sign several fields of the body sign those that are absent or null as empty.
func TestAbsentFieldsAreSignedAsEmpty(t *testing.T) {
	fields := webhook.Scheme{Signed: "{json:/a}:{json:/b}:{json:/c/d}", Signature: webhook.Signature{From: "json:/sign"}}
	v := verifier(t, fields, "k")
	for body, signed := range map[string]string{
		`{"a":"1","b":2,"c":{"d":"3"}}`: "1:2:3",
		`{"a":"1","c":{"d":"3"}}`:       "1::3",
		`{"a":null,"b":2,"c":null}`:     ":2:",
		`{"b":""}`:                      "::",
	} {
		r := post(strings.Replace(body, "{", `{"sign":"`+hexMAC("k", signed)+`",`, 1))
		if got := v.Verify(r, at); !got.OK {
			t.Errorf("%s: %s", body, got.Reason)
		}
	}
	for _, body := range []string{`{"a":"\ud800","b":2}`, `{"a":null,"a":"1","b":2}`} { // what can't be read is not absent
		r := post(strings.Replace(body, "{", `{"sign":"`+hexMAC("k", ":2:")+`",`, 1))
		if got := v.Verify(r, at); got.OK {
			t.Errorf("%s verified", body)
		}
	}
}
