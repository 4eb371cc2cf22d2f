package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/webhook"
)

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
