package main_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestReadmeCommands runs what the README's console blocks tell a new user to
// type, in order, from the top folder. `make test` is what runs this test, so
// of that only what it would do is looked at.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range strings.Split(string(readme), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok {
				t.Errorf("console block has a line that is no command: %q", line)
				continue
			}
			ran++
			want := ""
			if command == "make test" {
				command, want = "make -n test", "go test"
			}
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir = "../.."
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("$ %s: %v\n%s", command, err, out)
			}
		}
	}
	if ran < 3 {
		t.Errorf("%d commands found in the README; want the two of a new user and more", ran)
	}
}
