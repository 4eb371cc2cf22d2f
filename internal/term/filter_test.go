package term

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// terminal returns streams whose terminals are buffers.
func terminal(env map[string]string) (t *IO, out, err *bytes.Buffer) {
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	t = New(strings.NewReader(""), out, err, Facts{OutTerminal: true, ErrTerminal: true, Env: env})
	return t, out, err
}

func write(t *testing.T, w io.Writer, s string) {
	t.Helper()
	if n, err := io.WriteString(w, s); n != len(s) || err != nil {
		t.Fatalf("Write(%q) = %d, %v; want %d, nil", s, n, err, len(s))
	}
}

func TestFilter(t *testing.T) {
	tests := []struct {
		name   string
		writes []string
		want   string
	}{
		{"text", []string{"a\tb\n", "ü 日本\n"}, "a\tb\nü 日本\n"},
		{"escape", []string{"\x1b[2J\r\x9b"}, `\u{1b}[2J\u{d}\x{9b}`},
		{"own colour is foreign too", []string{"\x1b[31mred\x1b[0m"}, `\u{1b}[31mred\u{1b}[0m`},
		{"C1 split", []string{"\xc2", "\x9b31m"}, `\u{9b}31m`},
		{"four bytes split", []string{"\xf0", "\x9f", "\x98", "\x80!"}, "😀!"},
		{"tag split", []string{"\xf3\xa0", "\x81\x81"}, `\u{e0041}`},
		{"started and not finished", []string{"a\xe2\x82", "b"}, `a\x{e2}\x{82}b`},
		{"finished by the end", []string{"a\xe2\x82"}, `a\x{e2}\x{82}`},
		{"started twice", []string{"\xe2", "\xe2\x82\xac"}, `\x{e2}€`},
		{"empty writes", []string{"", "\xc3", "", "\xa9"}, "é"},
	}
	for _, tt := range tests {
		io, out, _ := terminal(nil)
		for _, w := range tt.writes {
			write(t, io.Out, w)
		}
		if err := io.Close(); err != nil {
			t.Errorf("%s: Close: %v", tt.name, err)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: terminal got %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestFilterLetsOwnStylesThroughWhereTheyBelong(t *testing.T) {
	text := "\x1b[32mok\x1b[0m \x1b[5mno\x1b[0m \x1b[32\u202e\n"
	tests := []struct {
		name string
		env  map[string]string
		want string
	}{
		{"colour", nil, "\x1b[32mok\x1b[0m \\u{1b}[5mno\x1b[0m \\u{1b}[32\\u{202e}\n"},
		{"no colour", map[string]string{"NO_COLOR": "1"}, "ok \\u{1b}[5mno \\u{1b}[32\\u{202e}\n"},
	}
	for _, tt := range tests {
		io, out, _ := terminal(tt.env)
		if _, err := io.Out.WriteStyled([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("%s: terminal got %q; want %q", tt.name, got, tt.want)
		}
	}
}

func TestStyledWriteEndsAnUnfinishedCharacter(t *testing.T) {
	io, out, _ := terminal(nil)
	write(t, io.Out, "a\xe2\x82")
	if err := io.Out.Printf("%s\n", io.Out.Style(Good, "ok")); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a\\x{e2}\\x{82}\x1b[32mok\x1b[0m\n"; got != want {
		t.Errorf("terminal got %q; want %q", got, want)
	}
}

func TestBytesPassUnchangedWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	io := New(nil, &out, &out, Facts{})
	text := "\x1b[31m\x00\xff\u202e\r\n\xe2"
	write(t, io.Out, text)
	if err := io.Close(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != text {
		t.Errorf("got %q; want %q", got, text)
	}
}

func FuzzFilter(f *testing.F) {
	for _, s := range []string{"abc\n", "\x1b]52;c;QQ\x07", "\xc2\x9b", "é日😀", "\xf0\x9f\x98", "\u202e\u2028", "\x1b[31mx\x1b[0m"} {
		f.Add([]byte(s), uint8(1), uint8(2))
	}
	f.Fuzz(func(t *testing.T, p []byte, a, b uint8) {
		whole := filtered(p)
		i := min(int(a), len(p))
		j := min(i+int(b), len(p))
		if parts := filtered(p[:i], p[i:j], p[j:]); parts != whole {
			t.Errorf("%q in parts (%d, %d) gave %q; at once %q", p, i, j, parts, whole)
		}
		var bytewise [][]byte
		for k := range p {
			bytewise = append(bytewise, p[k:k+1])
		}
		if parts := filtered(bytewise...); parts != whole {
			t.Errorf("%q byte by byte gave %q; at once %q", p, parts, whole)
		}
		if want := VisibleText(string(p)); whole != want {
			t.Errorf("filter made %q of %q; want %q", whole, p, want)
		}
		if !utf8.ValidString(whole) || strings.ContainsFunc(whole, func(r rune) bool {
			return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
		}) {
			t.Errorf("filter let a control character through: %q of %q", whole, p)
		}
		var s filter
		styled := string(s.styled(p, true))
		for _, own := range []Style{Heading, Good, Bad, Caution, Faint, Accent} {
			styled = strings.ReplaceAll(styled, own.sequence(), "")
		}
		styled = strings.ReplaceAll(styled, resetSequence, "")
		if strings.ContainsRune(styled, '\x1b') {
			t.Errorf("styled write let %q through of %q", styled, p)
		}
	})
}

func filtered(writes ...[]byte) string {
	var f filter
	var out []byte
	for _, p := range writes {
		out = append(out, f.plain(p)...)
	}
	return string(f.flush(out))
}
