package signature

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
)

// What runSign prints verifies in runVerify, and not with another body.
func TestSignedDeliveriesVerify(t *testing.T) {
	body, other := filepath.Join(t.TempDir(), "body"), filepath.Join(t.TempDir(), "other")
	for path, text := range map[string]string{body: `{"a":1}`, other: `{"a":2}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := "WAYBILL_WEBHOOK_SECRET=abc"
	c, stdout, _ := clitest.Call(t, secret)
	given := givenDelivery{Body: body, Method: "POST", Path: "/"}
	if err := runSign(t.Context(), c, signOptions{givenDelivery: given, Scheme: "hmac-body-hex"}); err != nil {
		t.Fatal(err)
	}
	given.Header = []string{strings.TrimSpace(stdout.String())}
	for path, want := range map[string]command.Code{body: command.OK, other: command.Unverified} {
		c, _, _ := clitest.Call(t, secret)
		given.Body = path
		err := runVerify(t.Context(), c, verifyOptions{givenDelivery: given, Scheme: "hmac-body-hex"})
		if code, _ := command.CodeAndHint(err); code != want {
			t.Errorf("%s: status %d, %v; want %d", filepath.Base(path), code, err, want)
		}
	}
}
