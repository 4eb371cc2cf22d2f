package webhook_test

import (
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

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
		got, ok := webhook.Skew(tt.last)
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
