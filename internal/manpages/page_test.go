package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/waybill-cli/waybill/internal/buildinfo"
)

func sample() *cobra.Command {
	nothing := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "waybill", Short: "Track shipments", Long: "First.\nStill the first.\n\nSecond:\n  waybill demo", DisableFlagsInUseLine: true}
	root.PersistentFlags().StringP("output", "o", "", "output: `FORM`")
	show := &cobra.Command{
		Use: "show <referId>...", Short: "Show a tracking's way", RunE: nothing,
		Example: "  waybill show 'a\\b…' --wait 2m\n.x",
	}
	show.Flags().Duration("wait", 0, "wait `DURATION`")
	show.Flags().Bool("odd", false, "not for people")
	_ = show.Flags().MarkHidden("odd")
	root.AddCommand(show, &cobra.Command{Use: "secret", Hidden: true, RunE: nothing})
	return root
}

func TestPage(t *testing.T) {
	root := sample()
	build := buildinfo.Info{Version: "1.4.0", Date: "2026-01-02T03:04:05Z"}
	tests := []struct {
		cmd  *cobra.Command
		want string
	}{
		{root, `.TH WAYBILL 1 "2026\-01\-02" "waybill 1.4.0" "waybill manual"
.nh
.ad l
.SH NAME
waybill \- Track shipments
.SH SYNOPSIS
.B waybill
.SH DESCRIPTION
First.
Still the first.
.PP
.nf
Second:
  waybill demo
.fi
.SH COMMANDS
.TP
.BR waybill\-show (1)
Show a tracking\(aqs way
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for waybill
.SH GLOBAL FLAGS
Every command takes these flags.
.TP
\fB\-o\fR, \fB\-\-output\fR \fIFORM\fR
output: FORM
` + exitStatus() + environment(root) + files() + `.SH SEE ALSO
\(gawaybill help\(ga for commands and topics
`},
		{root.Commands()[1], `.TH WAYBILL\-SHOW 1 "2026\-01\-02" "waybill 1.4.0" "waybill manual"
.nh
.ad l
.SH NAME
waybill\-show \- Show a tracking\(aqs way
.SH SYNOPSIS
.B waybill show <referId>... [flags]
.SH DESCRIPTION
Show a tracking\(aqs way.
.SH OPTIONS
.TP
\fB\-\-wait\fR \fIDURATION\fR
wait DURATION
.TP
\fB\-h\fR, \fB\-\-help\fR
help for show
.PP
The global flags are in
.BR waybill (1).
` + exitStatus() + `.SH ENVIRONMENT
The variables for the global flags are in
.BR waybill (1).
` + files() + `.SH EXAMPLES
.nf
  waybill show \(aqa\(rsb\[u2026]\(aq \-\-wait 2m
\&.x
.fi
.SH SEE ALSO
.BR waybill (1),
\(gawaybill help\(ga for commands and topics
`},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, page(tt.cmd, build)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.cmd.Name(), diff)
		}
	}
}

func TestWriteMakesOnePageACommand(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, sample(), buildinfo.Info{Version: "dev"}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	if got, want := strings.Join(files, " "), "waybill-show.1 waybill.1"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// TestProgramsOwnPages holds that each command of the program has a page that
// says something and names every flag of its own.
func TestProgramsOwnPages(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"waybill", "waybill-create", "waybill-runs-list"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range []string{
			".SH NAME\n" + literal(name) + " ", ".SH SYNOPSIS\n.B waybill", `\fB\-\-help\fR`, "\n.SH EXIT STATUS\n.TP\n.B 0\n", "\n.SH ENVIRONMENT\n",
			"\n.SH FILES\n", "config.yaml\n", "\n.SH SEE ALSO\n",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.1 does not hold %q", name, want)
			}
		}
	}
	if err := run(nil); err == nil {
		t.Error("no folder named, and no error")
	}
}

// Global flags and their variables are in waybill(1) only; own settings stay.
func TestGlobalFlagsHaveOnePage(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"waybill": true, "waybill-create": false, "waybill-runs-list": false} {
		text, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, global := range []string{literal("--request-timeout"), "WAYBILL_STORE"} {
			if got := strings.Contains(string(text), global); got != want {
				t.Errorf("%s.1 has %s: %v", name, global, got)
			}
		}
	}
	create, err := os.ReadFile(filepath.Join(dir, "waybill-create.1"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(create), "\n.B WAYBILL_CONCURRENCY\n") {
		t.Error("waybill-create.1 has no variable of its --concurrency")
	}
}
