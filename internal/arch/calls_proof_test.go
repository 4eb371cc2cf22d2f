package arch

import (
	"strings"
	"testing"
)

// body returns a tree with one function of the package api that holds the
// statements, after these imports.
func body(imports, statements string) map[string]string {
	var b strings.Builder
	b.WriteString("package api\n")
	for name := range strings.FieldsSeq(imports) {
		b.WriteString("import \"" + name + "\"\n")
	}
	return map[string]string{"internal/api/a.go": b.String() + "func f() {\n" + statements + "\n}\n"}
}

// inFile returns a tree with one file.
func inFile(name, src string) map[string]string { return map[string]string{name: src} }

func TestBannedTextProof(t *testing.T) {
	bad := []string{"internal/api/a.go:"}
	prove(t, bannedStrings, []proof{
		{"the header", body("net/http", "http.Header{}.Set(\"idempotency-Key\", \"x\")"), bad},
		{"a comment on it", body("", "// never Idempotency-Key"), nil},
	})
}

func TestComparedByTextProof(t *testing.T) {
	bad := []string{"internal/api/a.go:"}
	prove(t, comparedByText, []proof{
		{"equal", body("", "var err error\n_ = err.Error() == \"gone\""), bad},
		{"unequal, the other way round", body("", "var err error\n_ = \"gone\" != err.Error()"), bad},
		{"switch", body("", "var err error\nswitch err.Error() {\ncase \"gone\":\n}"), bad},
		{"contains", body("strings", "var err error\n_ = strings.Contains(err.Error(), \"gone\")"), bad},
		{"contains, in small letters", body("strings", "var err error\n_ = strings.Contains(strings.ToLower(err.Error()), \"gone\")"), bad},
		{"begins, as bytes", body("bytes", "var err error\n_ = bytes.HasPrefix([]byte(err.Error()), nil)"), bad},
		{"pattern", body("regexp", "var err error\n_ = regexp.MustCompile(\"gone\").MatchString(err.Error())"), bad},
		{"shown", body("fmt", "var err error\n_ = fmt.Sprint(err.Error())"), nil},
		{"a logger's method of that name", body("", "var log struct{ Error func(string) }\nlog.Error(\"x\")"), nil},
		{"a test may", inFile("internal/api/a_test.go", "package api\nvar err error\nvar x = err.Error() == \"gone\""), nil},
	})
}

func TestBareBoolsProof(t *testing.T) {
	with := func(call string) map[string]string {
		return inFile("internal/api/a.go", "package api\ntype t struct{}\nfunc g(string, bool) {}\nfunc (t) m(bool) {}\n"+
			"func k[T any](bool) {}\nfunc k2[T, U any](bool) {}\nfunc l(any) {}\nfunc n(...bool) {}\nfunc (b) z() {}\ntype b bool\nfunc f(known bool) {\nh := func(bool) {}\nh(known)\n"+call+"\n}\n")
	}
	bad := []string{"internal/api/a.go:"}
	prove(t, bareBools, []proof{
		{"a function", with(`g("", true)`), bad},
		{"a method", with(`t{}.m(false)`), bad},
		{"of a type", with(`k[int](true)`), bad},
		{"of two types", with(`k2[int, int](true)`), bad},
		{"a closure", with(`h(true)`), bad},
		{"one of several", with(`n(known, true)`), bad},
		{"in parentheses", with(`(h)((true))`), bad},
		{"a method of a type", with(`t.m(t{}, true)`), bad},
		{"a receiver", with(`b.z(true)`), nil},
		{"a value", with(`g("", known)`), nil},
		{"a condition", with(`g("", 1 == 2)`), nil},
		{"any value", with(`l(true)`), nil},
		{"a conversion", with(`_ = bool(true)`), nil},
	})
}

func TestChangingVarsProof(t *testing.T) {
	bad := []string{"internal/api/a.go:"}
	with := func(src string) map[string]string { return inFile("internal/api/a.go", "package api\n"+src) }
	prove(t, changingVars, []proof{
		{"constant", with("var table = map[string]int{}\nvar one = 1\nfunc f() int { one := one; one++; return table[\"\"] + one }"), nil},
		{"assigned", with("var one = 1\nfunc f() { one = 2 }"), bad},
		{"among others", with("var one = 1\nfunc f() { var x int; x, one = 2, 3; _ = x }"), bad},
		{"counted", with("var one = 1\nfunc f() { one++ }"), bad},
		{"an entry", with("var table = map[string]int{}\nfunc f() { table[\"\"] = 1 }"), bad},
		{"an entry goes", with("var table = map[string]int{}\nfunc f() { delete(table, \"\") }"), bad},
		{"a field of an element", with("var list = []struct{ n int }{{}}\nfunc f() { list[0].n = 1 }"), bad},
		{"behind a pointer", with("var p = new(int)\nfunc f() { *p = 1 }"), bad},
		{"its address", with("var one = 1\nfunc f() *int { return &one }"), bad},
		{"a range", with("var one = 1\nfunc f() { for one = range 3 {} }"), bad},
		{"in a test", map[string]string{
			"internal/api/a.go":      "package api\nvar one = 1",
			"internal/api/a_test.go": "package api\nvar two = 1\nfunc f() { one = 2; two = 2 }",
		}, []string{"internal/api/a_test.go:3: package variable one changes"}},
		{"another package's", with("import \"x.org/color\"\nfunc f() { color.NoColor = true }"), bad},
		{"a local of the same name", with("var one = 1\nfunc f(one int) { one = 2 }"), nil},
		{"a field of the same name", with("var one = 1\ntype t struct{ one int }\nfunc f(x *t) { x.one = 2 }"), nil},
		{"a lock", with("import \"sync\"\nvar mu sync.Mutex"), bad},
		{"a pointer to a store", with("import \"sync\"\nvar m = &sync.Map{}"), bad},
		{"an atomic", with("import \"sync/atomic\"\nvar p atomic.Pointer[int]"), bad},
		{"computed once", with("import \"sync\"\nvar table = sync.OnceValue(func() int { return 1 })"), nil},
		{"a channel", with("var c chan int"), bad},
	})
}
