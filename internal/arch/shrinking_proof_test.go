package arch

import (
	"strings"
	"testing"
)

func TestWithinProof(t *testing.T) {
	long := "// " + strings.Repeat("é", longLine-2) + "\n"
	src := "package a\n" + long + long[:len(long)-3] + "\nfunc F(a, b bool, _ int) {}\nfunc (t) G(bool) {}\nfunc h(bool) {}\ntype t int\n"
	prove(t, within(budget{lines: 7, longLines: 1, flags: 3}), []proof{
		{"as much as may be", inFile("internal/a/a.go", src), nil},
		{"of a test", inFile("internal/a/a_test.go", src+src[10:]), nil},
		{"of a suite", inFile("internal/storetest/a.go", src+"\n"), nil},
		{"a line more", inFile("internal/a/a.go", src+"\n"), []string{"the program: 8 lines; 7"}},
	})
	prove(t, within(budget{lines: 7}), []proof{
		{"long", inFile("internal/a/a.go", src), []string{"the program: 1 long lines; 0", "the program: 3 bool"}},
	})
}
