package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/waybill-cli/waybill/internal/webhook"
)

func TestSecretsAreReadAgainWhenTheirFileChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	write := func(secret string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(secret), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	var changes, failures []error
	read := func() (*webhook.Verifier, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return webhook.NewVerifier(webhook.Scheme{}, []webhook.Secret{{Value: b}})
	}
	began := time.Now()
	write("old", began)
	v, err := newVerifier([]string{"env:X", "file:" + path}, read, func(err error) {
		if changes = append(changes, err); err != nil {
			failures = append(failures, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	verifies := func(secret string, after time.Duration) bool {
		t.Helper()
		r := webhook.Request{Method: "POST", Body: []byte("x")}
		out, err := webhook.Sign(webhook.Scheme{}, webhook.Secret{Value: []byte(secret)}, r, began)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = out.Header
		return v.current(began.Add(after)).Verify(r, began).OK
	}
	const later = time.Hour
	if !verifies("old", 0) || !verifies("old", later) || verifies("new", later) {
		t.Error("the secret of the file is not the one that is used")
	}
	write("new", began.Add(time.Minute))
	if !verifies("old", later) {
		t.Error("the file was looked at before its time")
	}
	if !verifies("new", 2*later) || verifies("old", 2*later) {
		t.Error("the changed secret is not used")
	}
	write("", began.Add(2*time.Minute))
	if !verifies("new", 3*later) || !verifies("new", 4*later) || len(failures) != 1 || len(changes) != 2 {
		t.Errorf("an empty file: told %v; want the last good secret kept, one change and one failure told", changes)
	}
	if err := os.Remove(path); err != nil || !verifies("new", 5*later) || !verifies("new", 6*later) || len(failures) != 2 {
		t.Errorf("a file that is gone: %v, told %v; want the last good secret kept, and that told once", err, failures)
	}
	write("back", began)
	if !verifies("back", 7*later) || len(failures) != 2 {
		t.Errorf("a file that is back: told %v; want its secret used", changes)
	}
}
