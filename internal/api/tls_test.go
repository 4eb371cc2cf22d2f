package api_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/api"
	"github.com/waybill-cli/waybill/internal/tracking"
)

func TestCAFileIsTrustedAndOthersAreNot(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.ProtoMajor != 1 {
			t.Errorf("spoke %s; want HTTP/1.1", r.Proto)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	trusting := client(t, srv.URL, func(o *api.Options) { o.CAFile = file })
	if r := trusting.CreateAsync(t.Context(), items(2)); r.Outcome != tracking.OutcomeAccepted {
		t.Errorf("with the CA: %v (%v); want accepted", r.Outcome, r.Err)
	}
	if r := client(t, srv.URL, nil).CreateAsync(t.Context(), items(2)); r.Outcome != tracking.OutcomeNotSent {
		t.Errorf("without the CA: %v (%v); want not sent", r.Outcome, r.Err)
	}
	if _, err := api.New(api.Options{BaseURL: srv.URL, CAFile: "nothing.pem"}); err == nil {
		t.Error("a missing ca_file was taken")
	}
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.New(api.Options{BaseURL: srv.URL, CAFile: file}); err == nil || !strings.Contains(err.Error(), "no certificate in PEM form") {
		t.Errorf("a ca_file without a certificate: %v", err)
	}
}

func TestCutTLSRequestIsUnknown(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cut(t, w, "")
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	c := client(t, srv.URL, func(o *api.Options) { o.CAFile = file })
	if r := c.CreateAsync(t.Context(), items(2)); r.Outcome != tracking.OutcomeUnknown {
		t.Errorf("%v (%v); want unknown", r.Outcome, r.Err)
	}
}
