package webhook_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/webhook"
)

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
	got, err := webhook.CorruptSignatures(scheme, webhook.Request{RawQuery: "a=1&sig=xy%2Bz&b=2"}, func(int) int { return 1 })
	if err != nil || got.RawQuery != "a=1&b=2&sig=x0%2Bz" {
		t.Errorf("%q, %v", got.RawQuery, err)
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
