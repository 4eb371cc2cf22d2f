package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/redact"
)

const secret = "q7\"/+ü canary-0123"

// A secret is found in each form and at each place.
func TestForms(t *testing.T) {
	quoted, err := json.Marshal(map[string]string{"x": "a" + secret + "b"})
	if err != nil {
		t.Fatal(err)
	}
	r := redact.New(secret, "short")
	for _, text := range []string{
		secret, string(quoted), `{"x":"q7\"\/\u002B\u00FC canary-0123"}`, `q7\u0022/+\u00fc\u0020c\u0061nary\u002d0123`, `"q7\"\/+ü canary-01\u00323" torn`,
		strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(secret)), "/", `\/`), `C:\user\n` + secret, url.QueryEscape(secret), url.PathEscape(secret), "?k=" + url.QueryEscape(secret) + "&x",
		hex.EncodeToString([]byte(secret)), fmt.Sprintf("%X", secret),
		base64.StdEncoding.EncodeToString([]byte(secret)),
		base64.StdEncoding.EncodeToString([]byte("u:" + secret)),
		base64.URLEncoding.EncodeToString([]byte("user:" + secret + "!")),
		base64.RawStdEncoding.EncodeToString([]byte("Basic" + secret + "ab")),
	} {
		got := r.String("<" + text + ">")
		if !strings.Contains(got, redact.Mask) || strings.Contains(got, "canary") || got != string(r.Bytes([]byte("<"+text+">"))) {
			t.Errorf("%s: %s", text, got)
		}
	}
	if got := r.String("short, and nothing else"); got != "short, and nothing else" {
		t.Errorf("changed: %s", got)
	}
}

func TestErrorsKeepTheirCauses(t *testing.T) {
	cause := errors.New("cause")
	r := redact.New(secret)
	if err := r.Error(fmt.Errorf("%s: %w", secret, cause)); err.Error() != "***: cause" || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if err := r.Error(cause); !errors.Is(err, cause) || err.Error() != cause.Error() {
		t.Errorf("%v", err)
	}
	if err := (*redact.Redactor)(nil).Error(cause); !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
}

// Hiding leaves JSON valid, and its numbers and the names of its members as they are.
func TestJSON(t *testing.T) {
	nested, err := json.Marshal(map[string]string{"body": `{"token":"q7\"canary <0123>"}`})
	if err != nil {
		t.Fatal(err)
	}
	r := redact.New("10000000", "verified", `q7"canary <0123>`, "21234567")
	for text, want := range map[string]string{
		`{"bytes":10000000,"to":"10000000"}`:           `{"bytes":10000000,"to":"***"}`,
		`{"verified":"verified" , "verified" :[1, 2]}`: `{"verified":"***" , "verified" :[1, 2]}`,
		`"\u000212345678 21234567 <\""`:                `"\u000212345678 *** \u003c\""`,
		string(nested):                                 `{"body":"{\"token\":\"***\"}"}`,
		`["verify",null,"a\\\"b"]`:                     `["verify",null,"a\\\"b"]`,
		`"verified"`:                                   `"***"`,
		`10000000`:                                     `10000000`,
	} {
		if got := string(r.JSON([]byte(text))); got != want || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s; want %s", text, got, want)
		}
	}
}
