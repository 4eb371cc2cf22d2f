package doctor

import (
	"archive/zip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/waybill-cli/waybill/internal/cli/command"
)

// A bundle has what doctor found, says which settings are set, and not to what; it has
// neither secrets, nor names of maps, nor the home folder.
func TestBundleContent(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	s.serve(jsonService(404))
	s.store()
	s.write(".config/waybill/config.yaml", 0o600, "rate: 2\naccount: acme-account\ncarriers: {Acme Name: dhl, Other: ups}\nwebhook: {secret: webhook-secret-0123}\n")
	text := s.bundle()
	for _, want := range []string{
		`"message": "~/.config/waybill/config.yaml (`, `"check": "access"`, "webhook.secret (", "rate (", "carriers (", `"message": "waybill `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, secret := range []string{"webhook-secret-0123", "key-of-a-test", "acme-account", "Acme Name", s.home} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is in it: %s", secret, text)
		}
	}
}

// What can't be read is said.
func TestBundleOfWhatIsBroken(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	s.set("WAYBILL_STORE", s.write("w.db", 0o600, strings.Repeat("no database", 999)))
	if text := s.bundle(); !strings.Contains(text, "not a waybill store") {
		t.Errorf("%s", text)
	}
	s.env = []string{"WAYBILL_RATE=x"}
	if text := s.bundle(); !strings.Contains(text, "WAYBILL_RATE: must be a number") {
		t.Errorf("%s", text)
	}
}

// bundle returns the content of all files of a bundle.
func (s *scene) bundle() string {
	s.t.Helper()
	path := s.path("found.zip")
	cmd := New(s.factory(io.Discard))
	command.GlobalFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--bundle", path})
	_ = cmd.ExecuteContext(s.t.Context()) // problems are found
	z, err := zip.OpenReader(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	var text strings.Builder
	for _, part := range z.File {
		r, err := part.Open()
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := io.Copy(&text, r); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Remove(path); err != nil {
		s.t.Fatal(err)
	}
	return text.String()
}
