package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"slices"
	"testing"
	"unicode/utf8"
)

// Sums over the code of the program that may only go down: whoever takes something out
// lowers its number.
var budgets = budget{lines: 73_812, longLines: 0, flags: 0}

const longLine = 120 // columns, a tab is one

// suites are packages for tests alone.
var suites = []string{"internal/storetest", "internal/pgtest", "internal/cli/clitest", "internal/sandbox/shapes", "internal/term/termtest"}

type budget struct {
	lines     int // of Go
	longLines int // of more than longLine columns
	flags     int // parameters of type bool of exported functions
}

func TestSumsOnlyGoDown(t *testing.T) { hold(t, within(budgets)) }

// within finds the sums that are larger than the budget.
func within(b budget) rule {
	return func(t *tree) (out []problem) {
		now := t.sums()
		for _, sum := range []struct {
			name      string
			n, budget int
		}{{"lines", now.lines, b.lines}, {"long lines", now.longLines, b.longLines}, {"bool parameters of exported functions", now.flags, b.flags}} {
			if sum.n > sum.budget {
				out = append(out, problem{"the program", fmt.Sprintf("%d %s; %d is the budget", sum.n, sum.name, sum.budget)})
			}
		}
		return out
	}
}

func (t *tree) sums() (b budget) {
	t.each(func(r *room, f *file) {
		if slices.Contains(suites, r.path) {
			return
		}
		for line := range bytes.Lines(f.src) {
			b.lines++
			if utf8.RuneCount(bytes.TrimRight(line, "\n")) > longLine {
				b.longLines++
			}
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() {
				b.flags += boolParameters(fn)
			}
		}
	})
	return b
}

func boolParameters(fn *ast.FuncDecl) (n int) {
	for _, p := range fn.Type.Params.List {
		if id, ok := p.Type.(*ast.Ident); ok && id.Name == "bool" {
			n += max(len(p.Names), 1)
		}
	}
	return n
}
