package arch

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestReadmeNamesDependencies(t *testing.T) { hold(t, unexplainedDependencies) }

// direct returns the modules that go.mod requires for our own imports, sorted.
func (t *tree) direct() []string {
	text, err := fs.ReadFile(t.fsys, "go.mod")
	if err != nil {
		return nil
	}
	var out []string
	inBlock := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "require (":
			inBlock = true
			continue
		case line == ")":
			inBlock = false
			continue
		}
		if rest, ok := strings.CutPrefix(line, "require "); ok || inBlock {
			if ok {
				line = rest
			}
			fields := strings.Fields(line)
			if len(fields) >= 2 && !strings.HasPrefix(line, "//") && !strings.Contains(line, "// indirect") {
				out = append(out, fields[0])
			}
		}
	}
	slices.Sort(out)
	return out
}

var (
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.*?)\s*$`)
	modulePath = regexp.MustCompile(`[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]+/[\w./-]*\w`)
	word       = regexp.MustCompile(`\pL{2,}`)
)

// fewestWords is how many words make a reason, the link's own text not counted.
const fewestWords = 3

const dependenciesDoc = "docs/style.md"

// dependenciesMark stands before the page's list of dependencies, which ends
// at the next heading.
const dependenciesMark = "<!-- dependencies -->"

// unexplainedDependencies finds direct dependencies without a reason in the
// page's list of them, and reasons for what is no dependency. An entry is a
// list item or a row of a table; the first module path in it says what it is
// about.
func unexplainedDependencies(t *tree) []problem {
	text, err := fs.ReadFile(t.fsys, dependenciesDoc)
	if err != nil {
		return []problem{{dependenciesDoc, err.Error()}}
	}
	_, section, ok := strings.Cut(string(text), dependenciesMark)
	if !ok {
		return []problem{{dependenciesDoc, "has no list of dependencies, marked " + dependenciesMark}}
	}
	if next := heading.FindStringIndex(section); next != nil {
		section = section[:next[0]]
	}
	var out []problem
	required := t.direct()
	named := map[string]bool{}
	for line := range strings.Lines(section) {
		dep := strings.ReplaceAll(line, "pkg.go.dev/", "")
		if dep = modulePath.FindString(dep); dep == "" || !strings.ContainsAny(line[:1], "-*|") {
			continue
		}
		named[dep] = true
		if !slices.Contains(required, dep) {
			out = append(out, problem{dependenciesDoc, dep + " is no direct dependency"})
		}
		if rest := linksAndCode.ReplaceAllString(strings.ReplaceAll(line, dep, ""), " "); len(word.FindAllString(rest, -1)) < fewestWords {
			out = append(out, problem{dependenciesDoc, "does not say why " + dep + " is needed"})
		}
	}
	for _, dep := range required {
		if !named[dep] {
			out = append(out, problem{dependenciesDoc, "does not name " + dep + " among the dependencies"})
		}
	}
	return out
}

var linksAndCode = regexp.MustCompile("\\[[^]]*\\]\\([^)]*\\)|`[^`]*`|https?://\\S*")

func TestDirect(t *testing.T) {
	tr := &tree{fsys: mapFS(map[string]string{"go.mod": `module m

go 1.26.0

require one.org/a v1.0.0
require two.org/b v1.0.0 // indirect

require (
	// a note
	three.org/c/v2 v2.0.0
	four.org/d v1.0.0 // indirect
)

replace (
	five.org/e v1.0.0 => ./e
)
`})}
	if got, want := strings.Join(tr.direct(), " "), "one.org/a three.org/c/v2"; got != want {
		t.Errorf("direct() = %q, want %q", got, want)
	}
}

func TestDependenciesDocProof(t *testing.T) {
	with := func(page string) map[string]string {
		return map[string]string{
			"go.mod":        "module m\nrequire x.org/a v1.0.0\nrequire golang.org/x/b/v2 v2.0.0\n",
			dependenciesDoc: page,
		}
	}
	prove(t, unexplainedDependencies, []proof{
		{"a list", with("# m\n## Development\n<!-- dependencies -->\n- `x.org/a`: parses the letters\n- [b](https://pkg.go.dev/golang.org/x/b/v2): reads all others\n"), nil},
		{"a table", with("<!-- dependencies -->\n\n| module | why |\n|---|---|\n| x.org/a | parses the letters |\n| golang.org/x/b/v2 | reads all others |\n## More\n- x.org/c is elsewhere, not here\n"), nil},
		{"one is missing", with("## Development\n<!-- dependencies -->\n- `x.org/a`: parses the letters\n"), []string{"docs/style.md: does not name golang.org/x/b/v2"}},
		{"named without a reason", with("## Development\n<!-- dependencies -->\n- x.org/a: parses\n- golang.org/x/b/v2: reads all others\n"), []string{"docs/style.md: does not say why x.org/a"}},
		{"only the link speaks", with("## Development\n<!-- dependencies -->\n- [the a that parses letters](https://x.org/a)\n- golang.org/x/b/v2: reads all others\n"), []string{"docs/style.md: does not say why x.org/a"}},
		{"one too many", with("## Development\n<!-- dependencies -->\n- x.org/a: parses the letters\n- golang.org/x/b/v2: reads all others\n- x.org/gone: was once of use\n"), []string{"docs/style.md: x.org/gone is no direct"}},
		{"no section", with("# m\n- x.org/a: parses the letters\n"), []string{"docs/style.md: has no list"}},
		{"no page", map[string]string{"go.mod": "module m\n"}, []string{"docs/style.md: open"}},
	})
}
