package arch

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

func TestActionsAndImagesArePinned(t *testing.T) { hold(t, unpinned) }

var (
	// thirdParty is an action or image that a file names, and what follows the name.
	thirdParty = regexp.MustCompile(`^\s*(?:- )?(?:uses: |image: |container: |FROM )(\S+)(.*)`)
	// pinned is a name that another party cannot give other contents.
	pinned = regexp.MustCompile(`@(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})$`)
)

// ours are names of what is built here, or of nothing.
var ours = map[string]bool{"waybill": true, "scratch": true}

// unpinned finds actions and images that are named by a tag alone, and those whose
// digest has no tag next to it that Dependabot and readers can compare.
func unpinned(t *tree) []problem {
	workflows, _ := fs.Glob(t.fsys, ".github/workflows/*.yml")
	var out []problem
	for _, name := range append(workflows, "action.yml", "Dockerfile", "docs/deploy/compose.yaml") {
		text, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			out = append(out, problem{name, err.Error()})
			continue
		}
		for line := range strings.Lines(string(text)) {
			m := thirdParty.FindStringSubmatch(line)
			if m == nil || ours[m[1]] {
				continue
			}
			digest := pinned.FindString(m[1])
			tag := strings.Contains(strings.TrimSuffix(m[1], digest), ":") || strings.HasPrefix(m[2], " # v")
			if digest == "" || !tag {
				out = append(out, problem{name, m[1] + ": name the digest, and the tag that it had"})
			}
		}
	}
	return out
}

func TestPinsProof(t *testing.T) {
	digest := strings.Repeat("0a", 20)
	for line, problems := range map[string]int{
		"  - uses: a/b@" + digest + " # v1.2.3":                         0,
		"    uses: a/b@" + digest:                                       1,
		"    uses: a/b@v1":                                              1,
		"FROM x.org/go:1-alpine@sha256:" + digest + digest[:24] + " AS": 0,
		"FROM x.org/go:1-alpine AS build":                               1,
		"FROM scratch":                                                  0,
	} {
		files := map[string]string{"action.yml": "", "docs/deploy/compose.yaml": "", "Dockerfile": line}
		if got := unpinned(&tree{fsys: mapFS(files)}); len(got) != problems {
			t.Errorf("%s: %v, want %d", line, got, problems)
		}
	}
}
