package carriers

import (
	"strconv"
	"strings"
)

// matches reports whether s has one of the forms of a pattern, which are
// separated by |. In a form # is a digit, @ a capital letter, * either of them,
// [AB1] one of these characters (with ranges such as 0-5), and everything else
// itself. {n} or {n,m} after any of them says how many there are.
func matches(pattern, s string) bool {
	for form := range strings.SplitSeq(pattern, "|") {
		if matchForm(form, s) {
			return true
		}
	}
	return false
}

// matchForm matches one form. A range of counts takes as many characters as it
// can, which is right where what follows differs.
func matchForm(form, s string) bool {
	if class, _ := cutClass(form); s == "" || !inClass(class, s[0]) {
		return false // most forms end here
	}
	for form != "" {
		class, rest := cutClass(form)
		low, high := 1, 1
		if count, after, ok := strings.Cut(rest, "}"); ok && rest[0] == '{' {
			low, high = counts(count[1:])
			rest = after
		}
		if low > len(s) || rest == "" && high < len(s) {
			return false
		}
		n := 0
		for n < high && n < len(s) && inClass(class, s[n]) {
			n++
		}
		if n < low {
			return false
		}
		form, s = rest, s[n:]
	}
	return s == ""
}

// cutClass cuts the first class of characters from a form.
func cutClass(form string) (class, rest string) {
	if form[0] == '[' {
		end := strings.IndexByte(form, ']') + 1
		return form[:end], form[end:]
	}
	return form[:1], form[1:]
}

func counts(text string) (low, high int) {
	least, most, ranged := strings.Cut(text, ",")
	low, _ = strconv.Atoi(least)
	high = low
	if ranged {
		high, _ = strconv.Atoi(most)
	}
	return low, high
}

func inClass(class string, c byte) bool {
	digit, letter := c >= '0' && c <= '9', c >= 'A' && c <= 'Z'
	switch class[0] {
	case '#':
		return digit
	case '@':
		return letter
	case '*':
		return digit || letter
	case '[':
		set := class[1 : len(class)-1]
		for i := 0; i < len(set); i++ {
			if i+2 < len(set) && set[i+1] == '-' {
				if c >= set[i] && c <= set[i+2] {
					return true
				}
				i += 2
			} else if set[i] == c {
				return true
			}
		}
		return false
	}
	return c == class[0]
}
