package arch

import (
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// interfaceDoc is the page whose headings doc comments cite.
const interfaceDoc = "docs/interface.md"

func TestTags(t *testing.T) { hold(t, wrongTags) }

// TestTagsAreUsed keeps the rule from holding because nothing is tagged.
func TestTagsAreUsed(t *testing.T) {
	cited := map[string]int{}
	tr := project(t)
	known := headings(tr.fsys)
	tr.each(func(_ *room, f *file) {
		for _, g := range f.ast.Comments {
			for line := range strings.Lines(g.Text()) {
				if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Interface: "); ok {
					cited[citedHeading(known, rest)]++
				}
			}
		}
	})
	for _, must := range []string{"Endpoints", "Errors", "Limits", "Resources and their fields", "Events"} {
		if cited[must] == 0 {
			t.Errorf("nothing cites %q: have %v", must, cited)
		}
	}
}

var (
	misplacedTag = regexp.MustCompile(`\b(Interface|Assumed): `)
	fence        = regexp.MustCompile("(?ms)^```.*?\n```")
)

// headings returns the headings of the page on the interface, its title left
// out, as words alone.
func headings(fsys fs.FS) []string {
	text, err := fs.ReadFile(fsys, interfaceDoc)
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range heading.FindAllSubmatch(fence.ReplaceAll(text, nil), -1) {
		if !strings.HasPrefix(string(m[0]), "# ") {
			out = append(out, bare(string(m[1])))
		}
	}
	return out
}

// bare returns a text without the marks that make code of a word.
func bare(s string) string { return strings.ReplaceAll(s, "`", "") }

// citedHeading returns the heading that what follows "Interface: " cites:
// HEADING. or HEADING, DETAIL. A heading may hold commas itself, so the longest
// that fits is meant. It is empty if none fits.
func citedHeading(known []string, citation string) string {
	citation, ok := strings.CutSuffix(bare(citation), ".")
	if !ok {
		citation = ""
	}
	longest := ""
	for _, h := range known {
		detail, begins := strings.CutPrefix(citation, h)
		more, comma := strings.CutPrefix(detail, ", ")
		if begins && (detail == "" || comma && strings.TrimSpace(more) != "") && len(h) > len(longest) {
			longest = h
		}
	}
	return longest
}

// wrongTags finds tags outside doc comments or before other text, and
// citations of headings that are not there.
func wrongTags(t *tree) []problem {
	known := headings(t.fsys)
	var out []problem
	t.each(func(_ *room, f *file) {
		docs := docComments(f.ast)
		for _, g := range f.ast.Comments {
			out = append(out, t.tagsIn(g, docs[g], known)...)
		}
	})
	return out
}

// tagsIn checks one comment: a tag begins a line, a blank line stands before
// the first, and nothing follows but tags and the further lines of an
// assumption.
func (t *tree) tagsIn(g *ast.CommentGroup, isDoc bool, known []string) []problem {
	var out []problem
	tag := "" // the one that the line belongs to
	before := ""
	for i, line := range strings.Split(strings.TrimSpace(g.Text()), "\n") {
		name, rest, _ := strings.Cut(line, ": ")
		switch {
		case name == "Interface" || name == "Assumed":
			if !isDoc {
				out = append(out, t.at(g, "%s: is not in the doc comment of a declaration", name))
			}
			if tag == "" && i > 0 && before != "" {
				out = append(out, t.at(g, "%s: needs a blank line before it", name))
			}
			if name == "Interface" && citedHeading(known, rest) == "" {
				out = append(out, t.at(g, "%q cites no heading of %s; the form is HEADING[, detail].", line, interfaceDoc))
			}
			tag = name
		case misplacedTag.MatchString(line):
			out = append(out, t.at(g, "%q: a tag stands on a line of its own", line))
		case tag == "Interface" || tag == "Assumed" && line == "":
			out = append(out, t.at(g, "%s: is not the last of its comment", tag))
			return out
		}
		before = line
	}
	return out
}

