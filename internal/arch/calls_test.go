package arch

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

// bannedText lists what no string may hold, in any case.
var bannedText = map[string]string{
	"idempotency-key": "Go's transport re-sends a POST that has it",
}

func TestBannedText(t *testing.T)     { hold(t, bannedStrings) }
func TestErrorsAsValues(t *testing.T) { hold(t, comparedByText) }
func TestConstantVars(t *testing.T)   { hold(t, changingVars) }
func TestBareBools(t *testing.T)      { hold(t, bareBools) }

// matches reports whether a list of names holds name.
func matches(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		begin, open := strings.CutSuffix(n, "*")
		return n == name || open && strings.HasPrefix(name, begin)
	})
}

// builtin reports whether e is one of the language's own functions.
func (r *room) builtin(e ast.Expr, names ...string) bool {
	id, ok := e.(*ast.Ident)
	if !ok || !slices.Contains(names, id.Name) {
		return false
	}
	_, ok = r.uses[id].(*types.Builtin)
	return ok
}

func bannedStrings(t *tree) []problem {
	var out []problem
	t.inspect(func(r *room, _ *file, n ast.Node) {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		for text, why := range bannedText {
			if strings.Contains(strings.ToLower(lit.Value), text) {
				out = append(out, t.at(n, "%q: %s", text, why))
			}
		}
	})
	return out
}

// textFuncs are the functions and methods by which one could look for words in
// the text of an error.
var textFuncs = []string{
	"Compare", "Contains*", "Cut*", "EqualFold", "Equal", "Find*", "HasPrefix", "HasSuffix", "Index*", "LastIndex*", "Match*",
}

// comparedByText finds decisions made by the words of an error.
func comparedByText(t *tree) []problem {
	var out []problem
	found := func(n ast.Node) {
		out = append(out, t.at(n, "an error compared by its text: use errors.Is or errors.As"))
	}
	t.inspect(func(r *room, _ *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (errorText(n.X) || errorText(n.Y)) {
				found(n)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && errorText(n.Tag) {
				found(n)
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && matches(textFuncs, sel.Sel.Name) && slices.ContainsFunc(n.Args, errorText) {
				found(n)
			}
		}
	})
	return out
}

// errorText reports whether e is the text of an error: x.Error(), perhaps in
// other letters or bytes.
func errorText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Error" && len(call.Args) == 0 {
		return true
	}
	return slices.ContainsFunc(call.Args, errorText)
}

// bareBools finds calls with true or false of functions of the same package, whose meaning only the function tells: an
// options struct, two functions or a named value says it where they are called.
func bareBools(t *tree) []problem {
	var out []problem
	t.inspect(func(r *room, _ *file, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || slices.Contains(suites, r.path) {
			return
		}
		name := calledName(call.Fun)
		if name == nil || r.uses[name] == nil {
			return
		}
		called, ok := r.uses[name].Type().Underlying().(*types.Signature)
		if !ok {
			return
		}
		if called.Params().Len() == 0 {
			return
		}
		for i, arg := range call.Args {
			id, ok := ast.Unparen(arg).(*ast.Ident)
			if ok && (id.Name == "true" || id.Name == "false") && isBool(called.Params().At(min(i, called.Params().Len()-1)).Type()) {
				out = append(out, t.at(n, "%s is called with %s", name.Name, id.Name))
			}
		}
	})
	return out
}

// isBool reports whether a parameter is a bool, or any number of them.
func isBool(t types.Type) bool {
	if several, ok := t.(*types.Slice); ok {
		t = several.Elem()
	}
	return types.Identical(t, types.Typ[types.Bool])
}

func calledName(fun ast.Expr) *ast.Ident {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	case *ast.IndexExpr: // with a type
		return calledName(fun.X)
	case *ast.IndexListExpr:
		return calledName(fun.X)
	}
	return nil
}

// changing lists what a package variable must not be, for it is there to be
// changed.
var changing = map[string][]string{
	"sync":        {"Mutex", "RWMutex", "Once", "Map", "Pool", "WaitGroup", "Cond"},
	"sync/atomic": {"*"},
}

// changingVars finds package variables that something changes: by assigning
// them, or what is in them, by taking their address, or because they are made
// for it. Tests change nothing either.
func changingVars(t *tree) []problem {
	var out []problem
	for _, r := range t.rooms {
		for _, f := range r.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				for _, e := range changedBy(r, n) {
					if name := r.packageVar(t, e); name != "" {
						out = append(out, t.at(n, "package variable %s changes", name))
					}
				}
				return true
			})
			if !f.test {
				out = append(out, t.madeToChange(r, f)...)
			}
		}
	}
	return out
}

// changedBy returns what a statement or an expression changes.
func changedBy(r *room, n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return slices.DeleteFunc([]ast.Expr{n.Key, n.Value}, func(e ast.Expr) bool { return e == nil })
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			return []ast.Expr{n.X}
		}
	case *ast.CallExpr:
		if r.builtin(n.Fun, "delete", "clear", "copy") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVar returns the name of the package variable that e is, or is a part
// of; empty if there is none, or if it is one of a test's.
func (r *room) packageVar(t *tree, e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.SelectorExpr:
			if pkg, name := r.selected(x); pkg != "" {
				return path.Base(pkg) + "." + name
			}
			e = x.X
		case *ast.Ident:
			v, ok := r.uses[x].(*types.Var)
			if !ok || v.Pkg() == nil || v.Parent() != v.Pkg().Scope() || strings.HasSuffix(t.fset.Position(v.Pos()).Filename, "_test.go") {
				return ""
			}
			return v.Name()
		default:
			return ""
		}
	}
}

// madeToChange finds package variables of a type that is there to be changed.
func (t *tree) madeToChange(r *room, f *file) []problem {
	var out []problem
	for _, d := range f.ast.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			kinds := []ast.Expr{spec.Type}
			for _, v := range spec.Values {
				if u, ok := v.(*ast.UnaryExpr); ok {
					v = u.X
				}
				if lit, ok := v.(*ast.CompositeLit); ok {
					kinds = append(kinds, lit.Type)
				}
			}
			for _, k := range kinds {
				if x, ok := k.(*ast.IndexExpr); ok { // atomic.Pointer[T]
					k = x.X
				}
				if _, ok := k.(*ast.ChanType); ok {
					out = append(out, t.at(spec, "package variable %s is a channel", spec.Names[0]))
				}
				if pkg, name := r.selected(k); matches(changing[pkg], name) {
					out = append(out, t.at(spec, "package variable %s is made to change", spec.Names[0]))
				}
			}
		}
	}
	return out
}
