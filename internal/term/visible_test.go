package term

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	tests := []struct{ in, line, text string }{
		{"", "", ""},
		{"plain ASCII ~", "plain ASCII ~", "plain ASCII ~"},
		{"Größe 日本 👍🏽 é", "Größe 日本 👍🏽 é", "Größe 日本 👍🏽 é"},
		{"a\nb\tc", `a\nb\tc`, "a\nb\tc"},
		{"a\rb", `a\u{d}b`, `a\u{d}b`},
		{"\x00\x07\x1b[31m\x7f", `\u{0}\u{7}\u{1b}[31m\u{7f}`, `\u{0}\u{7}\u{1b}[31m\u{7f}`},
		{"\x1b]52;c;AAAA\x07", `\u{1b}]52;c;AAAA\u{7}`, `\u{1b}]52;c;AAAA\u{7}`},
		{"\u0080\u009b31m\u0085", `\u{80}\u{9b}31m\u{85}`, `\u{80}\u{9b}31m\u{85}`},
		{"\x80\x9b\xff", `\x{80}\x{9b}\x{ff}`, `\x{80}\x{9b}\x{ff}`},
		{"a\xe2\x82", `a\x{e2}\x{82}`, `a\x{e2}\x{82}`},
		{"\xed\xa0\x80", `\x{ed}\x{a0}\x{80}`, `\x{ed}\x{a0}\x{80}`},
		{"\xc0\x9b", `\x{c0}\x{9b}`, `\x{c0}\x{9b}`},
		{"\u202eabc\u202c", `\u{202e}abc\u{202c}`, `\u{202e}abc\u{202c}`},
		{"\u061c\u200e\u200f\u2066\u2069", `\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}`, `\u{61c}\u{200e}\u{200f}\u{2066}\u{2069}`},
		{"\u200b\u200d\u2060\ufeff", `\u{200b}\u{200d}\u{2060}\u{feff}`, `\u{200b}\u{200d}\u{2060}\u{feff}`},
		{"\u2028\u2029\u00ad", `\u{2028}\u{2029}\u{ad}`, `\u{2028}\u{2029}\u{ad}`},
		{"\U000e0041\U000e0001\U000e01ef", `\u{e0041}\u{e0001}\u{e01ef}`, `\u{e0041}\u{e0001}\u{e01ef}`},
		{"\u3164\u115f\u034f\ufe00", `\u{3164}\u{115f}\u{34f}\u{fe00}`, `\u{3164}\u{115f}\u{34f}\u{fe00}`},
		{"❤\ufe0f", "❤\ufe0f", "❤\ufe0f"},
		{"\u00a0 \ufffd", "\u00a0 \ufffd", "\u00a0 \ufffd"},
		{"\ue000 \uf8ff \U000f0000 \U0010fffd", `\u{e000} \u{f8ff} \u{f0000} \u{10fffd}`, `\u{e000} \u{f8ff} \u{f0000} \u{10fffd}`},
	}
	for _, tt := range tests {
		if got := Visible(tt.in); got != tt.line {
			t.Errorf("Visible(%q) = %q; want %q", tt.in, got, tt.line)
		}
		if got := VisibleText(tt.in); got != tt.text {
			t.Errorf("VisibleText(%q) = %q; want %q", tt.in, got, tt.text)
		}
	}
}

// TestHiddenRunes compares the shortcuts of hidden with what it is made of.
func TestHiddenRunes(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point) &&
			r != '\ufe0f'
		if got := hidden(r); got != want && utf8.ValidRune(r) {
			t.Errorf("hidden(%U) = %t; want %t", r, got, want)
		}
	}
}

func TestVisibleCleanTextCostsNothing(t *testing.T) {
	for _, s := range []string{"1Z999AA10123456784", "Größe 日本語 Ελλάδα", strings.Repeat("x", 4096)} {
		if n := testing.AllocsPerRun(100, func() { _ = Visible(s) }); n != 0 {
			t.Errorf("Visible(%.20q): %v allocations; want none", s, n)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"abc", "a\nb", "\x1b[2J", "\xff\xfe", "\u202e", "日本", `\u{1b}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, text := Visible(s), VisibleText(s)
		if at := cleanPrefix(line, false); at != len(line) {
			t.Errorf("Visible(%q) = %q: not clean at %d", s, line, at)
		}
		if at := cleanPrefix(text, true); at != len(text) {
			t.Errorf("VisibleText(%q) = %q: not clean at %d", s, text, at)
		}
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("Visible(%q) = %q holds a control character or bad UTF-8", s, line)
		}
		if again := Visible(line); again != line {
			t.Errorf("Visible twice: %q, then %q", line, again)
		}
		if want := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text); line != want {
			t.Errorf("Visible(%q) = %q; want as VisibleText %q", s, line, want)
		}
	})
}