// docComments returns the comments that belong to declarations, those of
// fields and methods included.
func docComments(f *ast.File) map[*ast.CommentGroup]bool {
	docs := map[*ast.CommentGroup]bool{f.Doc: true}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			docs[n.Doc] = true
		case *ast.FuncDecl:
			docs[n.Doc] = true
		case *ast.TypeSpec:
			docs[n.Doc] = true
		case *ast.ValueSpec:
			docs[n.Doc] = true
		case *ast.Field:
			docs[n.Doc] = true
		}
		return true
	})
	return docs
}

func TestCitedHeading(t *testing.T) {
	known := []string{"Endpoints", "Errors", "1. Batch create (synchronous, v1)", "Events", "Events, more"}
	tests := []struct{ citation, want string }{
		{"Endpoints.", "Endpoints"},
		{"Endpoints, 3. Query a tracking.", "Endpoints"},
		{"1. Batch create (synchronous, v1).", "1. Batch create (synchronous, v1)"},
		{"`1. Batch create (synchronous, v1)`, Body.", "1. Batch create (synchronous, v1)"},
		{"1. Batch create (synchronous.", ""},
		{"Events, more.", "Events, more"},
		{"Events, less.", "Events"},
		{"Errors", ""},
		{"Errors 1.", ""},
		{"Errors, .", ""},
		{"Errorss.", ""},
		{"errors.", ""},
		{"", ""},
		{".", ""},
	}
	for _, tt := range tests {
		if got := citedHeading(known, tt.citation); got != tt.want {
			t.Errorf("citedHeading(%q) = %q, want %q", tt.citation, got, tt.want)
		}
	}
}

func TestTagsProof(t *testing.T) {
	with := func(src string) map[string]string {
		return map[string]string{
			interfaceDoc:        "# Title\n\n## Errors\n\n### Data (`data` inside)\n\n```\n## Not a heading\n```\n",
			"internal/api/a.go": "// Package api asks.\npackage api\n\n" + src,
		}
	}
	const at = "internal/api/a.go:"
	prove(t, wrongTags, []proof{
		{"fine", with("// X is one.\n//\n// Interface: Errors, 1.\nvar X int"), nil},
		{"nothing else", with("// Interface: Errors.\nvar X int"), nil},
		{"code in a heading", with("// X is one.\n//\n// Interface: Data (`data` inside), field.\nvar X int"), nil},
		{"of a field", with("type T struct {\n\t// X is one.\n\t//\n\t// Interface: Errors.\n\tX int\n}"), nil},
		{"both, the second long", with("// X is one.\n//\n// Interface: Errors.\n// Assumed: so it is,\n// and thus.\nvar X int"), nil},
		{"both, apart", with("// X is one.\n//\n// Assumed: so it is,\n// and thus.\n// Interface: Errors.\nvar X int"), nil},
		{"no such heading", with("// X is one.\n//\n// Interface: Terrors.\nvar X int"), []string{at + "4: \"Interface: Terrors.\" cites no heading"}},
		{"the title", with("// X is one.\n//\n// Interface: Title.\nvar X int"), []string{at}},
		{"within a fence", with("// X is one.\n//\n// Interface: Not a heading.\nvar X int"), []string{at}},
		{"no full stop", with("// X is one.\n//\n// Interface: Errors\nvar X int"), []string{at}},
		{"not the last", with("// X is one.\n//\n// Interface: Errors.\n// It is so.\nvar X int"), []string{at + "4: Interface: is not the last"}},
		{"text after an assumption", with("// X is one.\n//\n// Assumed: so.\n//\n// It is so.\nvar X int"), []string{at + "4: Assumed: is not the last"}},
		{"within a line", with("// X is one. Interface: Errors.\nvar X int"), []string{at}},
		{"no blank line before", with("// X is one.\n// Interface: Errors.\nvar X int"), []string{at + "4: Interface: needs a blank line"}},
		{"beside the code", with("var X int // Interface: Errors."), []string{at + "4: Interface: is not in the doc"}},
		{"in a function", with("func f() {\n\t// Assumed: so.\n}"), []string{at + "5: Assumed: is not in the doc"}},
		{"a test's", map[string]string{"internal/api/a_test.go": "package api\n\n// X is one. Interface: no.\nvar X int"}, nil},
	})
}
