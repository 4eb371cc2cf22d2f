package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

type bodyRewrite struct {
	name string
	undo func([]byte) []byte // returns what may have been signed; nothing if it does not apply
}

// bodyRewrites returns the changes to try. Proxies, frameworks and editors make them.
func bodyRewrites() []bodyRewrite {
	unix := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }
	return []bodyRewrite{
		{"a line break was added at its end", func(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }},
		{"the line break at its end was removed", func(b []byte) []byte { return append(bytes.Clone(b), '\n') }},
		{"its line breaks were changed from LF to CRLF", unix},
		{"its line breaks were changed from CRLF to LF", func(b []byte) []byte {
			return bytes.ReplaceAll(unix(b), []byte("\n"), []byte("\r\n"))
		}},
		{"its JSON was reformatted; the compact form was signed", compact},
		{"its JSON was reformatted; the form with a space after each comma and colon was signed", chain(compact, spaced)},
		{"its JSON was reformatted; the form indented by 2 was signed", indented("  ")},
		{"its JSON was reformatted; the form indented by 4 was signed", indented("    ")},
		{"its JSON was reformatted; the compact form with \\u escapes was signed", chain(compact, escaped)},
		{"its JSON was reformatted; the spaced form with \\u escapes was signed", chain(compact, escaped, spaced)},
		{"its JSON was reformatted; the compact form without \\u escapes was signed", chain(compact, unescaped)},
		{"its JSON was reformatted; the spaced form without \\u escapes was signed", chain(compact, unescaped, spaced)},
		{"its JSON was reformatted; the compact form with escaped slashes was signed", chain(compact, slashed)},
		{"its JSON was reformatted; the compact form without escaped slashes was signed", chain(compact, unslashed)},
	}
}

// chain returns the steps as one. They make nothing of nothing.
func chain(steps ...func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		for _, step := range steps {
			b = step(b)
		}
		return b
	}
}

// compact leaves strings and numbers as they are written. What is not JSON becomes nothing.
func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return nil
	}
	return out.Bytes()
}

func indented(by string) func([]byte) []byte {
	return func(b []byte) []byte {
		var out bytes.Buffer
		if json.Indent(&out, b, "", by) != nil {
			return nil
		}
		return out.Bytes()
	}
}

// spaced puts a space behind each comma and colon of compact JSON.
func spaced(b []byte) []byte {
	out := make([]byte, 0, len(b)+len(b)/8)
	for i := 0; i < len(b); {
		end := i + 1
		if b[i] == '"' {
			end = jsonscan.SkipString(b, i)
		}
		out = append(out, b[i:end]...)
		if b[i] == ',' || b[i] == ':' {
			out = append(out, ' ')
		}
		i = end
	}
	return out
}

// escaped writes what is not ASCII as \u escapes. What is not Unicode becomes nothing.
func escaped(b []byte) []byte {
	if !utf8.Valid(b) {
		return nil
	}
	out := make([]byte, 0, len(b)+len(b)/8)
	for _, r := range string(b) {
		if r < utf8.RuneSelf {
			out = utf8.AppendRune(out, r)
			continue
		}
		for _, u := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, `\u%04x`, u)
		}
	}
	return out
}

// unescaped writes \u escapes of what is not ASCII as the characters.
func unescaped(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		char, size := jsonscan.Unescape(b)
		if char[0] < utf8.RuneSelf || string(char) == string(utf8.RuneError) { // no Unicode, or that very character
			char = b[:size]
		}
		out, b = append(out, char...), b[size:]
	}
	return out
}

func slashed(b []byte) []byte { return bytes.ReplaceAll(unslashed(b), []byte("/"), []byte(`\/`)) }

// unslashed takes an escaped backslash first: its other half begins no escape.
func unslashed(b []byte) []byte {
	return []byte(strings.NewReplacer(`\\`, `\\`, `\/`, "/").Replace(string(b)))
}
