//go:build !windows

package cli_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A listener that verifies otherwise than another one of the store says so when it starts:
// what one of them can't verify is forwarded by none.
func TestListenersThatVerifyDifferently(t *testing.T) {
	t.Parallel()
	env := sharedEnv("http://127.0.0.1:9", filepath.Join(t.TempDir(), "s.db"))
	first := startListener(t, env)
	same := startListener(t, env)
	if same.stop(); strings.Contains(same.errs.String(), "warning") {
		t.Errorf("of one that verifies alike: %s", same.errs.String())
	}
	for setting, want := range map[string]string{
		"SECRET=other":                            " uses other secrets or settings of the same scheme: deliveries that one of them can't verify are forwarded by none",
		"VERIFY=observe":                          " uses scheme hmac-body-hex, enforce, this one scheme hmac-body-hex, observe: ",
		"SCHEME=hmac-body-base64":                 " uses scheme hmac-body-hex, enforce, this one scheme hmac-body-base64, enforce: ",
		"SCHEME=\nWAYBILL_WEBHOOK_VERIFY=observe": " uses scheme hmac-body-hex, enforce, this one no scheme: ",
	} {
		differs := startListener(t, append(slices.Clip(env), strings.Split("WAYBILL_WEBHOOK_"+setting, "\n")...))
		differs.stop()
		said := differs.errs.String()
		if !strings.Contains(said, "the listener at "+first.url) || !strings.Contains(said, want) || strings.Contains(said, "hush") {
			t.Errorf("%s: %s; want %q", setting, said, want)
		}
	}
}
