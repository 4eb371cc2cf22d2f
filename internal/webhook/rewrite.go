package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// alteration is a way in which a secret or body here may differ from the sender's.
type alteration struct {
	cause Cause // CauseSecretSpace or CauseBodyChanged
	words string
	undo  func([]byte) []byte // returns what the sender may have; nil or empty if it does not apply
}

// alterations returns the alterations to try, as editors, proxies and frameworks make them.
func alterations() []alteration {
	add := func(end string) func([]byte) []byte {
		return func(b []byte) []byte { return append(bytes.Clone(b), end...) }
	}
	all := []alteration{
		{CauseSecretSpace, "the secret here has white space around it, the sender's secret does not", bytes.TrimSpace},
		{CauseSecretSpace, "the sender's secret ends with a line break, this one does not", add("\n")},
		{CauseSecretSpace, "the sender's secret ends with a line break (CRLF), this one does not", add("\r\n")},
		{CauseSecretSpace, "the sender's secret ends with a space, this one does not", add(" ")},
	}
	unix := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }
	for _, rewrite := range []struct {
		words string
		undo  func([]byte) []byte
	}{
		{"a line break was added at its end", func(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }},
		{"the line break at its end was removed", add("\n")},
		{"its line breaks were changed from LF to CRLF", unix},
		{"its line breaks were changed from CRLF to LF", func(b []byte) []byte {
			return bytes.ReplaceAll(unix(b), []byte("\n"), []byte("\r\n"))
		}},
		{"its JSON was reformatted; the compact form was signed", compact},
		{"its JSON was reformatted; the form with a space after each comma and colon was signed", chain(compact, spaced)},
		{"its JSON was reformatted; the compact form with \\u escapes was signed", chain(compact, escaped)},
		{"its JSON was reformatted; the spaced form with \\u escapes was signed", chain(compact, escaped, spaced)},
		{"its JSON was reformatted; the compact form without \\u escapes was signed", chain(compact, unescaped)},
		{"its JSON was reformatted; the spaced form without \\u escapes was signed", chain(compact, unescaped, spaced)},
		{"its JSON was reformatted; the compact form with escaped slashes was signed", chain(compact, slashed)},
		{"its JSON was reformatted; the compact form without escaped slashes was signed", chain(compact, unslashed)},
	} {
		all = append(all, alteration{CauseBodyChanged, "the body was changed in transit: " + rewrite.words, rewrite.undo})
	}
	return all
}

// apply returns secrets and samples with the alteration undone, and false if it changed no body.
func (a alteration) apply(secrets []Secret, samples []Sample) (before []Secret, sent []Sample, ok bool) {
	if a.cause == CauseSecretSpace {
		for _, s := range secrets {
			if s.Value = a.undo(s.Value); len(s.Value) > 0 {
				before = append(before, s)
			}
		}
		return before, samples, true
	}
	sent = slices.Clone(samples)
	for i, s := range samples {
		if body := a.undo(s.Body); len(body) > 0 && !bytes.Equal(body, s.Body) {
			sent[i].Body, ok = body, true
		}
	}
	return secrets, sent, ok
}

// chain returns the steps as one function. For an empty result each step returns nothing.
func chain(steps ...func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		for _, step := range steps {
			b = step(b)
		}
		return b
	}
}

// compact keeps strings and numbers as they are written. It returns nil if b is not JSON.
func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return nil
	}
	return out.Bytes()
}

// spaced puts a space after each comma and colon of compact JSON.
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

// escaped writes non-ASCII characters as \u escapes. It returns nil if b is not valid UTF-8.
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

// unescaped replaces \u escapes of non-ASCII characters with the characters.
func unescaped(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		char, size := jsonscan.Unescape(b)
		if char[0] < utf8.RuneSelf || string(char) == string(utf8.RuneError) { // not Unicode, or U+FFFD itself
			char = b[:size]
		}
		out, b = append(out, char...), b[size:]
	}
	return out
}

func slashed(b []byte) []byte { return bytes.ReplaceAll(unslashed(b), []byte("/"), []byte(`\/`)) }

// unslashed keeps escaped backslashes: the second one does not begin an escape.
func unslashed(b []byte) []byte {
	return []byte(strings.NewReplacer(`\\`, `\\`, `\/`, "/").Replace(string(b)))
}
