//go:build browser

package main_test

import (
	"os"
	"strings"
	"testing"
)

// axeFinding is a rule of axe-core that a page breaks.
type axeFinding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
		Target         []any
	}
}

// axe checks the page as it is, and fails for what is serious or critical. The
// environment names the file of axe-core in AXE; `make test-browser` has it from npm.
func (tb *tab) axe(what string) {
	tb.t.Helper()
	source, ok := axeSource(tb.t)
	if !ok {
		return
	}
	if !eval[bool](tb, "typeof axe == 'object'") {
		if _, err := tryEval[bool](tb, "(()=>{"+source+"\n;globalThis.axe = globalThis.axe || axe; return true})()"); err != nil {
			tb.t.Fatalf("axe: %v", err)
		}
	}
	found := eval[[]axeFinding](tb, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v =>
		({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 5).map(n => ({html: n.html.slice(0, 300), failureSummary: n.failureSummary, target: n.target}))})))`)
	for _, f := range found {
		report := tb.t.Logf
		if f.Impact == "serious" || f.Impact == "critical" {
			report = tb.t.Errorf
		}
		report("axe, %s: %s (%s): %s", what, f.ID, f.Impact, f.Help)
		for _, n := range f.Nodes {
			report("    %v %s\n    %s", n.Target, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
		}
	}
}

// axeSource reads axe-core.
func axeSource(t *testing.T) (string, bool) {
	t.Helper()
	source, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		if os.Getenv("CHROMIUM") == "required" {
			t.Fatalf("axe-core is missing: %v", err)
		}
		t.Logf("NOT TESTED: axe-core is missing, so nothing has checked that the page works for everybody")
		return "", false
	}
	return string(source), true
}
