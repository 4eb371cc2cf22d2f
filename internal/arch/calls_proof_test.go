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

func TestBannedNamesProof(t *testing.T) {
	bad := []string{"internal/api/a.go:"}
	prove(t, bannedNames, []proof{
		{"exit", body("os", "os.Exit(1)"), bad},
		{"exit under another name", inFile("internal/api/a.go", "package api\nimport sys \"os\"\nvar f = sys.Exit"), bad},
		{"exit in main", inFile("cmd/waybill/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(0) }"), nil},
		{"exit beside main", inFile("cmd/waybill/more.go", "package main\nimport \"os\"\nfunc f() { os.Exit(0) }"), []string{"cmd/waybill/more.go:3: os.Exit"}},
		{"a local called os", body("", "os := struct{ Exit func(int) }{}\nos.Exit(1)"), nil},
		{"stdout", body("os", "_ = os.Stdout"), bad},
		{"stdout in term", inFile("internal/term/t.go", "package term\nimport \"os\"\nvar f = os.Stdout"), nil},
		{"printing", body("fmt", "fmt.Print(1); fmt.Printf(\"\"); fmt.Println()"), []string{"internal/api/a.go:4: fmt.Print:", "internal/api/a.go:4: fmt.Printf:", "internal/api/a.go:4: fmt.Println:"}},
		{"printing to something", body("fmt", "fmt.Fprintln(nil)"), nil},
		{"builtin printing", body("", "println(1)"), bad},
		{"a print of one's own", inFile("internal/api/a.go", "package api\nfunc print(int) {}\nfunc f() { print(1) }"), nil},
		{"sleeping", body("time", "time.Sleep(1)"), bad},
		{"sleeping in a test", inFile("internal/api/a_test.go", "package api\nimport \"time\"\nfunc f() { time.Sleep(1) }"), nil},
		{"everybody's client", body("net/http", "_ = http.DefaultClient"), bad},
		{"everybody's client, hidden", body("net/http", "_, _ = http.Get(\"\")"), bad},
		{"a client", body("net/http", "_ = &http.Client{}"), nil},
		{"a method of that name", body("net/http", "c := &http.Client{}\nc.Get(\"\")"), nil},
		{"no context", body("net/http", "http.NewRequest(\"\", \"\", nil)"), bad},
		{"everybody's settings", body("github.com/spf13/viper", "viper.SetDefault(\"a\", 1)"), bad},
		{"own settings", body("github.com/spf13/viper", "v := viper.New()\nv.SetDefault(\"a\", 1)"), nil},
		{"written settings", body("", "var v struct{ WriteConfig func() }\nv.WriteConfig()"), bad},
		{"everybody's logger", body("log/slog", "slog.Info(\"\")"), bad},
		{"lazy quotes", body("", "var r struct{ LazyQuotes bool }\nr.LazyQuotes = true"), bad},
		{"lazy quotes in a literal", body("encoding/csv", "_ = csv.Reader{LazyQuotes: true}"), bad},
		{"usage template", body("", "var c struct{ SetUsageTemplate func() }\nc.SetUsageTemplate()"), bad},
		{"persistent hook", body("github.com/spf13/cobra", "_ = cobra.Command{PersistentPreRunE: nil}"), bad},
	})
	prove(t, bannedStrings, []proof{
		{"the header", body("net/http", "http.Header{}.Set(\"idempotency-Key\", \"x\")"), bad},
		{"a comment on it", body("", "// never Idempotency-Key"), nil},
	})
	prove(t, initFunctions, []proof{
		{"init", inFile("internal/api/a.go", "package api\nfunc init() {}"), bad},
		{"a method of that name", inFile("internal/api/a.go", "package api\ntype t int\nfunc (t) init() {}"), nil},
	})
}

func TestPanicsProof(t *testing.T) {
	const abort = "import \"net/http\"\nfunc f() { panic(http.ErrAbortHandler) }"
	prove(t, panics, []proof{
		{"panic", body("", "panic(1)"), []string{"internal/api/a.go:3: panic"}},
		{"a connection cut in the sandbox", inFile("internal/sandbox/s.go", "package sandbox\n"+abort), nil},
		{"a panic in the sandbox", inFile("internal/sandbox/s.go", "package sandbox\nfunc f() { panic(1) }"), []string{"internal/sandbox/s.go:2: panic"}},
		{"a connection cut elsewhere", inFile("internal/api/a.go", "package api\n"+abort), []string{"internal/api/a.go:3: panic"}},
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
