package doctor

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/term"
)

// A bundle says which settings are set, and not to what; it has neither secrets, nor
// names of maps, nor the home folder.
func TestBundleContent(t *testing.T) {
	s := &scene{t: t, home: t.TempDir()}
	s.serve(jsonService(404))
	s.store()
	s.write(".config/waybill/config.yaml", 0o600, "rate: 2\naccount: acme-account\ncarriers: {Acme Name: dhl, Other: ups}\nwebhook: {secret: webhook-secret-0123}\n")
	text := s.bundle()
	for _, want := range []string{
		`"table": "rows"`, `"key": "webhook.secret"`, `"key": "rate",` + "\n    \"value\": \"2\"", `"message": "~/.config/waybill/config.yaml (`,
		`"check": "access"`, `"platform": "`, `"failures": []`, `"key": "carriers"`, `"about": "What a client met`,
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
	if text := s.bundle(); !strings.Contains(text, `"error": "`) || !strings.Contains(text, "not a waybill store") {
		t.Errorf("%s", text)
	}
	s.env = []string{"WAYBILL_RATE=x"}
	if text := s.bundle(); !strings.Contains(text, "WAYBILL_RATE: must be a number") {
		t.Errorf("%s", text)
	}
}

// Nothing is written before a person agrees.
func TestBundleIsAskedFor(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "\n": false, "n\n": false, "": false} {
		s := &scene{t: t, home: t.TempDir(), facts: term.Facts{InTerminal: true, ErrTerminal: true}}
		f := s.factory(io.Discard)
		var stderr bytes.Buffer
		f.App.IO = term.New(strings.NewReader(answer), io.Discard, &stderr, s.facts)
		cmd := NewSupport(f)
		command.GlobalFlags(cmd.PersistentFlags())
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"bundle", "--out", s.path("b.zip"), "--offline"})
		err := cmd.ExecuteContext(t.Context())
		_, missing := os.Stat(s.path("b.zip"))
		if (missing == nil) != want || (err == nil) != want {
			t.Errorf("%q: %v, %v; want it written: %v", answer, err, missing, want)
		}
		if text := stderr.String(); !strings.Contains(text, "doctor.json") || !strings.Contains(text, "b.zip? [y/N]") {
			t.Errorf("%q: %s", answer, text)
		}
	}
}

// bundle returns the content of all files of a bundle.
func (s *scene) bundle() string {
	s.t.Helper()
	var text strings.Builder
	cmd := &cobra.Command{Use: "bundle"}
	command.GlobalFlags(cmd.Flags())
	cmd.SetContext(s.t.Context())
	f := s.factory(io.Discard)
	err := f.RunAlways(func(ctx context.Context, c *command.Call, broken error) error {
		entries, err := newExamination(f, c, broken, false).collect(ctx)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := zipEntries(&b, entries); err != nil {
			return err
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			return err
		}
		for _, part := range z.File {
			r, err := part.Open()
			if err != nil {
				return err
			}
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			text.Write(data)
		}
		return nil
	})(cmd, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return text.String()
}
