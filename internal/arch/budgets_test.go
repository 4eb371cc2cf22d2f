package arch

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"testing"
)

// How large things may get.
const (
	longFunction    = 60 // lines, from func to the closing brace
	mostMethods     = 5  // in an interface
	contractMethods = 8  // in an interface of the contracts
)

var (
	contracts = []string{"internal/ledger", "internal/inbox"}

	// buildTags lists the words that a build constraint may use. Another would
	// hide code from the tests. `make test-browser` sets browser.
	buildTags = []string{"windows", "unix", "linux", "darwin", "freebsd", "race", "browser"}
)

func TestFunctionsAreShort(t *testing.T)  { hold(t, longWinded) }
func TestInterfacesAreSmall(t *testing.T) { hold(t, wideInterfaces) }
func TestNothingIsSkipped(t *testing.T)   { hold(t, skipped) }

// longWinded finds functions of more than longFunction lines.
func longWinded(t *tree) (out []problem) {
	t.inspect(func(_ *room, _ *file, n ast.Node) {
		fn, ok := n.(*ast.FuncDecl)
		if !ok {
			return
		}
		if lines := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1; lines > longFunction {
			out = append(out, t.at(fn, "%s has %d lines", fn.Name.Name, lines))
		}
	})
	return out
}

func wideInterfaces(t *tree) []problem {
	var out []problem
	declared := interfaces{}
	t.each(func(r *room, f *file) {
		for _, spec := range typeSpecs(f) {
			if it, ok := spec.Type.(*ast.InterfaceType); ok {
				declared[typeName{path.Join(module, r.path), spec.Name.Name}] = declaration{r, it}
			}
		}
	})
	for name, d := range declared {
		most := mostMethods
		if slices.Contains(contracts, d.room.path) {
			most = contractMethods
		}
		if n := declared.methods(name); n > most {
			out = append(out, t.at(d.it, "interface %s has %d methods; %d are the most", name.name, n, most))
		}
	}
	return out
}

// typeName is a type by its package's import path and its name.
type typeName struct{ pkg, name string }

// declaration is an interface and the package that declares it.
type declaration struct {
	room *room
	it   *ast.InterfaceType
}

// interfaces are those that the project declares.
type interfaces map[typeName]declaration

func typeSpecs(f *file) []*ast.TypeSpec {
	var out []*ast.TypeSpec
	for _, d := range f.ast.Decls {
		if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.TYPE {
			for _, s := range decl.Specs {
				out = append(out, s.(*ast.TypeSpec))
			}
		}
	}
	return out
}

// methods counts the methods of an interface, those of the interfaces that it
// embeds included. One that is not of this project counts as one.
func (all interfaces) methods(name typeName) int {
	d, ours := all[name]
	if !ours {
		return 1
	}
	n := 0
	for _, m := range d.it.Methods.List {
		if len(m.Names) > 0 {
			n += len(m.Names)
			continue
		}
		embedded := typeName{pkg: name.pkg}
		if id, ok := m.Type.(*ast.Ident); ok {
			embedded.name = id.Name
		} else {
			embedded.pkg, embedded.name = d.room.selected(m.Type)
		}
		n += all.methods(embedded)
	}
	return n
}

// skips are the methods by which a test doesn't run.
var skips = []string{"Skip", "Skipf", "SkipNow"}

// scriptSkip is the command of a transcript that ends it early and calls that
// a success.
var scriptSkip = regexp.MustCompile(`(?m)^\s*(\[[^]]*\]\s*)*(skip|stop)\b`)

// skipped finds tests that can be left out without a word: those that skip,
// transcripts that do, and files that no ordinary build sees.
func skipped(t *tree) []problem {
	var out []problem
	for _, r := range t.rooms {
		for _, f := range r.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if sel, ok := call.Fun.(*ast.SelectorExpr); ok && f.test && slices.Contains(skips, sel.Sel.Name) {
						out = append(out, t.at(n, "a test that can skip itself"))
					}
				}
				if pkg, name := selectedByName(n); pkg == "testing" && name == "Short" {
					out = append(out, t.at(n, "a test that can be cut short"))
				}
				return true
			})
			out = append(out, t.hiddenFile(f)...)
		}
	}
	scripts, _ := fs.Glob(t.fsys, "testdata/script/*.txtar")
	for _, name := range scripts {
		text, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			out = append(out, problem{name, err.Error()})
		}
		script, _, _ := bytes.Cut(text, []byte("\n-- "))
		if scriptSkip.Match(script) {
			out = append(out, problem{name, "a transcript that can skip itself"})
		}
	}
	return out
}

// selectedByName returns the two names of an expression such as testing.Short.
func selectedByName(n ast.Node) (x, name string) {
	if sel, ok := n.(*ast.SelectorExpr); ok {
		if id, ok := sel.X.(*ast.Ident); ok {
			return id.Name, sel.Sel.Name
		}
	}
	return "", ""
}

// hiddenFile reports a build constraint that is about more than the platform.
func (t *tree) hiddenFile(f *file) []problem {
	var out []problem
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if c.Pos() > f.ast.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				out = append(out, t.at(c, "%v", err))
				continue
			}
			expr.Eval(func(tag string) bool {
				if !slices.Contains(buildTags, tag) {
					out = append(out, t.at(c, "no build has the tag %s, so nothing tests this file", tag))
				}
				return true
			})
		}
	}
	return out
}
