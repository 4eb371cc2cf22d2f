package arch

import (
	"go/ast"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// unplain are words that texts for users do without: gh, kubectl and stripe have
// others for them. Flags such as --settle and names in quotes are not meant.
var unplain = regexp.MustCompile(`(?i)(?:^|[^-\w` + "`" + `])(` + strings.Join([]string{
	"mend(?:s|ed|ing)?",          // fix
	"tells?|telling|told",        // show, report, say
	"learnt|learns",              // find out; the command is `signature learn`
	"hears?|heard|hearing",       // receive, report
	"stands?|standing|stood",     // is, appears
	"looks? up|looked up",        // find, query
	"look before|looks? at",      // check
	"goes on|go on|went on",      // continue
	"settle[sd]?|settling",       // resolve, dismiss, record
	"odd|oddly",                  // unexpected
	"besides?",                   // also, next to
	"anew",                       // again
	"nobody|somebody|whoever",    // no client, another, anybody who
	"perhaps",                    // may
	"in vain",                    // timed out
	"believed?|believes",         // credible, unexpected
	"doubts?|fate|tidings|crowd", // literary
}, "|") + `)(?:$|[^-\w=])`)

func TestPlainTexts(t *testing.T) { hold(t, unplainTexts) }

// unplainTexts finds unplain words in the texts of the program and of its pages. A
// text is a string of several words. In pages, code does not count.
func unplainTexts(t *tree) []problem {
	var out []problem
	t.inspect(func(r *room, _ *file, n ast.Node) {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || !strings.Contains(lit.Value, " ") || !strings.HasPrefix(r.path, "internal/") || strings.HasSuffix(r.path, "test") {
			return
		}
		for _, word := range unplainWords(lit.Value[1 : len(lit.Value)-1]) {
			out = append(out, t.at(lit, "%q: say it in plain words", word))
		}
	})
	topics, err := fs.Glob(t.fsys, "internal/cli/topics/*.txt")
	if err != nil {
		return append(out, problem{"topics", err.Error()})
	}
	for _, topic := range topics {
		text, err := fs.ReadFile(t.fsys, topic)
		if err != nil {
			return append(out, problem{topic, err.Error()})
		}
		for _, word := range unplainWords(string(text)) {
			out = append(out, problem{topic, "\"" + word + "\": say it in plain words"})
		}
	}
	pages, err := fs.Glob(t.fsys, "docs/*.md")
	if err != nil {
		return []problem{{"docs", err.Error()}}
	}
	for _, page := range append(pages, "README.md") {
		text, err := fs.ReadFile(t.fsys, page)
		if err != nil && page != "README.md" {
			return append(out, problem{page, err.Error()})
		}
		for _, word := range unplainWords(code.ReplaceAllString(string(text), " ")) {
			out = append(out, problem{page, "\"" + word + "\": say it in plain words"})
		}
	}
	return out
}

// code is what a page shows of commands, files and names.
var code = regexp.MustCompile("(?s)```.*?```|<!--.*?-->|`[^`]*`")

func unplainWords(text string) []string {
	var words []string
	for _, m := range unplain.FindAllStringSubmatch(text, -1) {
		words = append(words, m[1])
	}
	return words
}

func TestPlainTextsProof(t *testing.T) {
	in := func(text string) map[string]string {
		return inFile("internal/bulk/b.go", "package bulk\nvar text = `"+text+"`")
	}
	bad := []string{"internal/bulk/b.go:2: "}
	prove(t, unplainTexts, []proof{
		{"fine", in("Sending 3 rows; --settle 2m, --accept-odd-values"), nil},
		{"a word", in("mend the rows"), bad},
		{"capitals, at the end", in("what was Told"), bad},
		{"part of a word", in("a standard, mending-machine or household"), nil},
		{"no text", in("stand"), nil},
		{"a test", map[string]string{"internal/bulk/b_test.go": "package bulk\nvar text = `it stands`"}, nil},
		{"a topic", map[string]string{"internal/cli/topics/rows.txt": "It stands."}, []string{"internal/cli/topics/rows.txt: \"stands\""}},
		{"a page", map[string]string{"docs/a.md": "A file `stands`.\n\n```\nit stands\n```\n\nIt stands."}, []string{"docs/a.md: \"stands\""}},
	})
}
