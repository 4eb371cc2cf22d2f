package app_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/app"
	"github.com/waybill-cli/waybill/internal/config"
	"github.com/waybill-cli/waybill/internal/webhook"
)

const captures = "../../testdata/webhooks"

// senders are those in testdata/webhooks, their scheme named as their file is.
var senders = []struct {
	name, file, secret string

	published string // the signature of the first delivery, if that is an example of the sender's own
	byHand    bool   // not looked for
	url       string
	strength  webhook.Strength
}{
	{"standard-webhooks-1.0.0", "standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", false, "", webhook.StrengthBody},
	{"stripe-shippo", "stripe-shippo", "whsec_text secret", "", false, "", webhook.StrengthBody},
	{"paddle", "paddle", "pdl_ntfset_secret", "", false, "", webhook.StrengthBody},
	{"github-flexport", "github-flexport", "It's a Secret to Everybody", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17", false, "", webhook.StrengthBody},
	{"shopify-aftership", "shopify-aftership", "shop secret", "", false, "", webhook.StrengthBody},
	{"easypost", "easypost", "\ufb01\u2460\u00e9-schl\u00fcssel", "", false, "", webhook.StrengthBody},
	{"17track", "17track", "APIKEY17", "", false, "", webhook.StrengthBody},
	{"trackingmore-v4", "trackingmore-v4", "tm-api-key", "", false, "", webhook.StrengthTimestamp},
	{"51tracking-track123", "51tracking-track123", "ops@example.com", "", false, "", webhook.StrengthTimestamp},
	{"square", "square", "sq key", "", false, "https://hooks.example/hooks/waybill", webhook.StrengthBody},
	{"twilio", "twilio", "12345", "0/KCTR6DLpKmkAf8muzZqo1nDgQ=", true, "", webhook.StrengthParts},
	{"slack", "slack", "8f742231b10e8888abcd99yyyzzz85a5", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", false, "", webhook.StrengthBody},
	{"sanity", "sanity", "sanity secret", "", false, "", webhook.StrengthBody},
	{"adyen", "adyen", "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056", "coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=", true, "", webhook.StrengthParts},
	{"banri", "banri", "banrikey", "", false, "", webhook.StrengthParts},
	{"ship24", "ship24", "ship24-s3cret", "", false, "", webhook.StrengthToken},
}

func configured(t *testing.T) *app.Session {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(captures, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a := &app.App{Sources: func([]config.Flag) config.Sources {
		return config.Sources{Env: []string{"WAYBILL_CONFIG=" + path, "SECRET=s"}, WorkDir: t.TempDir()}
	}}
	s, err := a.Session(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func deliveries(tb testing.TB, file string) []webhook.Sample {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(captures, file+".jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	all, err := webhook.ParseCaptures(data)
	if err != nil || len(all) == 0 {
		tb.Fatalf("%s: %d deliveries, %v", file, len(all), err)
	}
	return all
}

func TestEverySchemeOfTheFieldIsConfigured(t *testing.T) {
	s := configured(t)
	if got, want := len(s.Config.Webhook.Schemes), len(senders); got != want {
		t.Errorf("%d schemes are configured; want the %d senders", got, want)
	}
	files, err := filepath.Glob(filepath.Join(captures, "*.jsonl"))
	if err != nil || len(files) != len(senders) {
		t.Errorf("%d files of deliveries, %v; want one for each of %d senders", len(files), err, len(senders))
	}
	for _, tt := range senders {
		t.Run(tt.name, func(t *testing.T) {
			scheme, err := s.Scheme(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if got := scheme.Strength(); got != tt.strength {
				t.Errorf("strength %q; want %q", got, tt.strength)
			}
			for i, d := range deliveries(t, tt.file) {
				if shown := fmt.Sprint(d.Header) + string(d.Body); i == 0 && !strings.Contains(shown, tt.published) {
					t.Errorf("the first delivery is not the published one: %s", shown)
				}
				right := verify(t, scheme, tt.secret, d)
				if !right.OK || right.BodyAuthenticated != (tt.strength == webhook.StrengthBody) {
					t.Errorf("delivery %d: %+v; want it verified, body authenticated only by strength body", i, right)
				}
				if wrong := verify(t, scheme, other(tt.secret), d); wrong.Reason != webhook.ReasonSignatureMismatch {
					t.Errorf("delivery %d with another secret: %+v; want signature_mismatch", i, wrong)
				}
				d.Body = append(bytes.Clone(d.Body), ' ')
				if altered := verify(t, scheme, tt.secret, d); altered.OK && tt.strength == webhook.StrengthBody {
					t.Errorf("delivery %d with another body: %+v; want it refused", i, altered)
				}
			}
		})
	}
}

func verify(t *testing.T, s webhook.Scheme, secret string, d webhook.Sample) webhook.Verdict {
	t.Helper()
	v, err := webhook.NewVerifier(s, []webhook.Secret{{Value: []byte(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(d.Request, d.At)
}

// other is another secret of the same form: a letter or digit in its middle is
// another.
func other(secret string) string {
	all := []rune(secret)
	i := len(all) / 2
	if all[i] == '1' {
		all[i] = '2'
	} else {
		all[i] = '1'
	}
	return string(all)
}

// learnLast searches the last three deliveries, with another secret beside the right one.
func learnLast(tb testing.TB, all []webhook.Sample, secret, url string) (webhook.LearnResult, error) {
	tb.Helper()
	secrets := []webhook.Secret{{Name: "other", Value: []byte("quite-another")}, {Name: "right", Value: []byte(secret)}}
	return webhook.Learn(tb.Context(), all[len(all)-3:], secrets, url)
}

// BenchmarkLearn: each search should take well under a second.
func BenchmarkLearn(b *testing.B) {
	for _, tt := range senders {
		if tt.byHand {
			continue
		}
		b.Run(tt.name, func(b *testing.B) {
			all := deliveries(b, tt.file)
			for b.Loop() {
				if got, err := learnLast(b, all, tt.secret, tt.url); err != nil || len(got.Candidates) == 0 {
					b.Fatalf("%d candidates, %v", len(got.Candidates), err)
				}
			}
		})
	}
}

func TestLearnFindsTheSchemesOfTheField(t *testing.T) {
	s := configured(t)
	for _, tt := range senders {
		if tt.byHand {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			want, err := s.Scheme(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			all := deliveries(t, tt.file)
			got, err := learnLast(t, all, tt.secret, tt.url)
			if err != nil || got.Bodies != 3 || len(got.Candidates) == 0 {
				t.Fatalf("lesson %+v, %v; want a scheme", got, err)
			}
			first := got.Candidates[0]
			if want = want.WithDefaults(); want.Signature.Format == webhook.FormatPlain {
				want.Signature.Tag = first.Scheme.Signature.Tag // means nothing there
			}
			if want.Timestamp.From == "" {
				want.Timestamp = first.Scheme.Timestamp // likewise, but that there is none
				if first.Scheme.Timestamp.From != "" {
					t.Errorf("timestamp %+v; want none", first.Scheme.Timestamp)
				}
			}
			want.PublicURL = first.Scheme.PublicURL
			if uses := strings.Contains(want.Signed, "{url}"); (first.Scheme.PublicURL == tt.url) != uses && tt.url != "" {
				t.Errorf("public_url %q", first.Scheme.PublicURL)
			}
			if first.Scheme != want || first.Strength != tt.strength || first.Obstacle != "" || !slices.Equal(first.Secrets, []int{1}) {
				t.Errorf("learnt %+v\nstrength %q, secrets %v, obstacle %q\nwant %+v", first.Scheme, first.Strength, first.Secrets, first.Obstacle, want)
			}
			nothing(t, "a wrong secret", all, other(tt.secret), tt.url)
			for i := range all {
				all[i].Header = slices.DeleteFunc(slices.Clone(all[i].Header), func(f webhook.Field) bool {
					return strings.Contains(strings.ToLower(f.Name), "sign") || strings.Contains(strings.ToLower(f.Name), "hmac") || f.Name == "Authorization"
				})
				all[i].Body = bytes.ReplaceAll(all[i].Body, []byte(`"signature"`), []byte(`"nothing"`))
				all[i].Body = bytes.ReplaceAll(all[i].Body, []byte(`"timeStr":"17`), []byte(`"timeStr":"16`))
			}
			nothing(t, "an unsigned sender", all, tt.secret, tt.url)
		})
	}
}

func TestLearnFindsNothingForAlteredBodies(t *testing.T) {
	for _, tt := range senders {
		if tt.byHand || tt.strength != webhook.StrengthBody {
			continue
		}
		all := deliveries(t, tt.file)
		for i := range all {
			all[i].Body = bytes.Replace(bytes.Clone(all[i].Body), []byte("e"), []byte("f"), 1)
		}
		nothing(t, tt.name+", all altered", all, tt.secret, tt.url)
		one := deliveries(t, tt.file)
		one[1].Body = bytes.Replace(bytes.Clone(one[1].Body), []byte("e"), []byte("f"), 1)
		nothing(t, tt.name+", one altered", one, tt.secret, tt.url)
	}
}

func nothing(t *testing.T, what string, all []webhook.Sample, secret, url string) {
	t.Helper()
	got, err := webhook.Learn(t.Context(), all, []webhook.Secret{{Value: []byte(secret)}}, url)
	if err != nil || len(got.Candidates) > 0 {
		t.Errorf("%s: learnt %+v, %v; want nothing", what, got.Candidates, err)
	}
}
