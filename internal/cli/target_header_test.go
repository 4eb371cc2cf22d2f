package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/inbox"
)

// A target that repeats what it got does not make its own headers show.
func TestEchoedTargetHeadersAreHidden(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("Authorization")
		w.Header().Set("Location", "/"+strings.TrimPrefix(token, "Bearer "))
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "you sent "+strings.TrimPrefix(token, "Bearer ")+" in "+token)
	}))
	t.Cleanup(target.Close)
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("Bearer t0k3n-of-the-target"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFilled(t, inbox.Yes)
	for _, args := range [][]string{{"events", "replay", "1"}, {"events", "send"}} {
		for _, output := range []string{"table", "json"} {
			_, out, errs := run(t, nil, append(args, "--store", f.path, "-o", output, "--expect-status", "302", "--to", target.URL, "--target-header", "Authorization=file:"+secret)...)
			if strings.Contains(out+errs, "t0k3n") || !strings.Contains(out, "you sent *** in ***") {
				t.Errorf("%s: %s%s", args, out, errs)
			}
		}
	}
}
