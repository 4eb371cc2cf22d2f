//go:build unix

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/waybill-cli/waybill/internal/term/termtest"
)

// showWords makes bash show the words that it would give to waybill, and lets it
// complete them.
const showWords = `bind 'set enable-bracketed-paste off'
source waybill.bash
waybill() { case $1 in __complete*) command waybill "$@" ;; *) printf '<%s>' "$@"; echo ;; esac; }
`

// TestBashCompletes types lines into bash, each with a TAB, on a terminal.
func TestBashCompletes(t *testing.T) {
	w := newWorld(t, "--processing", "0s")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("orders.csv", "referId,rawTrackingNumber\nORD-1,1Z999AA10123456784\n")
	write("export.csv", "Order No,AWB\nORD-1,1Z999AA10123456784\n")
	write("export.bin", "")
	if code, _, stderr := w.run("create", "orders.csv", "-q"); code != 0 {
		t.Fatalf("create: status %d, %s", code, stderr)
	}
	_, script, _ := w.run("completion", "bash")
	write("waybill.bash", string(script))
	if err := os.Mkdir(filepath.Join(w.home, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, filepath.Join(w.home, "bin", "waybill")); err != nil {
		t.Fatal(err)
	}

	tests := []struct{ typed, want string }{
		{"waybill runs sh\t", "<runs><show>"},
		{"waybill runs show \t", "<runs><show><1>"},
		{"waybill list --status rej\t", "<list><--status><rejected>"},
		{"waybill list --status=rej\t", "<list><--status=rejected>"},
		{"waybill create exp\t", "<create><export.csv>"},
		{"waybill create export.csv --map referId=\t", "<create><export.csv><--map><referId=>"},
		{"waybill create export.csv --map referId=O\t", "<create><export.csv><--map><referId=Order No>"},
		{"waybill list --timeout e\t", "<list><--timeout><e>"}, // not the name of a file
		{"waybill help exit\t", "<help><exit-codes>"},
		{"waybill signature explain --scheme stand\t", "<signature><explain><--scheme><standard-webhooks>"},
	}
	var typed strings.Builder
	for _, tt := range tests {
		typed.WriteString(tt.typed + "\n")
	}
	bash := exec.Command("bash", "--noprofile", "--norc", "-i")
	bash.Dir = w.home
	bash.Env = append(slices.Clone(w.env), "PATH="+filepath.Join(w.home, "bin")+":"+os.Getenv("PATH"), "TERM=dumb", "PS1=$ ", "INPUTRC=/dev/null")
	shown := onTerminal(t, bash, showWords+typed.String()+"exit\n")
	for _, tt := range tests {
		if !strings.Contains(shown, "\n"+tt.want+"\r\n") {
			t.Errorf("%q shows no %s", tt.typed, tt.want)
		}
	}
	if strings.Contains(shown, "command not found") {
		t.Error("the script calls what bash does not have")
	}
	if t.Failed() {
		t.Logf("bash showed:\n%s", shown)
	}
}

// onTerminal runs a command on a terminal, types what is given, and returns all that
// the terminal shows.
func onTerminal(t *testing.T, cmd *exec.Cmd, typed string) string {
	t.Helper()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if _, err := terminal.WriteString(typed); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := b.ReadFrom(termtest.Output(terminal)); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // with the status of the last line
	return b.String()
}
