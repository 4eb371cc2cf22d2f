package shell

import (
	"os/exec"
	"testing"
)

func TestWord(t *testing.T) {
	for _, tt := range []struct{ in, posix, windows string }{
		{"orders-1.csv", "orders-1.csv", "orders-1.csv"},
		{"Order No", "'Order No'", `"Order No"`},
		{"it's", `'it'\''s'`, `"it's"`},
		{`5" $x`, `'5" $x'`, `'5" $x'`},
		{"", "''", `""`},
		{"a;rm", "'a;rm'", `"a;rm"`},
		{"Größe", "'Größe'", `"Größe"`},
		{`C:\orders`, `'C:\orders'`, `C:\orders`},
	} {
		if got := word(tt.in, false); got != tt.posix {
			t.Errorf("%q: got %s, want %s", tt.in, got, tt.posix)
		}
		if got := word(tt.in, true); got != tt.windows {
			t.Errorf("%q on Windows: got %s, want %s", tt.in, got, tt.windows)
		}
	}
}

func TestShellReadsWordBack(t *testing.T) {
	for _, s := range []string{"orders.csv", "my orders.csv", "", "it's", `a"b`, "$HOME", "`id`", "a\nb", "*", "#1", "~x", "-o", "übung.csv", "a\\b", "!x"} {
		out, err := exec.Command("sh", "-c", "printf %s "+word(s, false)).Output()
		if err != nil || string(out) != s {
			t.Errorf("word(%q) = %s; the shell reads %q (%v)", s, word(s, false), out, err)
		}
	}
}
