package input_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/waybill-cli/waybill/internal/cli/clitest"
	"github.com/waybill-cli/waybill/internal/cli/command"
	"github.com/waybill-cli/waybill/internal/cli/input"
	"github.com/waybill-cli/waybill/internal/term"
)

func TestOpenRefs(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		env        []string
		want       []string // refs, as "line text|referId|number"
		err        string   // in the error
		note       string   // in standard error
	}{
		{"a list", "A1\nA2\n\nA1\n", nil, []string{"1 A1||", "2 A2||", "4 A1||"}, "", ""},
		{"columns", "AWB,Order\n1Z1,A1\n1Z2,\n", nil, []string{"2 |A1|1Z1", "3 ||1Z2"}, "", ""},
		{"JSON", `["A1",{"referId":"A2","x":1}]`, nil, []string{"1 A1||", "1 |A2|"}, "", ""},
		{"settings", "Box;Order\nB\xfc 1;A1\n", []string{"WAYBILL_ENCODING=windows-1252", "WAYBILL_STRIP_SPACES=true", `WAYBILL_MAP={"rawTrackingNumber": "Box"}`}, []string{"2 |A1|Bü1"}, "", ""},
		{"a column that is not there", "Order,x\nA1,2\n", []string{`WAYBILL_MAP={"rawTrackingNumber": "Box"}`}, []string{"2 |A1|"}, "", `no column "Box"; REFs are read from "Order"`},
		{"nothing", "\n", nil, nil, ": no REFs", ""},
		{"a header alone", "referId\n", nil, nil, ": no REFs", ""},
		{"bad rows", "A1\nA2,A3\nA4\n", nil, nil, "1 of 3 rows is bad; nothing was queried", ""},
		{"no column", "x,y\n1,2\n", nil, nil, "no column for referId or rawTrackingNumber", ""},
	} {
		for _, from := range []string{"file", "stdin"} {
			t.Run(tt.name+" from "+from, func(t *testing.T) {
				c, _, stderr := clitest.Call(t, tt.env...)
				path := filepath.Join(t.TempDir(), "refs")
				if from == "stdin" {
					path = command.StdinName
					c.Session.IO = term.New(strings.NewReader(tt.text), os.Stdout, stderr, term.Facts{})
				} else if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
				refs, err := (&input.Flags{From: path, Format: "auto"}).OpenRefs(t.Context(), c)
				if err != nil || tt.err != "" {
					code, hint := command.CodeAndHint(err)
					if code != command.Usage || hint == "" || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("status %d, %v, hint %q; want %q", code, err, hint, tt.err)
					}
					return
				}
				defer refs.Close()
				for range 2 {
					if diff := cmp.Diff(tt.want, all(t, refs)); diff != "" || refs.Count != int64(len(tt.want)) {
						t.Errorf("%d refs: %s", refs.Count, diff)
					}
				}
				if !strings.Contains(stderr.String(), tt.note) || tt.note == "" && stderr.Len() > 0 {
					t.Errorf("stderr: %s", stderr)
				}
			})
		}
	}
}

// all reads the REFs.
func all(t *testing.T, refs *input.Refs) (got []string) {
	t.Helper()
	for ref, err := range refs.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s|%s|%s", ref.Line, ref.Ref, ref.Item.ReferID, ref.Item.Number))
	}
	return got
}

// A file that changes after it was checked is an error, not other REFs.
func TestRefsThatChange(t *testing.T) {
	for name, text := range map[string]string{"other": "A1\nA3\n", "bad": "A1\nA2,A3\n", "longer": "A1\nA2\nA3\n", "no header": "x,y\n"} {
		c, _, _ := clitest.Call(t)
		path := filepath.Join(t.TempDir(), "refs")
		if err := os.WriteFile(path, []byte("A1\nA2\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		refs, err := (&input.Flags{From: path}).OpenRefs(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(refs.Close)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		later := time.Now().Add(time.Minute) // a clock too coarse to tell is no matter of this test
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range refs.All(t.Context()) {
			last = err
		}
		if code, _ := command.CodeAndHint(last); code != command.Usage || !strings.Contains(last.Error(), "changed while it was read") || strings.Contains(last.Error(), "sent") {
			t.Errorf("%s: %v", name, last)
		}
	}
}

// REFs and the API key can't both come from standard input.
func TestRefsBesideTheKey(t *testing.T) {
	c, _, _ := clitest.Call(t, "WAYBILL_API_KEY_FILE=-")
	if _, err := (&input.Flags{From: command.StdinName}).OpenRefs(t.Context(), c); err == nil || !strings.Contains(err.Error(), "standard input") {
		t.Error(err)
	}
}
