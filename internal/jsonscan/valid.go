package jsonscan

import "strings"

// maxDepth is how many levels package encoding/json reads.
const maxDepth = 10_000

// Valid reports whether b is JSON, as [json.Valid] does, in a small part of its
// time: each delivery is checked.
func Valid(b []byte) bool {
	end := valueEnd(b, SkipSpace(b, 0), 0)
	return end >= 0 && SkipSpace(b, end) == len(b)
}

// valueEnd returns the offset behind the value that begins at i, that many
// levels deep, or -1 if none does.
func valueEnd(b []byte, i, level int) int {
	if i == len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		if level == maxDepth {
			return -1
		}
		return containerEnd(b, i, level)
	case 't':
		return wordEnd(b, i, "true")
	case 'f':
		return wordEnd(b, i, "false")
	case 'n':
		return wordEnd(b, i, "null")
	default:
		return numberEnd(b, i)
	}
}

func containerEnd(b []byte, i, level int) int {
	object, closing := b[i] == '{', b[i]+2
	if i = SkipSpace(b, i+1); i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i == len(b) || b[i] != '"' {
				return -1
			}
			if i = stringEnd(b, i); i < 0 {
				return -1
			}
			if i = SkipSpace(b, i); i == len(b) || b[i] != ':' {
				return -1
			}
			i = SkipSpace(b, i+1)
		}
		if i = valueEnd(b, i, level+1); i < 0 {
			return -1
		}
		i = SkipSpace(b, i)
		switch {
		case i == len(b):
			return -1
		case b[i] == closing:
			return i + 1
		case b[i] != ',':
			return -1
		}
		i = SkipSpace(b, i+1)
	}
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c < ' ':
			return -1
		case c != '\\':
		case i+1 < len(b) && strings.IndexByte(`"\/bfnrt`, b[i+1]) >= 0:
			i++
		case i+5 < len(b) && b[i+1] == 'u' && isHex(b[i+2]) && isHex(b[i+3]) && isHex(b[i+4]) && isHex(b[i+5]):
			i += 5
		default:
			return -1
		}
	}
	return -1
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func wordEnd(b []byte, i int, word string) int {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}

func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = digitsEnd(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = digitsEnd(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return digitsEnd(b, i)
	}
	return i
}

// digitsEnd returns the offset behind at least one digit.
func digitsEnd(b []byte, i int) int {
	start := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}
