package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each command has a page, in the words of its help; a name in brackets, a mask and an
// indented list are no markup.
func TestPages(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	if err := run([]string{dir}); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"waybill":             {".TH \"WAYBILL\" \"1\" \"", "\n.SH EXIT STATUS\n", "\\fB130\\fP", "--request-timeout"},
		"waybill-create":      {"waybill-create - Create", "\\fBwaybill create [FILE|-]... [flags]\\fP", "--skip-invalid", "\n.SH SEE ALSO\n"},
		"waybill-config-get":  {"Secrets are shown as ***"},
		"waybill-events-list": {"\n.SH EXAMPLE\n"},
		"waybill-doctor":      {"\n.EX\n  configuration  files,"},
		"waybill-completion":  {"NAME\n"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, name+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s.1 does not hold %q", name, want)
			}
		}
	}
	if err := run(nil); err == nil {
		t.Error("no folder named, and no error")
	}
}

func TestMarkdown(t *testing.T) {
	const text = "Of <referId> in a_b, [FILE]\nand ***.\n\nA list:\n  *  as <it> stands\n\n"
	const want = "Of \\<referId\\> in a\\_b, \\[FILE\\]\nand \\*\\*\\*.\n\n```\nA list:\n  *  as <it> stands\n```"
	if got := prose(text); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
