package postgres

import (
	"strconv"
	"strings"
)

// rewrite returns a text with the parameters that PostgreSQL knows: ? is the number after
// the highest so far, ?N and $N are N. What stands in quotes or comments stays.
func rewrite(query string) string {
	if !strings.Contains(query, "?") {
		return query
	}
	var b strings.Builder
	b.Grow(len(query) + 16)
	for highest := 0; query != ""; {
		n := tokenLength(query)
		token := query[:n]
		query = query[n:]
		switch token[0] {
		case '?', '$':
			number, err := strconv.Atoi(token[1:])
			if err != nil {
				number = highest + 1
			}
			highest = max(highest, number)
			token = "$" + strconv.Itoa(number)
		}
		b.WriteString(token)
	}
	return b.String()
}

// tokenLength returns the length of what a text begins with: a parameter, a quoted text,
// a comment, or what stands before the next of them.
func tokenLength(query string) int {
	upTo := func(end string, from int) int {
		i := strings.Index(query[from:], end)
		if i < 0 {
			return len(query)
		}
		return from + i + len(end)
	}
	switch {
	case query[0] == '?', query[0] == '$':
		n := 1
		for n < len(query) && '0' <= query[n] && query[n] <= '9' {
			n++
		}
		return n
	case query[0] == '\'', query[0] == '"':
		return upTo(query[:1], 1) // a doubled quote makes two texts
	case strings.HasPrefix(query, "--"):
		return upTo("\n", 2)
	case strings.HasPrefix(query, "/*"):
		return upTo("*/", 2)
	}
	if i := strings.IndexAny(query[1:], `?$'"-/`); i >= 0 {
		return 1 + i
	}
	return len(query)
}
