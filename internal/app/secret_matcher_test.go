package app

import (
	"errors"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestSecretsAreMaskedAfterTheyChange(t *testing.T) {
	now := time.Now()
	secret, broken := "the-old-secret", false
	h := &secretMatcher{read: func() ([]webhook.Secret, error) {
		if broken {
			return nil, errors.New("gone")
		}
		return []webhook.Secret{{Value: []byte(secret)}, {Value: []byte("short")}}, nil
	}}
	if _, err := h.current(now); err != nil {
		t.Fatal(err)
	}
	check := func(value string, after time.Duration, want bool) {
		t.Helper()
		if got := h.matches(value, now.Add(after)); got != want {
			t.Errorf("%q after %v: masked %v; want %v", value, after, got, want)
		}
	}
	check("Bearer the-old-secret", 0, true)
	check("the-new-secret", 0, false)
	check("short", 0, true)
	check("t=1,v1=shorter", 0, false) // a signature may hold a few letters
	secret = "the-new-secret"
	check("x the-new-secret", time.Hour, true)
	check("x the-old-secret", time.Hour, true)
	for raw, want := range map[string]string{
		`{"a":"the-new-secret","b":["x the-old-secret y",1,"kept"], "shorter":"short"}`: `{"a":"***","b":["***",1,"kept"], "shorter":"***"}`,
		`{"a":"the\u002dnew-secret","b\"":"\\"}`:                                        `{"a":"***","b\"":"\\"}`,
		`{"the-new-secret":null}`:                                                       `{"***":null}`,
		`"kept"`:                                                                        `"kept"`,
		`[]`:                                                                            `[]`,
		``:                                                                              ``,
		`"torn the-new-secret`:                                                          `"torn the-new-secret`,
	} {
		if got := string(h.mask([]byte(raw), now.Add(time.Hour))); got != want {
			t.Errorf("%s: masked as %s; want %s", raw, got, want)
		}
	}
	broken = true
	check("x the-new-secret", 2*time.Hour, true)
}
