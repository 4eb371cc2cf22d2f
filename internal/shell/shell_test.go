package shell

import (
	"os/exec"
	"slices"
	"strings"
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
		{"a,b", "a,b", `"a,b"`},
		{"@map", "@map", `"@map"`},
		{"100%", "100%", "'100%'"},
		{"it’s “new” $5", "'it’s “new” $5'", "'it’’s “new” $5'"},
	} {
		if got := word(tt.in, false); got != tt.posix {
			t.Errorf("%q: got %s, want %s", tt.in, got, tt.posix)
		}
		if got := word(tt.in, true); got != tt.windows {
			t.Errorf("%q on Windows: got %s, want %s", tt.in, got, tt.windows)
		}
	}
}

func TestExport(t *testing.T) {
	for _, tt := range []struct{ value, posix, windows string }{
		{"any", "export KEY=any", "$env:KEY = 'any'"},
		{"it's $x", `export KEY='it'\''s $x'`, "$env:KEY = 'it''s $x'"},
	} {
		if got := export("KEY", tt.value, false); got != tt.posix {
			t.Errorf("%q: got %s, want %s", tt.value, got, tt.posix)
		}
		if got := export("KEY", tt.value, true); got != tt.windows {
			t.Errorf("%q on Windows: got %s, want %s", tt.value, got, tt.windows)
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

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line  string
		words []string
		open  byte
	}{
		{"waybill show ", []string{"waybill", "show", ""}, 0},
		{"waybill  show A", []string{"waybill", "show", "A"}, 0},
		{`w a\ b 'c d'e "f\"g\h`, []string{"w", "a b", "c de", `f"g\h`}, '"'},
		{`w 'a\`, []string{"w", `a\`}, '\''},
		{`w a\`, []string{"w", "a"}, 0},
		{`w $(a (b) c)d ` + "`e f`g", []string{"w", "$(a (b) c)d", "`e f`g"}, 0},
		{"w $(a ", []string{"w", "$(a "}, '('},
		{"w `a ", []string{"w", "`a "}, '`'},
		{`w $'it\'s' "$(x y)" $HOME ~/a`, []string{"w", "it's", "$(x y)", "$HOME", "~/a"}, 0},
		{"w >out 2>&1 a", []string{"w", "2", "a"}, 0},
		{"w <in ", []string{"w", ""}, 0},
		{"w --a=ü|", []string{"w", "--a=ü", ""}, 0},
		{"", []string{""}, 0},
	} {
		var words []string
		parsed := Parse(tt.line)
		for _, w := range parsed {
			words = append(words, w.Text)
		}
		if open := parsed[len(parsed)-1].Open; !slices.Equal(words, tt.words) || open != tt.open {
			t.Errorf("%s: words %q with %q open, want %q with %q", tt.line, words, open, tt.words, tt.open)
		}
	}
}

func TestShellReadsEscapedBack(t *testing.T) {
	for _, s := range []string{"a", "it's", `a"b`, "$(id)", "`id`", "*?[a]", "#1", "~x", "übung", `a\b`, "a;b|c&d", "{1,2}", "a=b:c@d,e", "<>()"} {
		for _, open := range []byte{0, '\'', '"'} {
			text, ok := Escape(s, open)
			quote := strings.TrimLeft(string(open), "\x00")
			out, err := exec.Command("sh", "-c", "printf %s "+quote+text+quote).Output()
			if err != nil || string(out) != s || !ok {
				t.Errorf("Escape(%q, %q) = %s; the shell reads %q (%v)", s, open, text, out, err)
			}
			if read := Read(quote + text); read.Text != s || read.Raw != quote+text || read.Open != open {
				t.Errorf("Read(%s) = %+v", quote+text, read)
			}
		}
	}
	if _, ok := Escape("a!b", '"'); ok {
		t.Error("bash expands ! within double quotes")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("waybill show 'a b' $(c) \"d")
	f.Fuzz(func(t *testing.T, line string) {
		words := Parse(line)
		if len(words) == 0 || !strings.HasSuffix(line, words[len(words)-1].Raw) {
			t.Errorf("Parse(%q) = %q", line, words)
		}
	})
}
