package arch

import (
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tourDoc is the page that shows a newcomer around.
const tourDoc = "docs/tour.md"

func TestTourIsTrue(t *testing.T) { hold(t, falseTour) }

// cited finds names such as `bulk.Job.Run` and `cli/track.runShow`.
var cited = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`")

// falseTour finds packages that the tour leaves out, and names in it that its
// packages do not declare.
func falseTour(t *tree) []problem {
	text, err := fs.ReadFile(t.fsys, tourDoc)
	if err != nil {
		return []problem{{tourDoc, err.Error()}}
	}
	var out []problem
	declared := map[string][]string{}
	for _, r := range t.rooms {
		name := strings.TrimPrefix(r.path, "internal/")
		declared[name] = names(r)
		if !strings.Contains(string(text), "`"+name+"`") {
			out = append(out, problem{tourDoc, "does not name the package `" + name + "`"})
		}
	}
	for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
		have, ours := declared[m[1]]
		for name := range declared {
			if !ours && path.Base(name) == m[1] {
				out = append(out, problem{tourDoc, m[1] + "." + m[2] + ": the package is " + name})
			}
		}
		if ours && !slices.Contains(have, m[2]) {
			out = append(out, problem{tourDoc, m[1] + "." + m[2] + " is nowhere"})
		}
	}
	return out
}

// names returns what a package declares: functions, types, constants,
// variables, and methods and fields as Type.Name.
func names(r *room) []string {
	var out []string
	for _, f := range r.files {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d) + "." + name
				}
				out = append(out, name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					out = append(out, specNames(s)...)
				}
			}
		}
	}
	return out
}

func specNames(s ast.Spec) []string {
	var out []string
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			out = append(out, n.Name)
		}
	case *ast.TypeSpec:
		out = append(out, s.Name.Name)
		var members *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			members = t.Fields
		case *ast.InterfaceType:
			members = t.Methods
		default:
			return out
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				out = append(out, s.Name.Name+"."+n.Name)
			}
		}
	}
	return out
}

// receiver returns the name of the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	name := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

func TestTourProof(t *testing.T) {
	with := func(tour string) map[string]string {
		return map[string]string{
			path.Clean(tourDoc):   tour,
			"internal/bulk/b.go":  "package bulk\ntype Job struct { Run int }\nfunc (j *Job) Send() {}\nfunc stage() {}\nconst Most = 1",
			"cmd/waybill/main.go": "package main",
		}
	}
	prove(t, falseTour, []proof{
		{"fine", with("`bulk` `cmd/waybill`: `bulk.Job.Send`, `bulk.Job.Run`, `bulk.stage`, `bulk.Most`, `bulk.Job`, `other.Thing`"), nil},
		{"a package left out", with("`cmd/waybill`"), []string{"docs/tour.md: does not name the package `bulk`"}},
		{"a name that is gone", with("`bulk` `cmd/waybill` `bulk.Carry` `bulk.Job.Carry`"), []string{"docs/tour.md: bulk.Carry is nowhere", "docs/tour.md: bulk.Job.Carry is nowhere"}},
		{"a package without its path", with("`bulk` `cmd/waybill` `waybill.main`"), []string{"docs/tour.md: waybill.main: the package is cmd/waybill"}},
		{"no tour", map[string]string{"internal/bulk/b.go": "package bulk"}, []string{"docs/tour.md: "}},
	})
}
