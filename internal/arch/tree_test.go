package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// module is the path that our own imports begin with.
const module = "github.com/waybill-cli/waybill"

// tree is a source tree, parsed.
type tree struct {
	fsys  fs.FS
	fset  *token.FileSet
	rooms []*room // by path
}

// room is a folder with Go files.
type room struct {
	path  string // relative to the root of the module
	files []*file
	uses  map[*ast.Ident]types.Object // in the room's own package, tests included; nothing for a package x_test
}

// file is a Go file.
type file struct {
	name string // relative to the root of the module
	test bool
	src  []byte
	ast  *ast.File
}

// problem is one thing that breaks a rule.
type problem struct {
	where string // file:line, or a name
	text  string
}

func (p problem) String() string { return p.where + ": " + p.text }

// rule is one promise about the tree. It returns what breaks it.
type rule func(*tree) []problem

// load parses every Go file under fsys, but for hidden folders, testdata and
// what a build leaves behind.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fsys: fsys, fset: token.NewFileSet()}
	byPath := map[string]*room{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (d.Name()[0] == '.' || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		f, err := t.parse(name)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byPath[dir] == nil {
			byPath[dir] = &room{path: dir}
			t.rooms = append(t.rooms, byPath[dir])
		}
		byPath[dir].files = append(byPath[dir].files, f)
		return nil
	})
	for _, r := range t.rooms {
		r.uses = t.resolve(r)
	}
	return t, err
}

func (t *tree) parse(name string) (*file, error) {
	src, err := fs.ReadFile(t.fsys, name)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &file{name: name, test: strings.HasSuffix(name, "_test.go"), src: src, ast: parsed}, nil
}

// resolve says which object each identifier of the room means. Imports are
// empty boxes: what is inside them is not known, that they are meant is. The
// errors that come of it are of no interest.
func (t *tree) resolve(r *room) map[*ast.Ident]types.Object {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: boxes{}, Error: func(error) {}, FakeImportC: true}
	var files []*ast.File
	for _, f := range r.files {
		if !strings.HasSuffix(f.ast.Name.Name, "_test") {
			files = append(files, f.ast)
		}
	}
	_, _ = config.Check(path.Join(module, r.path), t.fset, files, info)
	return info.Uses
}

// boxes imports any path as an empty package of the name that one expects.
type boxes struct{}

var _ types.Importer = boxes{}

var major = regexp.MustCompile(`^v[0-9]+$`)

func (boxes) Import(p string) (*types.Package, error) {
	name := path.Base(p)
	if major.MatchString(name) {
		name = path.Base(path.Dir(p))
	}
	name, _, _ = strings.Cut(name, ".v") // gopkg.in/yaml.v3
	pkg := types.NewPackage(p, strings.TrimPrefix(name, "go-"))
	pkg.MarkComplete()
	return pkg, nil
}

// at makes a problem out of a place in a file.
func (t *tree) at(n ast.Node, format string, args ...any) problem {
	p := t.fset.Position(n.Pos())
	return problem{fmt.Sprintf("%s:%d", p.Filename, p.Line), fmt.Sprintf(format, args...)}
}

// each calls visit for every file of the program itself: tests are left out.
func (t *tree) each(visit func(*room, *file)) {
	for _, r := range t.rooms {
		for _, f := range r.files {
			if !f.test {
				visit(r, f)
			}
		}
	}
}

// inspect calls visit for every node of the program itself.
func (t *tree) inspect(visit func(*room, *file, ast.Node)) {
	t.each(func(r *room, f *file) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if n != nil {
				visit(r, f, n)
			}
			return true
		})
	})
}

// selected returns the import path and the name for an expression such as
// os.Exit, and empty strings for anything else.
func (r *room) selected(e ast.Node) (pkg, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	imported, ok := r.uses[id].(*types.PkgName)
	if !ok {
		return "", ""
	}
	return imported.Imported().Path(), sel.Sel.Name
}

// parsed is this project's own tree, read once.
var parsed = sync.OnceValues(func() (*tree, error) { return load(os.DirFS("../..")) })

// project is this project's own tree.
func project(t *testing.T) *tree {
	t.Helper()
	tr, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.rooms) < len(rooms)/2 {
		t.Fatalf("only %d packages found: the wrong folder is being read", len(tr.rooms))
	}
	return tr
}

// hold fails the test for whatever in the project breaks the rule.
func hold(t *testing.T, broken rule) {
	t.Helper()
	for _, p := range broken(project(t)) {
		t.Error(p)
	}
}

// proof is a small tree and what a rule must say of it.
type proof struct {
	name  string
	files map[string]string
	want  []string // the problems, each by its beginning, in any order; none for a tree that is fine
}

// prove checks that a rule says of each tree what it must.
func prove(t *testing.T, broken rule, proofs []proof) {
	t.Helper()
	for _, p := range proofs {
		t.Run(p.name, func(t *testing.T) {
			tr, err := load(mapFS(p.files))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range broken(tr) {
				got = append(got, b.String())
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(p.want))
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("got %d problems:\n  %s\nwant %d that begin:\n  %s",
					len(got), strings.Join(got, "\n  "), len(want), strings.Join(want, "\n  "))
			}
		})
	}
}

// mapFS returns files as a file system.
func mapFS(files map[string]string) fs.FS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}
