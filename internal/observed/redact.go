package observed

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waybill-cli/waybill/internal/jsonscan"
)

// namesSeparator stands between the names of a status.
const namesSeparator = ", "

// unnamed stands for a member whose name may be an identifier.
const unnamed = "*"

// Limits of a word: more may be an identifier, or a sentence that names somebody.
const (
	maxDigits = 3 // in a row, once
	maxWords  = 3
)

// word returns s if it is a word of a vocabulary: letters, some digits and signs that
// names have, at most 64 bytes; else the empty string. Digits beside a hyphen are a part
// of an identifier.
func word(s, signs string) string {
	if s == "" || len(s) > 64 || len(strings.Fields(s)) > maxWords {
		return ""
	}
	digits, groups, letters := 0, 0, 0
	var last rune
	for _, r := range s {
		before := last
		last = r
		switch {
		case r >= '0' && r <= '9':
			if digits == 0 {
				groups++
			}
			if digits++; digits > maxDigits || groups > 1 || before == '-' {
				return ""
			}
			continue
		case r == '-' && digits > 0:
			return ""
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			letters++
		case !strings.ContainsRune(signs, r):
			return ""
		}
		digits = 0
	}
	if letters == 0 {
		return ""
	}
	return s
}

// memberName returns the name of a member, or [unnamed] if it may be an identifier.
func memberName(name string) string {
	if w := word(name, "_$@-"); w != "" {
		return w
	}
	return unnamed
}

// vocabulary returns the text of a status, an event kind or a code: a word, a short
// number, or what is masked.
func vocabulary(s string) string {
	if w := word(s, "_-.:/ "); w != "" {
		return w
	}
	if n := strings.TrimPrefix(s, "-"); number(n) && len(n) <= 5 {
		return s
	}
	return cut(mask(s), maxName)
}

// mask puts 0 for each digit, a or A for each letter, and ? for all else but signs of
// ASCII: the form of a text stays, and nothing of what it says.
func mask(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '0'
		case unicode.IsUpper(r):
			return 'A'
		case unicode.IsLetter(r):
			return 'a'
		case r >= ' ' && r < utf8.RuneSelf-1:
			return r
		}
		return '?'
	}, s)
}

// maskedText is how much of a text a sample shows, in bytes.
const maskedText = 40

// appendMasked appends a JSON value with its texts and numbers masked.
func appendMasked(dst, raw []byte, depth int) []byte {
	if len(dst) > maxSample {
		return dst
	}
	switch raw[0] {
	case '{', '[':
		if depth == 0 {
			return append(dst, raw[0], raw[0]+2) // of ASCII: [] and {}
		}
		dst = append(dst, raw[0])
		for v := range jsonscan.Values(raw, 0) {
			if dst[len(dst)-1] != raw[0] {
				dst = append(dst, ',')
			}
			if v.Name != nil {
				name, _ := jsonscan.Text(v.Name)
				dst = append(append(append(dst, '"'), memberName(name)...), `":`...)
			}
			if dst = appendMasked(dst, v.Raw, depth-1); len(dst) > maxSample {
				return dst
			}
		}
		return append(dst, raw[0]+2)
	case '"':
		text, _ := jsonscan.Text(raw)
		text = strings.NewReplacer(`"`, "?", `\`, "?").Replace(mask(cut(text, maskedText)))
		return append(append(append(dst, '"'), text...), '"')
	case 't', 'f', 'n':
		return append(dst, raw...)
	}
	return append(dst, cut(mask(string(raw)), maskedText)...)
}

// sampleOf returns what masks a JSON value.
func sampleOf(raw []byte) func() string {
	return func() string { return string(appendMasked(nil, raw, 3)) }
}

// cut returns at most so many bytes of s, with a mark if there were more.
func cut(s string, most int) string {
	const more = "…"
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(more)], "") + more
}

// maxNames is how many names of one status are kept.
const maxNames = 4

// joinNames returns the names of both lists, each once.
func joinNames(a, b string) string {
	var names []string
	for n := range strings.SplitSeq(a+namesSeparator+b, namesSeparator) {
		if n != "" && !slices.Contains(names, n) && len(names) < maxNames {
			names = append(names, n)
		}
	}
	slices.Sort(names) // whichever came first
	return strings.Join(names, namesSeparator)
}

// canonical returns the usual spelling of a header's name.
func canonical(name string) string {
	b := []byte(name)
	upper := true
	for i, c := range b {
		switch {
		case upper && c >= 'a' && c <= 'z':
			b[i] = c - ('a' - 'A')
		case !upper && c >= 'A' && c <= 'Z':
			b[i] = c + ('a' - 'A')
		}
		upper = c == '-'
	}
	return memberName(string(b))
}
