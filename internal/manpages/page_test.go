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
		Use: "show <referId>...", Short: "Show a tracking's way", RunE: nothing, DisableFlagsInUseLine: true,
		Example: "  waybill show 'a\\b' --wait 2m\n.x",
	}
	show.Flags().Duration("wait", 0, "how long to wait")
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
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for waybill
.TP
\fB\-o\fR, \fB\-\-output\fR \fIFORM\fR
output: FORM
.SH COMMANDS
.TP
.BR waybill\-show (1)
Show a tracking\(aqs way
`},
		{root.Commands()[1], `.TH WAYBILL\-SHOW 1 "2026\-01\-02" "waybill 1.4.0" "waybill manual"
.nh
.ad l
.SH NAME
waybill\-show \- Show a tracking\(aqs way
.SH SYNOPSIS
.B waybill show <referId>...
.SH DESCRIPTION
Show a tracking\(aqs way.
.SH OPTIONS
.TP
\fB\-h\fR, \fB\-\-help\fR
help for show
.TP
\fB\-\-wait\fR \fIduration\fR
how long to wait
.PP
The options of
.BR waybill (1)
are understood too.
.SH EXAMPLES
.PP
.nf
  waybill show \(aqa\(rsb\(aq \-\-wait 2m
\&.x
.fi
.SH SEE ALSO
.BR waybill (1)
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
		for _, want := range []string{".SH NAME\n" + literal(name) + " ", ".SH SYNOPSIS\n.B waybill", `\fB\-\-help\fR`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s.1 does not hold %q", name, want)
			}
		}
	}
	if err := run(nil); err == nil {
		t.Error("no folder named, and no error")
	}
}
