package arch

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// literary are words that a reader has to guess at. In their place stands what
// an engineer of this field would search for; docs/glossary.md has the words.
var literary = []string{
	"alarm", "anew", "befalls", "bury", "carriage", "carry", "crowd", "doubt", "doubts", "errand",
	"errands", "fate", "hear", "heard", "judge", "judged", "judges", "lesson", "looked", "mend", "news",
	"odds", "outlive", "patiently", "rejudged", "seat", "settle", "settled", "settlement",
	"settlements", "settles", "settling", "standing", "standings", "tell", "teller", "tells", "tidings",
	"told", "travel", "understudies", "understudy", "unsettled", "untold",
}

func TestPlainNames(t *testing.T) { hold(t, literaryNames) }

var nameParts = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// literaryNames finds declared names that hold a literary word: functions,
// types, methods, fields, parameters, constants and package variables.
func literaryNames(t *tree) []problem {
	var out []problem
	check := func(ids ...*ast.Ident) {
		for _, id := range ids {
			for _, part := range nameParts.FindAllString(id.Name, -1) {
				if slices.Contains(literary, strings.ToLower(part)) {
					out = append(out, t.at(id, "%s: %q is no word of this field", id.Name, strings.ToLower(part)))
				}
			}
		}
	}
	t.inspect(func(_ *room, _ *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.Field:
			check(n.Names...)
		case *ast.ValueSpec:
			check(n.Names...)
		}
	})
	return out
}

func TestPlainNamesProof(t *testing.T) {
	in := func(src string) map[string]string { return inFile("internal/bulk/b.go", "package bulk\n"+src) }
	bad := []string{"internal/bulk/b.go:2: "}
	prove(t, literaryNames, []proof{
		{"fine", in("type Job struct { carrier string; header int }\nfunc (j Job) Run(through int) {}"), nil},
		{"a function", in("func carryOn() {}"), bad},
		{"a type", in("type Errand int"), bad},
		{"a field", in("type t struct { lastNews int }"), bad},
		{"an outcome", in("func (j Job) waitForSettled() {}"), bad},
		{"a parameter", in("func f(told bool) {}"), bad},
		{"a variable", in("var crowdLimit = 1"), bad},
		{"in a test", map[string]string{"internal/bulk/b_test.go": "package bulk\nfunc tell() {}"}, nil},
	})
}
