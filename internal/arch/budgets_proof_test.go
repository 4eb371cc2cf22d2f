package arch

import (
	"strings"
	"testing"
)

func TestLongWindedProof(t *testing.T) {
	exact := "func g() {\n" + strings.Repeat("\tf()\n", longFunction-2) + "}\n"
	long := "func h() {\n" + strings.Repeat("\tf()\n", longFunction-1) + "}\n"
	prove(t, longWinded, []proof{
		{"as long as may be", inFile("a.go", "package a\n"+exact), nil},
		{"longer", inFile("a.go", "package a\n"+long), []string{"a.go:2: h has 61 lines"}},
		{"two of three", inFile("a.go", "package a\n"+exact+long+long), []string{"a.go:62: h has", "a.go:123: h has"}},
		{"in a test", inFile("a_test.go", "package a\n"+long), nil},
	})
}

func TestWideInterfacesProof(t *testing.T) {
	wide := func(n int) string {
		return "type I interface {\n" + strings.Repeat("\tM()\n", n) + "}\n"
	}
	prove(t, wideInterfaces, []proof{
		{"five", inFile("internal/a/a.go", "package a\n"+wide(5)), nil},
		{"six", inFile("internal/a/a.go", "package a\n"+wide(6)), []string{"internal/a/a.go:2: interface I has 6"}},
		{"five and one taken in", inFile("internal/a/a.go", "package a\n"+wide(5)+"type J interface { I; N() }"), []string{"internal/a/a.go:9: interface J has 6"}},
		{"five and one of another package taken in", map[string]string{
			"internal/a/a.go": "package a\n" + wide(5),
			"internal/b/b.go": "package b\nimport \"" + module + "/internal/a\"\ntype J interface { a.I; N() }",
		}, []string{"internal/b/b.go:3: interface J has 6"}},
		{"a foreign one taken in", inFile("internal/a/a.go", "package a\nimport \"io\"\ntype J interface { io.Closer; A(); B(); C(); D() }"), nil},
		{"eight in a contract", inFile("internal/inbox/a.go", "package inbox\n"+wide(8)), nil},
		{"nine in a contract", inFile("internal/ledger/a.go", "package ledger\n"+wide(9)), []string{"internal/ledger/a.go:2: interface I has 9"}},
	})
}

func TestSkippedProof(t *testing.T) {
	with := func(src string) map[string]string {
		return inFile("a_test.go", strings.NewReplacer("SKIP", "Skip", "SHORT", "Short").Replace(src))
	}
	bad := []string{"a_test.go:"}
	const test = "package a\nimport \"testing\"\nfunc TestA(t *testing.T) { "
	prove(t, skipped, []proof{
		{"fine", with(test + "t.Log(1) }"), nil},
		{"skip", with(test + "t.SKIP() }"), bad},
		{"skip with words", with(test + "t.SKIPf(\"\") }"), bad},
		{"skip at once", with(test + "if true { t.SKIPNow() } }"), bad},
		{"short", with(test + "if testing.SHORT() { return } }"), bad},
		{"the program may skip bytes", inFile("a.go", "package a\nfunc f(r interface{ Skip(int) }) { r.Skip(1) }"), nil},
		{"a platform", with("//go:build !windows && unix\n\npackage a"), nil},
		{"a tag of one's own", with("//go:build integration && linux\n\npackage a"), []string{"a_test.go:1: no build has the tag integration"}},
		{"ignored", inFile("a.go", "//go:build ignore\n\npackage a"), []string{"a.go:1: no build has the tag ignore"}},
		{"a transcript", inFile("testdata/script/a.txtar", "exec waybill\n-- a.csv --\nskip it\n"), nil},
		{"a transcript that skips", inFile("testdata/script/a.txtar", "[windows] [short] skip 'no'\n"), []string{"testdata/script/a.txtar: "}},
		{"a transcript that stops", inFile("testdata/script/a.txtar", "exec waybill\nstop\n"), []string{"testdata/script/a.txtar: "}},
	})
}
