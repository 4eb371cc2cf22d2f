package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readmeWords is how long the README may be: it says what there is and where to read on.
const readmeWords = 2400

// TestReadmeCommands runs the README's commands of the top folder, in order. `make
// test` is what runs this test, so of that only what it would do is checked. The
// other console blocks are those of TestReadmeSessions.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(string(readme))); words >= readmeWords {
		t.Errorf("README.md has %d words; want fewer than %d: what explains goes to docs", words, readmeWords)
	}
	ran := 0
	for _, block := range strings.Split(string(readme), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.HasPrefix(block, "$ make") && !strings.HasPrefix(block, "$ ./waybill") {
			continue
		}
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

// typed is what a page tells to type elsewhere than in a console block: an
// indented line, or a span within a line.
var typed = regexp.MustCompile("(?m)^    (waybill [^\n]*)$|`(waybill [^`\n]*)`")

// TestPagesNameCommands asks for the help of every command that a page names,
// with its flags: one that is not there is an error, and one of a group shows
// the group's help instead.
func TestPagesNameCommands(t *testing.T) {
	t.Parallel()
	for page, least := range map[string]int{"README.md": 20, "docs/trackings.md": 20, "docs/webhooks.md": 8, "docs/configuration.md": 10} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		all := typed.FindAllStringSubmatch(string(text), -1)
		if len(all) < least {
			t.Errorf("%s: %d commands found; want %d and more", page, len(all), least)
		}
		for _, m := range all {
			line := m[1] + m[2]
			command, _, _ := strings.Cut(line, " #")
			command, _, _ = strings.Cut(command, " | ")
			command, _, _ = strings.Cut(command, " > ")
			words := strings.Fields(command)[1:]
			if words[0] != "help" { // a topic of help has no help of its own
				words = append(words, "--help")
			}
			out, err := exec.Command("waybill", words...).CombinedOutput()
			group := strings.Contains(string(out), "\nAvailable Commands:\n")
			found := strings.HasPrefix(words[0], "-") || words[0] == "help" || strings.Contains(string(out), "\n  waybill "+words[0])
			if err != nil || !found || group && len(words) > 2 {
				t.Errorf("%s: %s: %v\n%s", page, line, err, out)
			}
		}
	}
}

var (
	pageLink    = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	pageHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor = regexp.MustCompile(`[^\pL\pN _-]`)
)

// TestPagesLink follows the links between pages, and to their headings.
func TestPagesLink(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", "../../SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range pageLink.FindAllStringSubmatch(string(text), -1) {
			target := page
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(page), link[1])
			}
			if strings.Contains(link[1], ":") {
				continue // elsewhere
			}
			found, err := os.ReadFile(target)
			if info, dir := os.Stat(target); err != nil && (dir != nil || !info.IsDir()) {
				t.Errorf("%s: %s: %v", page, link[0], err)
				continue
			}
			anchors := []string{""}
			for _, heading := range pageHeading.FindAllStringSubmatch(string(found), -1) {
				anchors = append(anchors, "#"+strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
			}
			if !slices.Contains(anchors, link[2]) {
				t.Errorf("%s: %s: no such heading in %s", page, link[0], target)
			}
		}
	}
}
